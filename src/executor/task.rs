//! The tasks that a plan starts.
//!
//! A task holds what it was decided on and learns everything else from the answers of the API server, so the same answers
//! always lead to the same requests.

use crate::api::claim::BoundSandbox;
use crate::api::{PoolStatus, SandboxClaimStatus};
use crate::cache::index::ReconcileRequest;
use crate::cache::snapshot::PoolSnapshot;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::lifecycle_hook::Hook;
use crate::model::pool::Pool;
use crate::model::revision::Template;
use crate::model::sandbox::Sandbox;
use crate::planner::Plan;
use crate::planner::revise::Revisions;
use std::sync::Arc;
use std::time::Duration;

/// One thing to be carried out, in as many requests as it takes. Each ends once the API server answers.
#[derive(Clone, Debug)]
pub enum Task {
    /// Bind sandboxes to a claim and publish them.
    Bind(Arc<BindOrder>),
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
        orders: Vec<CreateOrder>,
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
    LiveRead {
        /// The pod.
        pod: Key,
    },
    /// After a while, look at objects again.
    Requeue {
        /// The objects.
        again: Vec<ReconcileRequest>,
        /// The while.
        after: Duration,
    },
    /// After a while, take a sandbox into account again whose last write was refused.
    EndHold {
        /// The sandbox.
        sandbox: Arc<Sandbox>,
        /// The while.
        after: Duration,
    },
    /// After a while, serve a claim again whose last write was refused or failed. Until then it is noted as being served.
    EndPause {
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
            Self::Requeue { .. } | Self::EndHold { .. } | Self::EndPause { .. }
        )
    }
}

/// One claim and the sandboxes that it is to get now.
#[derive(Clone, Debug)]
pub struct BindOrder {
    /// The claim as last seen.
    pub claim: Arc<Claim>,
    /// The pool that serves it.
    pub pool: Arc<Pool>,
    pub(crate) sandboxes: Vec<Arc<Sandbox>>,
    /// Those that it holds already: the last attempt was left half done.
    pub(crate) held: Vec<Arc<Sandbox>>,
    /// The claim has not had to wait for them.
    pub(crate) warm: bool,
}

/// One pod to be created.
#[derive(Clone, Debug)]
pub struct CreateOrder {
    /// Namespace and name of the pod.
    pub pod: Key,
    pub(crate) revision: String,
    pub(crate) template: Arc<Template>,
    pub(crate) reason: &'static str,
}

impl CreateOrder {
    /// The order for one planned creation.
    pub(crate) fn new(
        snapshot: &PoolSnapshot,
        plan: &Plan,
        name: &str,
        revision: &str,
        reason: &'static str,
    ) -> Self {
        let previous = plan.revisions.previous.as_ref().filter(|p| p.hash == revision);
        Self {
            pod: Key::new(snapshot.key().namespace.clone(), name),
            revision: revision.to_string(),
            template: Arc::clone(&previous.unwrap_or(&plan.revisions.update).template),
            reason,
        }
    }
}
