//! The plan of a pool: its phases, in their order. Each adds to the same [`Draft`], so a later phase sees what an
//! earlier one decided.

use crate::cache::index::Index;
use crate::cache::snapshot::PoolSnapshot;
use crate::model::Key;
use crate::planner::actions::{Plan, WriteStatus};
use crate::planner::commonest_warming_reason::WarmingReasons;
use crate::planner::draft::Draft;
use crate::planner::revise::NextStep;
use crate::planner::{
    autoscale, evict, pod_disruption_budgets, pool_status, recreate, revise, scale, schedule_claims,
    select_pool, wait_reasons, warm_up_backoff, write_pool_status,
};
use jiff::Timestamp;

/// The snapshot of a pool at its chosen size, with the selector claims that it serves; `None` when the pool is gone or
/// in the shard of another operator.
pub fn pool_snapshot(index: &Index, key: &Key, now: Timestamp, seed: u64) -> Option<PoolSnapshot> {
    if !index.pool(key).is_some_and(|pool| index.serves_pool(&pool)) {
        return None;
    }
    let selected_pools = select_pool::select_pools(&index.selector_snapshot(&key.namespace, now));
    let snapshot = index.pool_snapshot(key, now, seed, selected_pools)?;
    Some(autoscale::at_chosen_size(snapshot))
}

/// Plans the next writes for a pool. The garbage collector deletes the sandboxes of a deleted pool, so nothing is
/// planned for it.
pub fn plan(snapshot: &PoolSnapshot) -> Plan {
    if snapshot.pool.terminating {
        return Plan {
            status: snapshot.pool.status.clone(),
            failures: snapshot.failures.clone(),
            ..Plan::default()
        };
    }
    // The update revision is found first, because every phase asks which sandboxes run it.
    let revisions = revise::resolve(snapshot);
    let mut draft = Draft::new(snapshot, &revisions);
    if let Some(at) = snapshot.sizing.as_ref().and_then(|sizing| sizing.next) {
        draft.wake(at);
    }
    warm_up_backoff::recall(&mut draft);
    evict::mark(&mut draft);
    // Claims are served before anything is removed: an eviction that was within the budget before a claim took its
    // sandbox may not be after.
    schedule_claims::run(&mut draft);
    // While its spec or template is not understood, a pool creates and deletes nothing.
    if snapshot.pool.error.is_none() {
        let surge = recreate::run(&mut draft);
        scale::run(&mut draft, surge);
    }
    let warming_reasons = WarmingReasons::of(snapshot);
    let demand = autoscale::observe(snapshot, &draft.actions);
    let mut status = pool_status::run(&mut draft, &warming_reasons);
    let write_status = write_pool_status::when(&draft, &mut status);
    // What was learned changes with every claim, so it is put into words only where it will be read.
    if write_status == WriteStatus::Now || snapshot.pool.status.autoscaling.is_none() {
        status.autoscaling = autoscale::status::of(snapshot, demand.as_deref());
    }
    if let WriteStatus::At(at) = write_status {
        draft.wake(at);
    }
    let budget_step = pod_disruption_budgets::next_step(&mut draft);
    let waiting = wait_reasons::of(&draft, warming_reasons.commonest(snapshot));
    let revision_step = match revise::next_step(snapshot, &revisions) {
        NextStep::None => None,
        NextStep::Wait(until) => {
            draft.wake(until);
            None
        }
        NextStep::Send(step) => Some(step),
    };
    let Draft {
        actions,
        failures,
        shortfall,
        next,
        ..
    } = draft;
    Plan {
        actions,
        revisions,
        revision_step,
        budget_step,
        status,
        write_status,
        waiting,
        shortfall,
        failures,
        demand,
        next,
    }
}
