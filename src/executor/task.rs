//! The tasks that a plan starts.
//!
//! A task holds what it was decided on and learns everything else from the answers of the API server, so the same answers
//! always lead to the same requests.

use crate::api::claim::BoundSandbox;
use crate::api::{PoolStatus, SandboxClaimStatus};
use crate::cache::reconcile_request::ReconcileRequest;
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

/// One item of a plan, carried out in as many requests as it takes. Each request ends when the API server answers.
#[derive(Clone, Debug)]
pub enum Task {
    /// Bind sandboxes to a claim and publish them.
    Bind(Arc<BindOrder>),
    /// End a claim without a sandbox.
    FailClaim {
        /// The claim as last seen.
        claim: Arc<Claim>,
        /// The pool that would serve it.
        pool: Arc<Pool>,
        /// CamelCase reason.
        reason: &'static str,
        /// Human-readable message.
        message: String,
    },
    /// Write a claim's status.
    UpdateClaim {
        /// The claim as last seen.
        claim: Arc<Claim>,
        /// Its new status.
        status: Box<SandboxClaimStatus>,
        /// Sandboxes that a live read must show lost first.
        confirm_loss: Vec<BoundSandbox>,
    },
    /// Delete a claim that has ended.
    DeleteClaim {
        /// The claim as last seen.
        claim: Arc<Claim>,
    },
    /// Create pods.
    Create {
        /// Their pool.
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
    /// Delete a pod that a claim holds, unless a live read shows that the claim lists it.
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
        /// The revisions to store and to delete.
        revisions: Revisions,
    },
    /// Write the status of a pool.
    PublishPool {
        /// The pool as last seen.
        pool: Arc<Pool>,
        /// Its new status.
        status: Box<PoolStatus>,
    },
    /// Read a pod live, because the watch did not show an expected write in time.
    LiveRead {
        /// The pod.
        pod: Key,
    },
    /// Requeue objects after a delay.
    Requeue {
        /// The objects.
        again: Vec<ReconcileRequest>,
        /// The delay.
        after: Duration,
    },
    /// After a delay, plan again with a sandbox whose last write met a conflict or was rejected.
    EndHold {
        /// The sandbox.
        sandbox: Arc<Sandbox>,
        /// The delay.
        after: Duration,
    },
    /// After a delay, serve a claim again whose last write failed. Until then it is noted as in flight.
    EndPause {
        /// The claim as last seen.
        claim: Arc<Claim>,
        /// The delay.
        after: Duration,
    },
}

impl Task {
    /// Whether the task sends no request and only waits.
    pub fn waits(&self) -> bool {
        matches!(
            self,
            Self::Requeue { .. } | Self::EndHold { .. } | Self::EndPause { .. }
        )
    }
}

/// A claim and the sandboxes to bind to it now.
#[derive(Clone, Debug)]
pub struct BindOrder {
    /// The claim as last seen.
    pub claim: Arc<Claim>,
    /// The pool that serves the claim.
    pub pool: Arc<Pool>,
    pub(crate) sandboxes: Vec<Arc<Sandbox>>,
    /// Sandboxes that it holds already: an earlier attempt did not end.
    pub(crate) held: Vec<Arc<Sandbox>>,
    /// The claim has not waited.
    pub(crate) warm: bool,
}

/// A pod to be created.
#[derive(Clone, Debug)]
pub struct CreateOrder {
    /// Namespace and name of the pod.
    pub pod: Key,
    pub(crate) revision: String,
    pub(crate) template: Arc<Template>,
    pub(crate) reason: &'static str,
}

impl CreateOrder {
    /// The order of a planned creation.
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
