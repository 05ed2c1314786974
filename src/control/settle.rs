//! Own writes that the watch has not shown for too long are settled by a live read, never waited for for ever. And
//! when the clock is set, everything that waits for a moment is looked at again. What was counted for pools that are gone
//! is dropped, also when nobody asks for it.

use super::Context;
use crate::apply::outcome::{Class, call};
use crate::observe::Key;
use crate::observe::index::Trigger;
use crate::observe::stored::StoredPod;
use jiff::{SignedDuration, Timestamp};
use kube::Api;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often overdue writes are looked for. It costs nothing when there are none.
const INTERVAL: Duration = Duration::from_secs(5);

/// A clock that differs by this much from what has passed was set.
const STEP: SignedDuration = SignedDuration::from_secs(1);

/// Settles overdue writes for ever.
pub async fn run(context: Arc<Context>) {
    loop {
        let (wall, passed) = (Timestamp::now(), Instant::now());
        tokio::time::sleep(INTERVAL).await;
        if let Some(step) = clock_step(wall, Timestamp::now(), passed.elapsed()) {
            tracing::info!(?step, "the clock was set");
            let all = context.shared.lock().all();
            context.writer.trigger(all);
        }
        let pools = context.shared.lock().pool_keys();
        context.writer.metrics.meters.keep(&pools);
        let overdue = context.shared.lock().pending.overdue();
        for pod in overdue {
            settle(&context, &pod).await;
        }
    }
}

/// By how much the clock was set, forwards or backwards, if it went from `before` to `after` while `passed` went by.
pub fn clock_step(before: Timestamp, after: Timestamp, passed: Duration) -> Option<SignedDuration> {
    let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
    let step = after.duration_since(before).saturating_sub(passed);
    (step.abs() > STEP).then_some(step)
}

async fn settle(context: &Context, key: &Key) {
    let pods: Api<StoredPod> = Api::namespaced(context.writer.client.clone(), &key.namespace);
    let answer = call(pods.get(&key.name)).await;
    let mut index = context.shared.lock();
    let touched: Vec<Trigger> = match answer {
        Ok(pod) => index.settle(key, Some(&pod)),
        Err(error) if error.class() == Class::Gone => index.settle(key, None),
        Err(error) => {
            if !error.is_told() {
                tracing::warn!(pod = %key, error = error.message(), "an own write is unseen, and the pod cannot be read");
            }
            return;
        }
    };
    drop(index);
    tracing::warn!(pod = %key, "an own write was not seen in time and was settled by a live read");
    context.writer.trigger(touched);
}
