//! Logs that claims begin to wait: one line for many.

use crate::cache::claim_queues::queue_of;
use crate::cache::synced_cache::SharedCache;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::telemetry::log_once::log_once;
use std::time::Duration;
use tracing::field::{DisplayValue, display};

/// For how long the log is silent on claims that wait for the same reason in a queue of the same size.
const QUEUE_SILENCE: Duration = Duration::from_secs(60);

/// Logs that claims wait, of which `claim` is one: one line a minute for a pool and a reason, and another each time
/// that the queue has doubled.
pub(crate) fn log_queue(
    shared: &SharedCache,
    claim: &Claim,
    pool: Option<DisplayValue<&Key>>,
    reason: &str,
    message: &str,
) {
    let queue = queue_of(claim);
    let waiting = shared.lock().waiting_claims.len(&queue);
    let key = format!("{queue} {reason} {:?}", waiting.checked_ilog2());
    log_once(&key, QUEUE_SILENCE, || {
        let oldest = shared.lock().oldest_of(&queue).cloned();
        let since = oldest.as_ref().map(|oldest| oldest.waits_from(oldest.arrived));
        let waited = since.map(|since| shared.now().duration_since(since).as_secs());
        let oldest = oldest.as_ref().map(|oldest| display(&oldest.key));
        tracing::info!(
            pool,
            reason,
            waiting,
            oldest,
            oldest_waits_seconds = waited,
            "claims wait: {message}"
        );
    });
}
