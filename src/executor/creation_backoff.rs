//! How long a pool creates nothing after a creation failed.

use crate::cache::snapshot::Creation;
use crate::client::call::{CallError, Class, MAX_RETRY_DELAY};
use crate::model::pool::Pool;
use crate::model::revision::Template;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// First pause; each further failure doubles it.
const FIRST: SignedDuration = SignedDuration::from_secs(1);
/// Longest pause.
const LONGEST: SignedDuration = SignedDuration::from_secs(MAX_RETRY_DELAY.cast_signed());

#[derive(Clone, Debug)]
struct Failure {
    /// A PodTemplate can be repaired without a change of the pool. Then creation is tried at once, too.
    template: Arc<Template>,
    until: Timestamp,
    pause: SignedDuration,
    message: String,
}

/// UID and generation of a pool. A changed spec is tried at once.
type Spec = (String, i64);

/// The pools whose creations failed.
#[derive(Clone, Debug, Default)]
pub struct Backoff(BTreeMap<Spec, Failure>);

impl Backoff {
    /// Notes a failure at `now` and returns the pause, at least as long as the API server asks for. Failures within one pause
    /// count as one.
    pub fn failed(&mut self, pool: &Pool, error: &CallError, now: Timestamp) -> SignedDuration {
        let message = error.message();
        let minimum = match error.class() {
            Class::Throttled(pause) => SignedDuration::try_from(pause).unwrap_or(LONGEST),
            _ => FIRST,
        };
        // A failure of long ago says nothing about this one.
        self.0.retain(|_, r| !r.is_long_over(now));
        let pause = match self.0.get(&spec(pool)).filter(|r| r.is_of(pool)) {
            Some(earlier) if earlier.until > now => return earlier.pause,
            Some(earlier) => (earlier.pause + earlier.pause).min(LONGEST),
            None => FIRST,
        }
        .max(minimum);
        let until = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        self.0.insert(
            spec(pool),
            Failure {
                template: Arc::clone(&pool.template),
                until,
                pause,
                message,
            },
        );
        pause
    }

    /// Ends the pause of `pool`: a pod was created.
    pub fn succeeded(&mut self, pool: &Pool) {
        self.0.remove(&spec(pool));
    }

    /// Whether the pool may create pods at `now`.
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

impl Failure {
    fn is_of(&self, pool: &Pool) -> bool {
        self.template.canonical == pool.template.canonical
    }

    /// The pause ended long ago without a further try: no pod was needed.
    fn is_long_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.until) >= LONGEST + LONGEST
    }
}

fn spec(pool: &Pool) -> Spec {
    (pool.uid.clone(), pool.generation)
}
