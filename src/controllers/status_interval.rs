//! Limits how often the status of a pool is written.

use jiff::{SignedDuration, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Least time between two writes of one pool's status. Claims and rollouts change it many times a second; nobody reads it as
/// fast, and each write costs the API server as much as a binding.
pub const INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// When each pool's status was written last, by UID.
#[derive(Debug, Default)]
pub struct StatusWrites(Mutex<HashMap<String, Timestamp>>);

impl Clone for StatusWrites {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }
}

impl StatusWrites {
    /// Notes a write at `now`.
    ///
    /// # Errors
    /// The moment from which the status may be written, when the last write was within [`INTERVAL`].
    pub(crate) fn start_write(&self, pool_uid: &str, now: Timestamp) -> Result<(), Timestamp> {
        let mut written = self.lock();
        let last = written.get(pool_uid);
        let due = last.and_then(|last| last.checked_add(INTERVAL).ok());
        // A clock that was set back must not delay the status for longer than the interval.
        if let Some(due) = due.filter(|due| *due > now && due.duration_since(now) <= INTERVAL) {
            return Err(due);
        }
        written.retain(|_, last| now.duration_since(*last) < INTERVAL);
        written.insert(pool_uid.to_string(), now);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
