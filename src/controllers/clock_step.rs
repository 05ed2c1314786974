//! Notices that the clock of the node was set, and requeues every object.

use crate::cache::reconcile_request::ReconcileRequest;
use crate::controllers::context::Context;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// Least difference between wall clock and elapsed time that counts as a change of the clock.
const MIN_CLOCK_STEP: SignedDuration = SignedDuration::from_secs(1);

/// The change of the clock, if it went from `before` to `after` while `passed` elapsed.
pub fn clock_step(before: Timestamp, after: Timestamp, passed: Duration) -> Option<SignedDuration> {
    let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
    let step = after.duration_since(before).saturating_sub(passed);
    (step.abs() > MIN_CLOCK_STEP).then_some(step)
}

/// Requeues all objects. After a step back, remembered failures and claims lie in the future: they are forgotten, or
/// plans would wait for as long as the step.
pub fn clock_was_set(context: &Context, step: SignedDuration) {
    let mut index = context.shared.lock();
    if step.is_negative() {
        index.forget_moments();
    }
    let mut all = index.all();
    drop(index);
    all.push(ReconcileRequest::FailedWrites);
    context.executor.reconcile(all);
}
