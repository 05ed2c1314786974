//! Times how long objects wait for their reconcile.

use crate::cache::reconcile_request::ReconcileRequest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The objects that wait, each with the start of its wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue(Arc<Mutex<HashMap<ReconcileRequest, Instant>>>);

impl Queue {
    /// The object waits from now on, unless it waits already.
    pub(crate) fn enter(&self, object: ReconcileRequest) {
        self.lock().entry(object).or_insert_with(Instant::now);
    }

    /// The object waits no more. Returns how long it has waited; `None` for a timed requeue.
    pub(crate) fn leave(&self, object: &ReconcileRequest) -> Option<Duration> {
        self.lock().remove(object).map(|since| since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ReconcileRequest, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
