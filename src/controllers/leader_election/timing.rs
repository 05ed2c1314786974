//! How long a lease lasts, and how often and how long it is renewed.

use std::time::Duration;
use thiserror::Error;

/// Pauses between two tries of a candidate are up to this much longer than the retry period, as in client-go, so that
/// candidates do not ask all at once.
const JITTER: f64 = 1.2;

/// The three periods of leader election, which fit each other.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    lease_seconds: i32,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// Why three periods do not fit each other. The rules are client-go's.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum TimingError {
    /// The Lease object has its duration in seconds.
    #[error("--leader-elect-lease-duration must be a whole number of seconds, at least 1s")]
    Lease,
    /// Two would lead at once.
    #[error("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline")]
    Deadline,
    /// One lost request would end leadership.
    #[error("--leader-elect-renew-deadline must be longer than 1.2 times --leader-elect-retry-period")]
    Retry,
    /// The API server would be asked without a pause.
    #[error("--leader-elect-retry-period must be at least 100ms")]
    Period,
}

impl Timing {
    /// `lease`: how long others leave a lease alone that is not renewed. `renew_deadline`: how long a leader tries to
    /// renew it before it gives up. `retry_period`: the pause between two tries.
    ///
    /// # Errors
    /// When they do not fit each other.
    pub fn new(
        lease: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, TimingError> {
        let lease_seconds = i32::try_from(lease.as_secs()).unwrap_or(0);
        if lease_seconds < 1 || lease.subsec_nanos() > 0 {
            return Err(TimingError::Lease);
        }
        if lease <= renew_deadline {
            return Err(TimingError::Deadline);
        }
        if retry_period < Duration::from_millis(100) {
            return Err(TimingError::Period);
        }
        if renew_deadline <= retry_period.mul_f64(JITTER) {
            return Err(TimingError::Retry);
        }
        Ok(Self {
            lease_seconds,
            renew_deadline,
            retry_period,
        })
    }

    /// How long others leave an unrenewed lease alone, in seconds.
    pub fn lease_seconds(&self) -> i32 {
        self.lease_seconds
    }

    /// How long after its last confirmed renewal a leader gives up.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// The least pause between two tries.
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// A pause of a candidate; `chance` is between 0 and 1.
    pub fn pause(&self, chance: f64) -> Duration {
        self.retry_period.mul_f64(1.0 + JITTER * chance.clamp(0.0, 1.0))
    }

    /// Longest wait for the answer to one request: half of the renew deadline, so that a second try fits in.
    pub fn patience(&self) -> Duration {
        self.renew_deadline / 2
    }
}
