//! Own writes that the watch has not shown for too long are settled by a live read, never waited for for ever. And
//! when the clock is set, everything that waits for a moment is looked at again. What was counted for pools that are gone
//! is dropped, also when nobody asks for it.

use crate::controllers::context::Context;
use crate::executor::creation_backoff::Backoff;
use crate::executor::task::Task;
use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often overdue writes are looked for. It costs nothing when there are none.
const INTERVAL: Duration = Duration::from_secs(5);

/// Live reads at once.
const REREADS: usize = 8;

/// A clock that differs by this much from what has passed was set.
const STEP: SignedDuration = SignedDuration::from_secs(1);

/// Settles overdue writes, notices a clock that was set and drops the counters of pools that are gone, for ever.
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
        let overdue = context.shared.lock().expectations.overdue(Instant::now());
        stream::iter(overdue)
            .for_each_concurrent(REREADS, |pod| {
                Task::LiveRead { pod }.run(context.executor.clone())
            })
            .await;
    }
}

/// Has everything looked at again. After a step backwards what is remembered of failures and claims lies in the future: it
/// would be waited for as long as the step was.
pub fn clock_was_set(context: &Context, step: SignedDuration) {
    let mut index = context.shared.lock();
    if step.is_negative() {
        (index.failures, index.recent_claims) = Default::default();
        *context.executor.backoff() = Backoff::default();
    }
    let all = index.all();
    drop(index);
    context.executor.trigger(all);
}

/// By how much the clock was set, forwards or backwards, if it went from `before` to `after` while `passed` went by.
pub fn clock_step(before: Timestamp, after: Timestamp, passed: Duration) -> Option<SignedDuration> {
    let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
    let step = after.duration_since(before).saturating_sub(passed);
    (step.abs() > STEP).then_some(step)
}
