//! The periods of leader election and the rules between them.

use std::time::Duration;
use thiserror::Error;

/// The delay between two tries of a candidate is up to this factor longer than the retry period, as in client-go, so
/// that candidates do not all try at the same time.
const JITTER: f64 = 1.2;

/// Delay of the first plan of a leader that had begun to list before the last leader released the lease. Its watches must
/// show the last leader's writes, or the same sandboxes would be created again.
pub(crate) const HANDOVER: Duration = Duration::from_millis(250);

/// Deadline for the release of the lease, the last request before the process ends.
pub(crate) const RELEASE: Duration = Duration::from_secs(5);

/// Three periods that fit each other.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    lease_seconds: i32,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// Why periods do not fit each other. The rules are client-go's.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum TimingError {
    /// The Lease stores its duration in seconds.
    #[error("--leader-elect-lease-duration must be a whole number of seconds, at least 1s")]
    Lease,
    /// Two processes would lead at the same time.
    #[error("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline")]
    Deadline,
    /// One lost request would end leadership.
    #[error("--leader-elect-renew-deadline must be longer than 1.2 times --leader-elect-retry-period")]
    Retry,
    /// Requests would follow each other without a delay.
    #[error("--leader-elect-retry-period must be at least 100ms")]
    Period,
}

impl Timing {
    /// `lease`: how long candidates respect a lease that is not renewed. `renew_deadline`: how long a leader tries to
    /// renew it. `retry_period`: the delay between two tries.
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

    /// How long candidates respect an unrenewed lease, in seconds.
    pub fn lease_seconds(&self) -> i32 {
        self.lease_seconds
    }

    /// How long after its last confirmed renewal a leader stops.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// The least delay between two tries.
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// The delay of a candidate; `chance` is between 0 and 1.
    pub fn pause(&self, chance: f64) -> Duration {
        self.retry_period.mul_f64(1.0 + JITTER * chance.clamp(0.0, 1.0))
    }

    /// Deadline of one request: half of the renew deadline, so that a second try fits in.
    pub fn request_deadline(&self) -> Duration {
        self.renew_deadline / 2
    }
}
