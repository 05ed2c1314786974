//! The tasks that plans come to. A task holds what it was decided on and learns everything else from the answers of
//! the API server, so the same answers lead it the same way again.

use crate::api::claim::BoundSandbox;
use crate::api::{PoolStatus, SandboxClaimStatus};
use crate::cache::index::ReconcileRequest;
use crate::executor::{
    Writer, bind, create_pod, delete_pod, drain_pod, live_read, publish_status, store_revision,
};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::lifecycle_hook::Hook;
use crate::model::pool::Pool;
use crate::model::sandbox::Sandbox;
use crate::planner::revise::Revisions;
use futures::future::{BoxFuture, FutureExt};
use std::sync::Arc;
use std::time::Duration;

/// How soon a refused or failed write may be tried again when nothing about its object changes.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// One thing to be carried out, in as many requests as it takes. Each ends once the API server answers.
#[derive(Clone, Debug)]
pub enum Task {
    /// Bind sandboxes to a claim and publish them.
    Bind(Arc<bind::BindOrder>),
    /// End a claim without a sandbox.
    FailClaim {
        /// The claim as last seen.
        claim: Arc<Claim>,
        /// The pool that was to serve it.
        pool: Arc<Pool>,
        /// CamelCase reason.
        reason: &'static str,
        /// Why, for a person.
        message: String,
    },
    /// Bring a claim's status up to date.
    UpdateClaim {
        /// The claim as last seen.
        claim: Arc<Claim>,
        /// Its new status.
        status: Box<SandboxClaimStatus>,
        /// Sandboxes that a live read has to show lost first.
        confirm_loss: Vec<BoundSandbox>,
    },
    /// Delete a claim that has ended.
    DeleteClaim {
        /// The claim as last seen.
        claim: Arc<Claim>,
    },
    /// Create pods.
    Create {
        /// The pool that they are for.
        pool: Arc<Pool>,
        /// The pods.
        orders: Vec<create_pod::CreateOrder>,
    },
    /// Delete a pod.
    Delete {
        /// The pod as last seen.
        sandbox: Arc<Sandbox>,
        /// CamelCase reason.
        reason: &'static str,
    },
    /// Delete a pod that a claim holds, unless the claim lists it by now.
    Release {
        /// The claim as last seen.
        claim: Arc<Claim>,
        /// The pod as last seen.
        sandbox: Arc<Sandbox>,
        /// CamelCase reason.
        reason: &'static str,
    },
    /// Mark a warm pod as draining.
    Drain {
        /// The pod as last seen.
        sandbox: Arc<Sandbox>,
        /// CamelCase reason.
        reason: &'static str,
    },
    /// Mark a draining pod as warm.
    Restore {
        /// The pod as last seen.
        sandbox: Arc<Sandbox>,
        /// The pool's preDelete hooks.
        hook: Hook,
        /// CamelCase reason.
        reason: &'static str,
    },
    /// Write the stored revisions of a pool.
    Revise {
        /// The pool.
        pool: Arc<Pool>,
        /// What to write.
        revisions: Revisions,
    },
    /// Write the status of a pool.
    PublishPool {
        /// The pool as last seen.
        pool: Arc<Pool>,
        /// Its new status.
        status: Box<PoolStatus>,
    },
    /// Read a pod live, on which an own write was not seen in time.
    Reread {
        /// The pod.
        pod: Key,
    },
    /// After a while, look at objects again.
    LookAgain {
        /// The objects.
        again: Vec<ReconcileRequest>,
        /// The while.
        after: Duration,
    },
    /// After a while, take a sandbox into account again whose last write was refused.
    TryAgain {
        /// The sandbox.
        sandbox: Arc<Sandbox>,
        /// The while.
        after: Duration,
    },
    /// After a while, serve a claim again whose last write was refused or failed. Until then it is noted as being served.
    ServeAgain {
        /// The claim as last seen.
        claim: Arc<Claim>,
        /// The while.
        after: Duration,
    },
}

impl Task {
    /// It sends no request, and only waits.
    pub fn waits(&self) -> bool {
        matches!(
            self,
            Self::LookAgain { .. } | Self::TryAgain { .. } | Self::ServeAgain { .. }
        )
    }

    /// Carries the task out.
    pub fn run(self, writer: Writer) -> BoxFuture<'static, ()> {
        match self {
            Self::Bind(order) => bind::run(writer, order).boxed(),
            Self::FailClaim {
                claim,
                pool,
                reason,
                message,
            } => publish_status::fail_claim(writer, claim, pool, reason, message).boxed(),
            Self::UpdateClaim {
                claim,
                status,
                confirm_loss,
            } => async move {
                if live_read::all_lost(&writer, &claim, &confirm_loss).await {
                    publish_status::update_claim(&writer, &claim, *status).await;
                }
            }
            .boxed(),
            Self::DeleteClaim { claim } => {
                async move { publish_status::delete_claim(&writer, &claim).await }.boxed()
            }
            Self::Create { pool, orders } => create_pod::run(writer, pool, orders).boxed(),
            Self::Delete { sandbox, reason } => delete_pod::run(writer, sandbox, reason).boxed(),
            Self::Release {
                claim,
                sandbox,
                reason,
            } => live_read::release(writer, claim, sandbox, reason).boxed(),
            Self::Drain { sandbox, reason } => drain_pod::mark(writer, sandbox, reason).boxed(),
            Self::Restore {
                sandbox,
                hook,
                reason,
            } => drain_pod::restore(writer, sandbox, hook, reason).boxed(),
            Self::Revise { pool, revisions } => store_revision::run(writer, pool, revisions).boxed(),
            Self::PublishPool { pool, status } => publish_status::pool_status(writer, pool, *status).boxed(),
            Self::Reread { pod } => async move { live_read::confirm(&writer, &pod).await }.boxed(),
            Self::LookAgain { again, after } => async move {
                tokio::time::sleep(after).await;
                writer.shared.lock().later.retain(|other| !again.contains(other));
                writer.trigger(again);
            }
            .boxed(),
            Self::TryAgain { sandbox, after } => try_again(writer, sandbox, after).boxed(),
            Self::ServeAgain { claim, after } => serve_again(writer, claim, after).boxed(),
        }
    }
}

async fn serve_again(writer: Writer, claim: Arc<Claim>, after: Duration) {
    tokio::time::sleep(after).await;
    let mut index = writer.shared.lock();
    index.expectations.end_pause(&claim.uid);
    index.expectations.end_in_flight(&claim.uid);
    let mut again = index.pools_for(&claim);
    drop(index);
    again.push(ReconcileRequest::Claim(claim.key.clone()));
    writer.trigger(again);
}

async fn try_again(writer: Writer, sandbox: Arc<Sandbox>, after: Duration) {
    tokio::time::sleep(after).await;
    let mut index = writer.shared.lock();
    if index.expectations.is_conflicted(&sandbox) {
        index.expectations.forget(&sandbox);
        drop(index);
        writer.requeue(&sandbox);
    }
}
