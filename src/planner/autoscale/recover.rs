//! What an operator that takes over knows of the demand: what the status of the pool says.

use crate::api::autoscaling::AutoscalingStatus;
use crate::model::autoscaling::{HitRate, ResolvedAutoscaling};
use crate::model::demand::Demand;
use crate::model::demand::hit_count::HitCount;
use crate::model::demand::recent_needs::Need;
use crate::model::demand::recent_rate::RecentRate;
use crate::model::pool::Pool;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// Most claims that the stored sizes stand for: they are a summary, and claims that come count soon.
const MOST_CLAIMS: f64 = 10_000.0;

/// The size that the status says.
pub(super) fn last_size(pool: &Pool) -> usize {
    usize::try_from(pool.status.desired_replicas).unwrap_or_default()
}

/// What is known at `now` of a pool whose least size is `floor`. The pool keeps the size of the status until claims
/// call for another one, or a smaller one has been enough for the stabilization window.
pub(super) fn recover(
    pool: &Pool,
    autoscaling: &ResolvedAutoscaling,
    floor: usize,
    now: Timestamp,
) -> Demand {
    let most = autoscaling.max_replicas;
    let mut demand = Demand {
        size: last_size(pool).clamp(floor.min(most), most),
        ..Demand::default()
    };
    if demand.size > floor {
        let need = Need {
            peak: demand.size,
            long: demand.size,
            fast: 0,
        };
        Arc::make_mut(&mut demand.arrivals)
            .needs
            .note(need, now, autoscaling.window);
    }
    if let Some(status) = &pool.status.autoscaling {
        recall(&mut demand, status, now);
    }
    demand
}

fn recall(demand: &mut Demand, status: &AutoscalingStatus, now: Timestamp) {
    demand.resized_at = status.last_scale_time.as_ref().map(|time| time.0);
    if status.warm_up_milliseconds > 0 {
        demand.warm_up = SignedDuration::from_millis(status.warm_up_milliseconds);
        demand.seen_with = demand.warm_up;
    }
    let per_second = status.arrivals_per_hour.max(0) as f64 / 3600.0;
    let rate = RecentRate::known(per_second, now, demand.rate_memory());
    Arc::make_mut(&mut demand.arrivals).rate = rate;
    let claims = (status.claims.max(0) as f64).min(MOST_CLAIMS);
    let percent = status.hit_rate.as_deref().and_then(|rate| rate.strip_suffix('%'));
    if let Some(percent) = percent.and_then(|percent| percent.parse::<f64>().ok()) {
        demand.hits = HitCount::known(claims, (percent / 100.0).clamp(0.0, 1.0));
    }
    recall_sizes(demand, status, claims);
}

/// Between two stored hit rates, all claims count as if they had called for the larger size.
fn recall_sizes(demand: &mut Demand, status: &AutoscalingStatus, claims: f64) {
    let seen = &mut Arc::make_mut(&mut demand.arrivals).seen;
    let mut below = 0.0;
    for size in &status.sizes {
        let share = HitRate::parse(&size.hit_rate).map_or(1.0, HitRate::share);
        let replicas = usize::try_from(size.replicas).unwrap_or_default();
        let weight = (share - below).max(0.0) * claims;
        seen.add_weight(replicas, weight as f32);
        below = f64::max(below, share);
    }
}
