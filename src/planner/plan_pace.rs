//! When a large pool is planned next while a plan would serve no claim.
//!
//! Each event of a pod or claim asks for a plan of the whole pool: without a pause, a pool of N sandboxes would cost N
//! plans of N sandboxes to fill, and a burst of N claims N plans of N claims.

use crate::cache::index::Index;
use crate::model::Key;
use crate::planner::bind_limit;
use jiff::{SignedDuration, Timestamp};

/// Pause between two plans, for each sandbox and each waiting claim of the pool: at least a hundred times what a plan
/// takes, so that a pool that no plan helps takes a hundredth of one processor at most.
const PAUSE_PER_OBJECT: SignedDuration = SignedDuration::from_micros(50);
/// Shortest pause, for pools of 1,000 or fewer. A claim, its replacement and the events of both fall into it together.
const SHORTEST_PAUSE: SignedDuration = SignedDuration::from_millis(50);
/// Longest pause, for pools of 10,000 or more: half of what the status of a pool lags behind anyway.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_millis(500);
/// Pools of fewer objects are planned at every event: there a pause saves less than its timer costs.
const FEW_OBJECTS: usize = 100;

/// When the pool is planned; `None`: now. A pool that a claim waits for is planned now, unless so many bindings are in
/// flight that the plan would send no other. So is a pool with the shortest pause whose claims have taken sandboxes and
/// are published: the replacement of a sandbox would otherwise meet the next claim at the API server. A plan of a larger
/// pool costs more than that.
pub fn postponed(index: &Index, pool: &Key, now: Timestamp) -> Option<Timestamp> {
    let objects = index.count_of(pool) + index.waiting_claims.length(pool);
    if objects < FEW_OBJECTS {
        return None;
    }
    let pause = PAUSE_PER_OBJECT * i32::try_from(objects).unwrap_or(i32::MAX);
    let pause = pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    let pool = index.pool(pool)?;
    let memory = index.pool_memory(&pool)?;
    let last = memory.planned_at?;
    let due = last.checked_add(pause).ok()?;
    // A clock that was set back postpones nothing.
    if due <= now || last > now {
        return None;
    }
    let binds = index.has_claim_waiting_for(&pool, now) && !bind_limit::is_reached(index, &pool, now);
    let refills = pause == SHORTEST_PAUSE
        && memory.recent_claims.any_since(last)
        && index.unpublished_bindings(&pool, now).next().is_none();
    (!binds && !refills).then_some(due)
}
