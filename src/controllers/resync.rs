//! Resyncs periodically: overdue expected writes, a changed clock, metrics of deleted pools.
//!
//! A write that the watch does not show in time is confirmed by a live read.

use crate::cache::reconcile_request::ReconcileRequest;
use crate::controllers::context::Context;
use crate::model::request::Request;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Period of the resync. It sends no request when nothing is overdue.
const INTERVAL: Duration = Duration::from_secs(5);

/// Least difference between wall clock and elapsed time that counts as a change of the clock.
const MIN_CLOCK_STEP: SignedDuration = SignedDuration::from_secs(1);

/// Confirms overdue writes, notices a changed clock and drops the counters of deleted pools, forever.
pub async fn run(context: Arc<Context>) {
    let mut last = (Timestamp::now(), Instant::now());
    loop {
        tokio::time::sleep(INTERVAL).await;
        let (before, since) = std::mem::replace(&mut last, (Timestamp::now(), Instant::now()));
        if let Some(step) = clock_step(before, last.0, last.1.duration_since(since)) {
            tracing::info!(?step, "the clock was set");
            clock_was_set(&context, step);
        }
        let pools = context.shared.lock().pool_keys();
        context.executor.metrics.meters.keep(&pools);
        read_overdue(&context, Instant::now());
    }
}

/// Reads the pods with a write that the watch has not shown in time.
pub fn read_overdue(context: &Context, now: Instant) {
    let mut index = context.shared.lock();
    for pod in index.expectations.overdue(now) {
        tracing::warn!(%pod, "the watch did not show a write in time; the pod is read");
        index.requests.push(Request::ReadPod(pod), true);
    }
    drop(index);
    context.executor.send_queued();
}

/// Requeues all objects. After a step back, remembered failures and claims lie in the future: they are forgotten, or plans would
/// wait for as long as the step.
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

/// The change of the clock, if it went from `before` to `after` while `passed` elapsed.
pub fn clock_step(before: Timestamp, after: Timestamp, passed: Duration) -> Option<SignedDuration> {
    let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
    let step = after.duration_since(before).saturating_sub(passed);
    (step.abs() > MIN_CLOCK_STEP).then_some(step)
}
