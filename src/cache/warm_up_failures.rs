//! Sandboxes that failed to come up, by pool and revision. A process knows those it saw; after a restart the
//! count begins anew.

use crate::cache::snapshot::WarmUpFailures;
use std::collections::{BTreeMap, HashMap};

/// Failures in a row, by UID of the pool, then by revision.
#[derive(Clone, Debug, Default)]
pub struct Failures(HashMap<String, BTreeMap<String, WarmUpFailures>>);

impl Failures {
    /// Takes over what a plan has counted for the pool with UID `pool`.
    pub fn note(&mut self, pool: &str, counted: &BTreeMap<String, WarmUpFailures>) {
        if counted.is_empty() {
            self.0.remove(pool);
        } else if self.0.get(pool) != Some(counted) {
            self.0.insert(pool.to_string(), counted.clone());
        }
    }

    /// What is known of the pool with UID `pool`.
    pub fn of(&self, pool: &str) -> BTreeMap<String, WarmUpFailures> {
        self.0.get(pool).cloned().unwrap_or_default()
    }

    /// The pool with UID `pool` is gone.
    pub fn forget(&mut self, pool: &str) {
        self.0.remove(pool);
    }
}
