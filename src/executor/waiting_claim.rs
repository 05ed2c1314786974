//! Whether a claim still waits, for how long, and why.

use crate::api::conditions::claim as reasons;
use crate::cache::index::Index;
use crate::client::call::CallError;
use crate::executor::handle::Executor;
use crate::executor::publish_status::write_claim;
use crate::executor::task::BindOrder;
use crate::planner;
use jiff::Timestamp;
use std::time::Duration;

/// Whether the claim still exists and waits, according to the cache.
pub(crate) fn still_waits(index: &Index, order: &BindOrder, now: Timestamp) -> bool {
    !time_left(index, order, now).is_zero()
}

/// How long the claim will still wait, according to the cache: its user may have changed its deadline.
pub(crate) fn time_left(index: &Index, order: &BindOrder, now: Timestamp) -> Duration {
    let claim = index.claim(&order.claim.key);
    let Some(claim) = claim.filter(|claim| claim.uid == order.claim.uid && claim.waiting()) else {
        return Duration::ZERO;
    };
    let resolved_spec = claim.resolved_spec(Some(&order.pool.claim_defaults));
    let ends = [claim.deadline(&resolved_spec), claim.expiration()];
    let end = ends.into_iter().flatten().min().unwrap_or(Timestamp::MAX);
    end.duration_since(now).try_into().unwrap_or_default()
}

/// Writes to the claim's status why it is not bound, unless the status says so already.
pub(crate) async fn report_rejection(
    executor: &Executor,
    order: &BindOrder,
    message: &str,
) -> Result<(), CallError> {
    let claim = &order.claim;
    let now = executor.shared.now();
    if !note_rejection(executor, order, message, now) {
        return Ok(());
    }
    let status = planner::claim::pending(claim, reasons::BINDING_REFUSED, message, now);
    write_claim(executor, claim, status).await
}

/// Notes why the claim waits. Returns whether its status must be written.
fn note_rejection(executor: &Executor, order: &BindOrder, message: &str, now: Timestamp) -> bool {
    let claim = &order.claim;
    let mut index = executor.shared.lock();
    let waits = still_waits(&index, order, now);
    if waits {
        executor.trigger(index.note_rejection(claim, message));
    }
    let is_reported = planner::claim::rejection(claim).is_some();
    waits && !(is_reported && claim.status.observed_generation == claim.generation)
}
