//! How long a pool creates nothing after the API server rejected a pod.

use crate::cache::snapshot::Creation;
use crate::model::pool::Pool;
use crate::model::revision::Template;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// First pause; each further rejection doubles it.
const FIRST: SignedDuration = SignedDuration::from_secs(1);
/// Longest pause. A person often removes the obstacle (a quota, a webhook) and then waits.
const LONGEST: SignedDuration = SignedDuration::from_secs(60);

/// The last rejection of a pool's pods, if there is one.
#[derive(Clone, Debug, Default)]
pub struct CreationBackoff(Option<Rejection>);

#[derive(Clone, Debug)]
struct Rejection {
    /// `metadata.generation` of the pool. A changed spec is tried at once.
    generation: i64,
    /// A PodTemplate changes without a change of the pool, and is then tried at once, too.
    template: Arc<Template>,
    until: Timestamp,
    pause: SignedDuration,
    message: String,
}

impl CreationBackoff {
    /// Notes a failure at `now` and returns the pause, which lasts at least as long as the API server `asks`. Failures
    /// within one pause count once.
    pub fn failed(
        &mut self,
        pool: &Pool,
        message: String,
        asks: Option<Duration>,
        now: Timestamp,
    ) -> SignedDuration {
        let asked = asks.map_or(FIRST, |asks| SignedDuration::try_from(asks).unwrap_or(LONGEST));
        if let Some(newer) = self.0.as_ref().filter(|r| r.generation > pool.generation) {
            return newer.pause;
        }
        let pause = match self.0.as_ref().filter(|r| r.is_of(pool) && !r.is_long_over(now)) {
            Some(earlier) if earlier.until > now => return earlier.pause,
            Some(earlier) => (earlier.pause + earlier.pause).min(LONGEST),
            None => FIRST,
        }
        .max(asked);
        self.0 = Some(Rejection {
            generation: pool.generation,
            template: Arc::clone(&pool.template),
            until: now.checked_add(pause).unwrap_or(Timestamp::MAX),
            pause,
            message,
        });
        pause
    }

    /// Whether the last rejection had this message. The names of the pods in it differ.
    pub fn says(&self, message: &str) -> bool {
        let without_name = |message: &str| message.splitn(3, '"').nth(2).unwrap_or(message).to_string();
        self.0
            .as_ref()
            .is_some_and(|r| without_name(&r.message) == without_name(message))
    }

    /// The API server created a pod of `pool`. Returns whether it had rejected one before.
    pub fn succeeded(&mut self, pool: &Pool) -> bool {
        self.0.take_if(|r| r.generation == pool.generation).is_some()
    }

    /// Whether pods of `pool` may be created at `now`.
    pub fn state(&self, pool: &Pool, now: Timestamp) -> Creation {
        let rejection = self.0.as_ref().filter(|r| r.is_of(pool) && !r.is_long_over(now));
        rejection.map_or(Creation::Open, |r| Creation::BackOff {
            until: r.until,
            message: r.message.clone(),
        })
    }
}

impl Rejection {
    fn is_of(&self, pool: &Pool) -> bool {
        self.generation == pool.generation && self.template.canonical == pool.template.canonical
    }

    /// The pause ended long ago, and nothing was tried since: nothing was wanted.
    fn is_long_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.until) >= LONGEST + LONGEST
    }
}
