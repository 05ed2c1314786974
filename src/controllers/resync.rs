//! Resyncs periodically: overdue expected writes, a changed clock, metrics of deleted pools, counted failures.
//!
//! A write that the watch does not show in time is confirmed by a live read.

use crate::cache::expectations::EXPECTATION_TIMEOUT;
use crate::controllers::clock_step::{clock_step, clock_was_set};
use crate::controllers::context::Context;
use crate::model::request::Request;
use crate::telemetry::failure_log::{self, FailedRequest};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Level;

/// Period of the resync. It sends no request when nothing is overdue.
const INTERVAL: Duration = Duration::from_secs(5);

/// Confirms overdue writes, notices a changed clock, drops the counters of deleted pools and logs how many failures the log
/// was silent about, forever.
pub async fn run(context: Arc<Context>) {
    let mut last = (Timestamp::now(), Instant::now());
    loop {
        tokio::time::sleep(INTERVAL).await;
        let (before, since) = std::mem::replace(&mut last, (Timestamp::now(), Instant::now()));
        if let Some(step) = clock_step(before, last.0, last.1.duration_since(since)) {
            tracing::info!(step_seconds = step.as_secs_f64(), "the clock was set");
            clock_was_set(&context, step);
        }
        let pools = context.shared.lock().pool_keys();
        context.executor.metrics.meters.keep(&pools);
        read_overdue(&context, Instant::now());
        failure_log::log_counted();
    }
}

/// Reads the pods with a write that the watch has not shown in time. A watch that shows nothing makes every pod overdue, so
/// they share a line of the log.
pub fn read_overdue(context: &Context, now: Instant) {
    let mut index = context.shared.lock();
    for pod in index.expectations.overdue(now) {
        failure_log::log(FailedRequest {
            level: Level::WARN,
            what: "the watch did not show a write in time; the pod is read",
            verb: "watch",
            resource: "pods",
            object: pod.clone(),
            claim: None,
            error: format!("not shown within {} s", EXPECTATION_TIMEOUT.as_secs()),
        });
        index.requests.push(Request::ReadPod(pod), true);
    }
    drop(index);
    context.executor.send_queued();
}
