//! When a large pool is planned next while a plan would serve no claim.
//!
//! Each event of a pod or claim asks for a plan of the whole pool: without a pause, a pool of N sandboxes would cost N
//! plans of N sandboxes to fill, and a burst of N claims N plans of N claims.

use crate::cache::index::Index;
use crate::model::Key;
use crate::planner::bind_limit;
use jiff::{SignedDuration, Timestamp};

/// Pause between two plans, for each sandbox and each waiting claim of the pool: at least a hundred times what a plan
/// takes, so that a pool that no plan helps takes a hundredth of one processor at most. A pool of 1,000 is planned
/// twenty times a second.
const PAUSE_PER_OBJECT: SignedDuration = SignedDuration::from_micros(50);
/// A shorter pause saves less than its timer costs: pools of fewer than 200 objects are planned at every event.
const SHORTEST_PAUSE: SignedDuration = SignedDuration::from_millis(10);
/// Longest pause, for pools of 10,000 or more: half of what the status of a pool lags behind anyway.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_millis(500);

/// When the pool is planned; `None`: now. A pool that a claim waits for is planned now, unless so many bindings are in
/// flight that the plan would send no other.
pub fn postponed(index: &Index, pool: &Key, now: Timestamp) -> Option<Timestamp> {
    let objects = index.count_of(pool) + index.waiting_claims.length(pool);
    let pause = (PAUSE_PER_OBJECT * i32::try_from(objects).unwrap_or(i32::MAX)).min(LONGEST_PAUSE);
    if pause < SHORTEST_PAUSE {
        return None;
    }
    let pool = index.pool(pool)?;
    let last = index.pool_memory(&pool)?.planned_at?;
    let due = last.checked_add(pause).ok()?;
    // A clock that was set back postpones nothing.
    if due <= now || last > now {
        return None;
    }
    let binds = index.has_claim_waiting_for(&pool, now) && !bind_limit::is_reached(index, &pool, now);
    (!binds).then_some(due)
}
