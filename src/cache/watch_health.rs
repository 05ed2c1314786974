//! How the watches fare: what a person is told who asks why the operator is not ready.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How one watch fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// It has delivered its first list.
    pub complete: bool,
    /// Times it failed and was begun again.
    pub restarts: u64,
    /// Why it failed last.
    pub error: Option<String>,
}

/// The watches by kind.
#[derive(Debug, Default)]
pub struct Watches(Mutex<BTreeMap<String, Watch>>);

impl Watches {
    /// The watch of `kind` begins.
    pub fn begins(&self, kind: &str) {
        self.note(kind, |_| {});
    }

    /// The watch of `kind` has delivered a complete list.
    pub fn complete(&self, kind: &str) {
        self.note(kind, |watch| watch.complete = true);
    }

    /// The watch of `kind` has failed and is begun again.
    pub fn failed(&self, kind: &str, error: String) {
        self.note(kind, |watch| {
            watch.restarts += 1;
            watch.error = Some(error);
        });
    }

    /// How each watch fares now.
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
