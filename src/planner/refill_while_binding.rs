//! Limits the refill of a pool while its claims are being bound: a claim waits for its binding, and nobody for a refill.

use crate::planner::draft::Draft;

/// Most refills of one pool in flight while its claims are being bound. As many as keep an API server busy that has nothing else
/// to do: each is answered within some 10 ms, so that claims without a pause do not keep the pool from being refilled.
const REFILLS_WHILE_BINDING: usize = 4;

/// How many of `count` creations may be sent while `in_flight` are unanswered. A creation that a claim waits for never yields.
pub(crate) fn allowed(draft: &Draft, count: usize, in_flight: usize) -> usize {
    if draft.demand > 0 || draft.being_bound == 0 {
        return count;
    }
    count.min(REFILLS_WHILE_BINDING.saturating_sub(in_flight))
}
