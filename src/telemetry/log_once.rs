//! Logs the same text only once in a while.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Until when each text is not logged again. Static, because the process has one log.
static SILENT_UNTIL: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

/// Writes, unless something was written under the same key within `silence`.
pub(crate) fn log_once(key: &str, silence: Duration, write: impl FnOnce()) {
    let now = Instant::now();
    let mut silent_until = SILENT_UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
    silent_until.retain(|_, end| *end > now);
    if silent_until.contains_key(key) {
        return;
    }
    silent_until.insert(key.to_string(), now + silence);
    drop(silent_until);
    write();
}
