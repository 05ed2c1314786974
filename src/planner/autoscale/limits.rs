//! What keeps a pool from the size that its claims call for.

use crate::cache::snapshot::ScalingLimit;
use jiff::SignedDuration;

/// The numbers that limit a size.
pub(super) struct Facts {
    /// The size that the claims call for.
    pub(super) needed: usize,
    /// The chosen size.
    pub(super) size: usize,
    /// Least size.
    pub(super) floor: usize,
    /// Highest size.
    pub(super) ceiling: usize,
    /// The API server rejects pods of the pool.
    pub(super) is_rejected: bool,
    /// Sandboxes that may warm up at once.
    pub(super) warming: usize,
    /// Sandboxes that are requested within a warm-up time on average.
    pub(super) in_warm_up: f64,
}

/// The limit that counts first.
pub(super) fn of(facts: &Facts) -> ScalingLimit {
    // On average, as many sandboxes warm up as are claimed in a warm-up time. With a limit near that average, more and
    // more claims wait.
    let busiest = facts.in_warm_up + 4.0 * facts.in_warm_up.sqrt();
    if facts.is_rejected && facts.needed > facts.size {
        ScalingLimit::Rejected
    } else if facts.needed > facts.ceiling {
        ScalingLimit::TooMany
    } else if facts.warming < facts.size && (facts.warming as f64) < busiest {
        ScalingLimit::Warming
    } else if facts.needed < facts.floor {
        ScalingLimit::TooFew
    } else {
        ScalingLimit::None
    }
}

/// How long no claim must arrive until `warming` sandboxes at once are clearly enough. The rate of claims falls by a
/// factor of e with each `memory`.
pub(super) fn slow_down(warming: usize, in_warm_up: f64, memory: SignedDuration) -> SignedDuration {
    let bearable = ((4.0 + warming as f64).sqrt() - 2.0).powi(2);
    let memories = (in_warm_up / bearable).ln().max(0.0);
    let millisecond = SignedDuration::from_millis(1);
    memory.mul_f64(memories).saturating_add(millisecond)
}
