//! The state of each watch, for the readiness probe and the metrics.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state of one watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The watch has delivered its first list.
    pub complete: bool,
    /// How often the watch failed and was restarted.
    pub restarts: u64,
    /// Why the watch failed last.
    pub error: Option<String>,
    /// The operator has no right to the kind, and works without it.
    pub denied: bool,
}

/// The watches by kind.
#[derive(Debug, Default)]
pub struct Watches(Mutex<BTreeMap<String, Watch>>);

impl Watches {
    /// The watch of `kind` starts.
    pub fn begins(&self, kind: &str) {
        self.note(kind, |_| {});
    }

    /// The watch of `kind` has delivered a complete list.
    pub fn complete(&self, kind: &str) {
        self.note(kind, |watch| (watch.complete, watch.denied) = (true, false));
    }

    /// The operator has no right to `kind`, which it can do without.
    pub fn denied(&self, kind: &str, error: String) {
        self.failed(kind, error);
        self.note(kind, |watch| watch.denied = true);
    }

    /// The watch of `kind` has ended, because the API server no longer serves the kind.
    pub fn ended(&self, kind: &str) {
        self.lock().remove(kind);
    }

    /// The watch of `kind` failed and is restarted.
    pub fn failed(&self, kind: &str, error: String) {
        self.note(kind, |watch| {
            watch.restarts += 1;
            watch.error = Some(error);
        });
    }

    /// The state of each watch.
    pub fn now(&self) -> BTreeMap<String, Watch> {
        self.lock().clone()
    }

    fn note(&self, kind: &str, change: impl FnOnce(&mut Watch)) {
        change(self.lock().entry(kind.to_string()).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Watch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
