//! How long a pool creates nothing after the API server refused a pod.

use crate::cache::snapshot::Creation;
use crate::client::call::{CallError, Class, MAX_RETRY_DELAY};
use crate::model::pool::Pool;
use crate::model::revision::Template;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// First pause; each further refusal doubles it.
const FIRST: SignedDuration = SignedDuration::from_secs(1);
/// Longest pause.
const LONGEST: SignedDuration = SignedDuration::from_secs(MAX_RETRY_DELAY.cast_signed());

#[derive(Clone, Debug)]
struct Rejection {
    /// A PodTemplate is mended without a change of the pool, and then tried at once, too.
    template: Arc<Template>,
    until: Timestamp,
    pause: SignedDuration,
    message: String,
}

/// A pool as its user wrote it last: UID and generation. A changed spec is tried at once.
type Spec = (String, i64);

/// Pools whose pods were refused.
#[derive(Clone, Debug, Default)]
pub struct Backoff(BTreeMap<Spec, Rejection>);

impl Backoff {
    /// Notes a failure at `now` and answers the pause, which is as long as the API server asks for at least. Failures
    /// within one pause are one.
    pub fn failed(&mut self, pool: &Pool, error: &CallError, now: Timestamp) -> SignedDuration {
        let message = error.message();
        let asked = match error.class() {
            Class::Throttled(pause) => SignedDuration::try_from(pause).unwrap_or(LONGEST),
            _ => FIRST,
        };
        // What is long over says nothing of what is refused now.
        self.0.retain(|_, r| !r.is_long_over(now));
        let pause = match self.0.get(&spec(pool)).filter(|r| r.is_of(pool)) {
            Some(earlier) if earlier.until > now => return earlier.pause,
            Some(earlier) => (earlier.pause + earlier.pause).min(LONGEST),
            None => FIRST,
        }
        .max(asked);
        let until = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        self.0.insert(
            spec(pool),
            Rejection {
                template: Arc::clone(&pool.template),
                until,
                pause,
                message,
            },
        );
        pause
    }

    /// A pod was created.
    pub fn succeeded(&mut self, pool: &Pool) {
        self.0.remove(&spec(pool));
    }

    /// Whether pods of `pool` may be created at `now`.
    pub fn of(&self, pool: &Pool, now: Timestamp) -> Creation {
        self.0
            .get(&spec(pool))
            .filter(|r| r.is_of(pool) && !r.is_long_over(now))
            .map_or(Creation::Open, |r| Creation::BackOff {
                until: r.until,
                message: r.message.clone(),
            })
    }
}

impl Rejection {
    fn is_of(&self, pool: &Pool) -> bool {
        self.template.canonical == pool.template.canonical
    }

    /// Its pause ended long ago, and nothing was tried since: nothing was wanted.
    fn is_long_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.until) >= LONGEST + LONGEST
    }
}

fn spec(pool: &Pool) -> Spec {
    (pool.uid.clone(), pool.generation)
}
