//! The size of a pool: what its claims call for, between its floor and its ceiling, smaller only after a while and in
//! steps.

use crate::api::claim::OnEmpty;
use crate::cache::snapshot::{Creation, PoolSnapshot, ScalingLimit, Sizing};
use crate::cache::waiting_claim::Waiting;
use crate::model::autoscaling::ResolvedAutoscaling;
use crate::model::demand::Demand;
use crate::model::demand::recent_needs::PARTS;
use crate::model::int_or_percent::Rounding;
use crate::planner::autoscale::limits::{self, Facts};
use crate::planner::autoscale::{estimate, recover};
use jiff::SignedDuration;
use std::sync::Arc;

/// A smaller size must have been enough for this many warm-up times at least: in a shorter time, claims may be absent
/// by chance.
const WARM_UPS_PER_WINDOW: i32 = 10;
/// A step down removes at most one in this many sandboxes, rounded up.
const STEP_DOWN: usize = 4;

/// Chooses the size, and notes in the snapshot what the claims that arrived teach.
pub(super) fn choose(snapshot: &mut PoolSnapshot, autoscaling: &ResolvedAutoscaling) -> Sizing {
    let (now, pool) = (snapshot.now, Arc::clone(&snapshot.pool));
    let floor = autoscaling.floor(pool.spec.replicas, now);
    let mut demand = snapshot
        .demand
        .take()
        .unwrap_or_else(|| Arc::new(recover::recover(&pool, autoscaling, floor.replicas, now)));
    let window = window(&demand, autoscaling);
    let mut need_ends = demand.arrivals.needs.first_end(window);
    if need_ends.is_some_and(|end| end <= now) {
        let demand = Arc::make_mut(&mut demand);
        let needs = &mut Arc::make_mut(&mut demand.arrivals).needs;
        needs.forget(now, window);
        need_ends = needs.first_end(window);
    }
    let arrived: Vec<_> = snapshot.claims.iter().filter(|waiting| waiting.is_new).collect();
    if !arrived.is_empty() {
        let demand = Arc::make_mut(&mut demand);
        let peak = count_arrivals(demand, arrived);
        let need = estimate::need(demand, autoscaling.target, peak, now);
        let needs = &mut Arc::make_mut(&mut demand.arrivals).needs;
        needs.note(need, now, window);
        need_ends = needs.first_end(window);
    }

    let needed = estimate::size_for(demand.arrivals.needs.highest()).max(largest_that_only_waits(snapshot));
    let wanted = needed.max(floor.replicas).min(autoscaling.max_replicas);
    let is_rejected = matches!(snapshot.creation, Creation::BackOff { .. });
    let step = window.checked_div(PARTS).unwrap_or_default();
    let next_step = demand.shrunk_at.and_then(|at| at.checked_add(step).ok());
    let waits = next_step.is_some_and(|at| at > now && at.duration_since(now) <= step);
    let size = match demand.size.clamp(floor.replicas, autoscaling.max_replicas) {
        size if wanted > size && is_rejected => size,
        size if wanted < size && waits => size,
        size => wanted.max(size - size.div_ceil(STEP_DOWN)),
    };
    if size != demand.size {
        let demand = Arc::make_mut(&mut demand);
        if size < demand.size {
            demand.shrunk_at = Some(now);
        }
        demand.size = size;
        demand.resized_at = Some(now);
    }

    let next_step = demand.shrunk_at.and_then(|at| at.checked_add(step).ok());
    let (warming, in_warm_up) = (
        pool.spec.warming.of(size, Rounding::WARMING).max(1),
        demand.arrivals_per_warm_up(now),
    );
    let limit = limits::of(&Facts {
        needed,
        size,
        floor: floor.replicas,
        ceiling: autoscaling.max_replicas,
        is_rejected,
        warming,
        in_warm_up,
    });
    let slower = || limits::slow_down(warming, in_warm_up, demand.rate_memory());
    let warms_enough = (limit == ScalingLimit::Warming).then(|| now.checked_add(slower()).ok());
    let moments = [
        floor.until,
        need_ends,
        next_step.filter(|_| size > wanted),
        warms_enough.flatten(),
    ];
    snapshot.demand = Some(demand);
    Sizing {
        size,
        needed,
        floor: floor.replicas,
        schedule: floor.schedule.filter(|_| size == floor.replicas),
        limit,
        next: moments.into_iter().flatten().filter(|at| *at > now).min(),
    }
}

/// The most sandboxes that one claim with `onEmpty: Wait` still needs. None are created for it, so the pool keeps that
/// many.
fn largest_that_only_waits(snapshot: &PoolSnapshot) -> usize {
    let claims = snapshot.claims.iter().filter(|waiting| waiting.needs() > 0);
    let only_wait = claims.filter(|waiting| waiting.resolved_spec.on_empty == OnEmpty::Wait);
    only_wait.map(|waiting| waiting.needs()).max().unwrap_or_default()
}

/// How long a smaller size must have been enough.
fn window(demand: &Demand, autoscaling: &ResolvedAutoscaling) -> SignedDuration {
    let least = demand.warm_up.saturating_mul(WARM_UPS_PER_WINDOW);
    autoscaling.window.max(least)
}

/// Counts claims that no plan has counted. Returns the size with which all of them would have found sandboxes.
fn count_arrivals(demand: &mut Demand, mut arrived: Vec<&Waiting>) -> usize {
    arrived.sort_by_key(|waiting| (waiting.claim.arrived, waiting.claim.sequence));
    let sizes = arrived.into_iter().map(|waiting| {
        // A list may show a claim late: it counts when it arrived, but after those that were counted before.
        let arrived = waiting.claim.arrived;
        let at = arrived.max(demand.arrivals.last.unwrap_or(arrived));
        demand.arrive(waiting.claim.wanted(), at)
    });
    sizes.max().unwrap_or_default()
}
