//! How many sandboxes the claims call for.
//!
//! A claim finds a sandbox available if and only if no more sandboxes were requested within the last warm-up time than
//! the pool keeps. So the least size for a hit rate is the quantile of that number, as seen at each arrival, whatever
//! the process of the arrivals is.

use crate::model::autoscaling::HitRate;
use crate::model::demand::Demand;
use crate::model::demand::recent_needs::Need;
use jiff::Timestamp;

/// Warm-up times to be seen before the quantile is trusted alone.
const ENOUGH_WARM_UPS: f64 = 30.0;
/// How far above its mean a number may be until enough was seen, in standard deviations of a Poisson process: 99.9 % of
/// the numbers are below.
const DEFAULT_SPREAD: f64 = 3.0;
/// The quantile that measures how far the numbers vary, whatever the hit rate is.
const FAR: f64 = 0.999;
/// A number this far above the mean is a surge. The unit is the distance from the mean to the [`FAR`] quantile.
const SURGE: f64 = 1.35;
/// A rate this far above the mean shows that the demand has grown, in the unit of [`SURGE`].
const GROWTH: f64 = 0.26;

/// What the claims call for now, when claims called for `peak` within this plan.
pub(super) fn need(demand: &Demand, target: HitRate, peak: usize, now: Timestamp) -> Need {
    let (seen, share) = (&demand.arrivals.seen, target.share());
    let (total, mean) = seen.total_and_mean();
    let [long, far] = seen.quantiles([share, FAR]);
    let enough = (1.0 / (1.0 - share)).max(ENOUGH_WARM_UPS * mean);
    let above_mean = |number: usize| (number as f64 - mean).max(1.0);
    let asked_for = demand.arrivals.recent.count(now, demand.warm_up) as f64;
    let expected = demand.arrivals_per_warm_up(now);
    let fast = if total < enough {
        with_spread(asked_for, DEFAULT_SPREAD)
    } else {
        let spread = above_mean(long) / mean.max(1.0).sqrt();
        let far = above_mean(far);
        let surge = asked_for > mean + SURGE * far;
        let growth = expected > mean + GROWTH * far;
        let of_surge = if surge { with_spread(asked_for, spread) } else { 0 };
        of_surge.max(if growth { with_spread(expected, spread) } else { 0 })
    };
    Need { peak, long, fast }
}

/// A size for a number that is `level` on average. A claim that comes alone needs one sandbox.
fn with_spread(level: f64, spread: f64) -> usize {
    // A float becomes the nearest integer that the type can hold.
    (level + spread * (level - 1.0).max(0.0).sqrt()).ceil() as usize
}

/// The size for the highest needs of the last minutes. The claims of the last hours call for no more than twice of what
/// claims requested within one warm-up time since: when claims become fewer, the pool need not wait for hours.
pub(super) fn size_for(highest: Need) -> usize {
    highest.long.min(highest.peak.saturating_mul(2)).max(highest.fast)
}
