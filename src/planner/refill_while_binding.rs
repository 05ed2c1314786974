//! Limits the refill of a pool while its claims are being bound, because no claim waits for a refill.

use crate::planner::bind_limit::BINDINGS_IN_FLIGHT;
use crate::planner::draft::Draft;
use jiff::SignedDuration;

/// Most refills of one pool in flight while its claims are being bound. This many keep an otherwise idle API server
/// busy. Each is answered within about 10 ms, so a constant stream of claims does not stop the refill.
const REFILLS_WHILE_BINDING: usize = 4;

/// A burst of claims is bound within this time. Claims that take sandboxes for longer are a stream.
const BURST: SignedDuration = SignedDuration::from_secs(3);

/// No claim of a burst that has come to its end arrived within this time. Times of arrival may be whole seconds.
const STILL_COMING: SignedDuration = SignedDuration::from_secs(2);

/// How many of `count` creations may be sent while `in_flight` are unanswered. A creation that a claim waits for never
/// yields, and neither does a refill that falls behind: the pool would run low. None is sent while claims wait for the
/// limit of bindings in flight: each would hold up a queue.
pub(crate) fn allowed(draft: &Draft, count: usize, in_flight: usize) -> usize {
    if draft.demand > 0 || draft.being_bound == 0 || falls_behind(draft, count + in_flight) {
        return count;
    }
    if draft.being_bound >= BINDINGS_IN_FLIGHT {
        return 0;
    }
    count.min(REFILLS_WHILE_BINDING.saturating_sub(in_flight))
}

/// Claims keep coming and have been taking sandboxes for longer than a burst lasts, and more are missing than claims took
/// within that time.
fn falls_behind(draft: &Draft, missing: usize) -> bool {
    let (now, taken) = (draft.snapshot.now, &draft.snapshot.recent_claims);
    let lately = taken
        .iter()
        .filter(|at| now.duration_since(**at) <= BURST)
        .count();
    let mut claims = draft.snapshot.claims.iter();
    let keep_coming = claims.any(|waiting| now.duration_since(waiting.claim.arrived) <= STILL_COMING);
    keep_coming && lately < taken.len() && lately < missing
}
