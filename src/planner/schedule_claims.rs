//! Phase *schedule*: which claim gets which sandbox.

use crate::api::claim::{OnEmpty, RevisionPolicy};
use crate::cache::waiting_claim::Waiting;
use crate::model::claim::Claim;
use crate::planner::actions::{PlanPhase, Step, WaitsFor};
use crate::planner::bind_limit::BindLimit;
use crate::planner::can_ever_serve::can_ever_serve;
use crate::planner::choose_sandbox::Claimable;
use crate::planner::claim_order::service_order;
use crate::planner::draft::Draft;
use crate::planner::fail_claims;
use std::sync::Arc;

/// Serves waiting claims strictly in order of priority, then age, each with the best available sandboxes that its
/// revision policy allows. A claim for several gets them all together. While there are too few, those available are
/// kept for it, so that younger claims cannot starve it.
pub(crate) fn run(draft: &mut Draft) {
    let (now, spec) = (draft.snapshot.now, &draft.snapshot.pool.spec);
    // A claim whose lifetime is over is about to expire, and a sandbox given to it would go with it.
    let is_over = |waiting: &Waiting| waiting.claim.expires_at().is_some_and(|time| time <= now);
    let mut queue: Vec<_> = draft
        .snapshot
        .claims
        .iter()
        .filter(|waiting| waiting.needs() > 0 && waiting.claim.spec.is_ok() && !is_over(waiting))
        .collect();
    queue.sort_by_cached_key(|waiting| service_order(waiting));
    for waiting in &draft.snapshot.claims {
        // A claim whose last write failed is served again after a delay, and ends at its deadline all the same.
        if let Some(retry_at) = waiting.retry_at {
            draft.wake(retry_at);
            waiting
                .deadline()
                .into_iter()
                .for_each(|deadline| draft.wake(deadline));
        }
    }
    let mut limit = BindLimit::of(&draft.snapshot.claims);
    draft.being_bound = limit.in_flight();
    if queue.is_empty() {
        return;
    }
    draft.order();
    let mut claimable = Claimable::of(draft);
    let mut bound = Vec::new();
    for waiting in queue {
        if fail_claims::fail_overdue(draft, waiting) {
            continue;
        }
        let policy = waiting.resolved_spec.revision_policy;
        if claimable.has(waiting.needs(), policy) {
            let waits_for = limit.bind(waiting.needs());
            for index in claimable.take(waiting, &draft.unclaimed) {
                bound.push(index);
                bind(draft, &waiting.claim, index, waits_for);
            }
        } else if !fail_claims::fail_unwilling_to_wait(draft, waiting) {
            wait(draft, waiting);
            if can_ever_serve(spec, waiting) {
                claimable.take(waiting, &draft.unclaimed);
            }
        }
    }
    draft.being_bound = limit.in_flight();
    bound.sort_unstable_by(|a, b| b.cmp(a));
    for index in bound {
        draft.unclaimed.remove(index);
    }
}

fn bind(draft: &mut Draft, claim: &Arc<Claim>, index: usize, waits_for: Option<WaitsFor>) {
    let Some(unclaimed) = draft.unclaimed.get(index) else {
        return;
    };
    let sandbox = Arc::clone(unclaimed.sandbox);
    draft.budget.claim();
    draft.unconfirmed += 1;
    let claim = Arc::clone(claim);
    let step = Step::BindClaim { claim, sandbox };
    draft.act_once(PlanPhase::Scheduling, "Available", step, waits_for);
}

/// A claim waits, and adds to the demand unless no sandbox that may be created now can serve it.
fn wait<'a>(draft: &mut Draft<'a>, waiting: &'a Waiting) {
    let latest = waiting.resolved_spec.revision_policy == RevisionPolicy::Latest;
    let creates = waiting.resolved_spec.on_empty == OnEmpty::Create
        && can_ever_serve(&draft.snapshot.pool.spec, waiting);
    if creates && !(latest && draft.rollout_is_paused()) {
        draft.demand += waiting.needs();
        draft.demand_latest += if latest { waiting.needs() } else { 0 };
    }
    if let Some(deadline) = waiting.deadline() {
        draft.wake(deadline);
    }
    draft.unserved.push(waiting);
}
