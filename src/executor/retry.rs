//! Retries a write until its outcome is known.

use crate::client::call::{CallError, Class};
use crate::executor::request_limit::RequestSlot;
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;

/// Delay before a write that failed or met a conflict is planned again when nothing about its object changes.
pub(crate) const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Delay before a write that failed with `error` is planned again: at least as long as the API server asks for.
pub(crate) fn retry_delay(error: Option<&CallError>) -> Duration {
    match error.map(CallError::class) {
        Some(Class::Throttled(delay)) => delay.max(RETRY_DELAY),
        _ => RETRY_DELAY,
    }
}

/// The tries of one write whose outcome is unknown.
pub(crate) struct Tries {
    pause: Duration,
    /// When the first try failed.
    failing_since: Option<Instant>,
    /// The answer of a try was lost: the write may have happened.
    pub(crate) lost: bool,
}

impl Tries {
    pub(crate) fn new() -> Self {
        Self {
            pause: Duration::from_millis(100),
            failing_since: None,
            lost: false,
        }
    }

    /// After `pause` the tries will have failed for too long to keep quiet about it.
    pub(crate) fn keep_failing(&self, pause: Duration) -> bool {
        self.failing_since
            .is_some_and(|since| since.elapsed() + pause > Duration::from_secs(3))
    }

    /// Delay before the next try: 0.1 s, doubling up to 5 s.
    pub(crate) fn next_pause(&mut self) -> Duration {
        let longer = (self.pause * 2).min(Duration::from_secs(5));
        std::mem::replace(&mut self.pause, longer)
    }

    /// Delay before the next try; `None` when a retry cannot succeed.
    pub(crate) fn pause_after(&mut self, error: &CallError) -> Option<Duration> {
        self.failing_since.get_or_insert_with(Instant::now);
        let pause = match error.class() {
            Class::Ambiguous => {
                self.lost |= !error.is_webhook_failure();
                self.next_pause()
            }
            Class::Throttled(pause) => pause,
            Class::Conflict | Class::Gone | Class::Invalid(_) | Class::Rejected(_) | Class::Denied => {
                return None;
            }
        };
        tracing::debug!(error = error.message(), "retrying the write");
        Some(pause)
    }
}

/// Repeats a request from `slot` until its outcome is known. It must be safe to repeat.
///
/// # Errors
/// The first error that proves that the write did not happen.
pub(crate) async fn confirm<T, F: Future<Output = Result<T, CallError>>>(
    slot: &mut RequestSlot<'_>,
    mut request: impl FnMut() -> F,
) -> Result<T, CallError> {
    let mut tries = Tries::new();
    loop {
        slot.acquire().await;
        let error = match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match tries.pause_after(&error) {
            Some(pause) => slot.back_off(pause).await,
            None => return Err(error),
        }
    }
}
