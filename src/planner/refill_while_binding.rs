//! Limits the refill of a pool while its claims are being bound, because no claim waits for a refill.

use crate::planner::draft::Draft;

/// Most refills of one pool in flight while its claims are being bound. This many keep an otherwise idle API server
/// busy. Each is answered within about 10 ms, so a constant stream of claims does not stop the refill.
const REFILLS_WHILE_BINDING: usize = 4;

/// How many of `count` creations may be sent while `in_flight` are unanswered. A creation that a claim waits for never
/// yields.
pub(crate) fn allowed(draft: &Draft, count: usize, in_flight: usize) -> usize {
    if draft.demand > 0 || draft.being_bound == 0 {
        return count;
    }
    count.min(REFILLS_WHILE_BINDING.saturating_sub(in_flight))
}
