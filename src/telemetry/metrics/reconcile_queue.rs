//! Since when objects wait to be looked at.

use crate::cache::index::ReconcileRequest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The objects that wait, each since when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue(Arc<Mutex<HashMap<ReconcileRequest, Instant>>>);

impl Queue {
    /// The object waits from now on, if it does not already.
    pub(crate) fn enter(&self, object: ReconcileRequest) {
        self.lock().entry(object).or_insert_with(Instant::now);
    }

    /// The object waits no more. Answers how long it has, if anything but time had it looked at.
    pub(crate) fn leave(&self, object: &ReconcileRequest) -> Option<Duration> {
        self.lock().remove(object).map(|since| since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ReconcileRequest, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
