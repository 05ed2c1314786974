//! When a large pool is planned next while no claim waits for it.
//!
//! Each event of a pod asks for a plan of the whole pool: without a pause, a pool of N sandboxes would cost N plans of
//! N sandboxes to fill.

use crate::cache::index::Index;
use crate::model::Key;
use jiff::{SignedDuration, Timestamp};

/// Pause between two plans, for each sandbox of the pool: at least a hundred times what a plan takes, so that a pool
/// that nobody waits for takes a hundredth of one processor at most. A pool of 1,000 is planned twenty times a second.
const PAUSE_PER_SANDBOX: SignedDuration = SignedDuration::from_micros(50);
/// A shorter pause saves less than its timer costs: pools of fewer than 200 sandboxes are planned at every event.
const SHORTEST_PAUSE: SignedDuration = SignedDuration::from_millis(10);
/// Longest pause, for pools of 10,000 or more: half of what the status of a pool lags behind anyway.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_millis(500);

/// When the pool is planned; `None`: now. A pool that a claim waits for is planned now.
pub fn postponed(index: &Index, pool: &Key, now: Timestamp) -> Option<Timestamp> {
    let sandboxes = i32::try_from(index.count_of(pool)).unwrap_or(i32::MAX);
    let pause = (PAUSE_PER_SANDBOX * sandboxes).min(LONGEST_PAUSE);
    if pause < SHORTEST_PAUSE {
        return None;
    }
    let pool = index.pool(pool)?;
    let last = index.pool_memory(&pool)?.planned_at?;
    let due = last.checked_add(pause).ok()?;
    // A clock that was set back postpones nothing.
    let is_due = due <= now || last > now;
    (!is_due && !index.has_claim_waiting_for(&pool, now)).then_some(due)
}
