//! What a plan teaches of the demand: which claims found a sandbox available, and how long sandboxes take to warm up.

use crate::cache::snapshot::PoolSnapshot;
use crate::model::demand::Demand;
use crate::model::sandbox_state::SandboxState;
use crate::planner::actions::{Action, Step};
use jiff::SignedDuration;
use smol_str::SmolStr;
use std::sync::Arc;

/// From a claim until the creation of the sandbox that replaces the claimed one: its binding is confirmed first.
const REACTION: SignedDuration = SignedDuration::from_millis(200);
/// The API has creation times in whole seconds.
const PRECISION: SignedDuration = SignedDuration::from_secs(2);
/// A measured warm-up time replaces the one in use when it is at most this percentage of it.
const SHORTER: i128 = 75;
/// A measured warm-up time replaces the one in use when it is at least this percentage of it.
const LONGER: i128 = 105;
/// Numbers that were counted with one warm-up time are dropped when the new time is longer or shorter by this ratio,
/// in percent.
const OTHER: i128 = 125;

/// What is remembered of the demand after the plan with these actions.
pub(crate) fn observe(snapshot: &PoolSnapshot, actions: &[Action]) -> Option<Arc<Demand>> {
    let mut demand = snapshot.demand.clone()?;
    count_hits(&mut demand, snapshot, actions);
    measure(&mut demand, snapshot);
    follow_creations(&mut demand, snapshot, actions);
    Some(demand)
}

fn count_hits(demand: &mut Arc<Demand>, snapshot: &PoolSnapshot, actions: &[Action]) {
    let mut arrived = snapshot.claims.iter().filter(|waiting| waiting.is_new).peekable();
    if arrived.peek().is_none() {
        return;
    }
    let bound = actions.iter().filter_map(|action| match &action.step {
        Step::BindClaim { claim, .. } => Some(claim.uid.as_str()),
        _ => None,
    });
    let mut bound: Vec<&str> = bound.collect();
    bound.sort_unstable();
    let demand = Arc::make_mut(demand);
    let half_life = demand.half_life();
    for waiting in arrived {
        let is_hit = bound.binary_search(&waiting.claim.uid.as_str()).is_ok();
        demand.hits.add(is_hit, snapshot.now, half_life);
    }
}

/// Measures the warm-up time of the sandboxes that are followed and are available now.
fn measure(demand: &mut Arc<Demand>, snapshot: &PoolSnapshot) {
    let followed = &demand.warm_up_times.followed;
    let Some(earliest) = followed
        .values()
        .min()
        .and_then(|at| at.checked_sub(PRECISION).ok())
    else {
        return;
    };
    let (pool, now) = (&snapshot.pool, snapshot.now);
    let creating = snapshot.creating.iter().map(|creation| creation.name.as_str());
    let mut warming: Vec<&str> = creating.filter(|name| followed.contains_key(*name)).collect();
    let mut available: Vec<SmolStr> = Vec::new();
    let sandboxes = snapshot.sandboxes.iter().map(|entry| &entry.sandbox);
    let recent = sandboxes.filter(|sandbox| sandbox.created >= earliest);
    for sandbox in recent.filter(|sandbox| followed.contains_key(&sandbox.key.name)) {
        match sandbox.state_at(&pool.uid, &pool.spec.availability_rule, now) {
            SandboxState::Available => available.push(sandbox.key.name.clone()),
            SandboxState::Warming => warming.push(sandbox.key.name.as_str()),
            _ => {}
        }
    }
    let gone = followed.keys().any(|name| !warming.contains(&name.as_str()));
    if !gone {
        return;
    }
    let demand = Arc::make_mut(demand);
    let times = Arc::make_mut(&mut demand.warm_up_times);
    for name in &available {
        times.is_available(name, now);
    }
    times.followed.retain(|name, _| warming.contains(&name.as_str()));
    if let Some(measured) = times.measured() {
        use_warm_up(demand, measured.saturating_add(REACTION));
    }
}

/// Uses a measured warm-up time if it differs, so that the estimate does not follow every sandbox.
fn use_warm_up(demand: &mut Demand, measured: SignedDuration) {
    let is_percent_of = |percent: i128, of: SignedDuration| of.as_millis() * percent / 100;
    let (now, used) = (measured.as_millis(), demand.warm_up);
    if now < is_percent_of(LONGER, used) && now > is_percent_of(SHORTER, used) {
        return;
    }
    demand.warm_up = measured;
    let counted = demand.seen_with;
    if now > is_percent_of(OTHER, counted) || now * OTHER / 100 < counted.as_millis() {
        Arc::make_mut(&mut demand.arrivals).seen.clear();
        demand.seen_with = measured;
    }
}

fn follow_creations(demand: &mut Arc<Demand>, snapshot: &PoolSnapshot, actions: &[Action]) {
    if !demand.warm_up_times.can_follow() {
        return;
    }
    for action in actions.iter().filter(|action| action.waits_for.is_none()) {
        if let Step::CreatePod { name, .. } = &action.step {
            let demand = Arc::make_mut(demand);
            Arc::make_mut(&mut demand.warm_up_times).follow(name, snapshot.now);
        }
    }
}
