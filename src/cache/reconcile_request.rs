//! What is to be reconciled, and the way to the controllers.

use crate::model::Key;
use crate::model::claim::Claim;
use futures::channel::mpsc::UnboundedSender;
use std::sync::Arc;

/// What is to be reconciled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReconcileRequest {
    /// A Pool.
    Pool(Key),
    /// A SandboxClaim.
    Claim(Key),
    /// The writes on pods that failed.
    FailedWrites,
}

impl ReconcileRequest {
    /// The claim of a binding that is over is reconciled, because its plan writes nothing while a binding is in flight.
    pub(crate) fn of_binding(claim: &Arc<Claim>) -> Self {
        Self::Claim(claim.key.clone())
    }
}

/// Sends reconcile requests to the controllers.
#[derive(Clone, Debug)]
pub struct ReconcileSender {
    /// To the controller of pools.
    pub pools: UnboundedSender<Key>,
    /// To the controller of claims.
    pub claims: UnboundedSender<Key>,
    /// To the controller of failed writes.
    pub failed_writes: UnboundedSender<()>,
    /// To the loop that reconciles at once.
    pub urgent: UnboundedSender<ReconcileRequest>,
}

impl ReconcileSender {
    /// Sends every request to its controller. A controller that has shut down needs none.
    pub fn send(&self, to_reconcile: impl IntoIterator<Item = ReconcileRequest>) {
        for request in to_reconcile {
            let _ = match request {
                ReconcileRequest::Pool(key) => self.pools.unbounded_send(key).map_err(drop),
                ReconcileRequest::Claim(key) => self.claims.unbounded_send(key).map_err(drop),
                ReconcileRequest::FailedWrites => self.failed_writes.unbounded_send(()).map_err(drop),
            };
        }
    }

    /// Sends requests that a claimant waits for: they are carried out at once.
    pub fn send_urgent(&self, to_reconcile: impl IntoIterator<Item = ReconcileRequest>) {
        for request in to_reconcile {
            _ = self.urgent.unbounded_send(request);
        }
    }
}
