//! What a reconcile needs, and when the object is reconciled again.

use crate::cache::synced_cache::SharedCache;
use crate::controllers::commit::Committed;
use crate::executor::Executor;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::controller::Action;

/// Least delay before an object is requeued.
const MIN_REQUEUE_DELAY: SignedDuration = SignedDuration::from_millis(10);

/// What a reconcile needs.
pub struct Context {
    /// The cache.
    pub shared: SharedCache,
    /// Carries out plans.
    pub executor: Executor,
}

impl Context {
    /// Sends what follows from a committed plan. Returns when time alone changes the plan.
    pub(crate) fn follow(&self, committed: Committed) -> Option<Timestamp> {
        self.executor.reconcile(committed.to_reconcile);
        self.executor.send_queued();
        committed.next
    }
}

/// The action after a reconcile at `now`: await a change, or requeue the object at `next`.
pub(crate) fn requeue_at(now: Timestamp, next: Option<Timestamp>) -> Action {
    next.map_or_else(Action::await_change, |next| {
        let delay = next.duration_since(now).max(MIN_REQUEUE_DELAY);
        Action::requeue(delay.unsigned_abs())
    })
}
