//! Phase *schedule*: which claim gets which sandbox, and which claims fail.

use crate::api::claim::{OnEmpty, RevisionPolicy};
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::Waiting;
use crate::model::claim::Claim;
use crate::planner::actions::{PlanPhase, Step, WaitsFor};
use crate::planner::bind_limit::BindLimit;
use crate::planner::choose_sandbox::Claimable;
use crate::planner::claim;
use crate::planner::draft::Draft;
use crate::planner::service_order::service_order;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use std::sync::Arc;

/// Serves waiting claims strictly in order of priority, then age, each with the best available sandboxes that its
/// revision policy allows. A claim for several gets them all together. While there are too few, those available are kept
/// for it, so that younger claims cannot starve it.
pub(crate) fn run(draft: &mut Draft) {
    let (now, spec) = (draft.snapshot.now, &draft.snapshot.pool.spec);
    // A claim whose lifetime is over is about to expire, and a sandbox given to it would go with it.
    let is_over = |waiting: &Waiting| waiting.claim.expiration().is_some_and(|time| time <= now);
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
    let mut claimable = Claimable::of(&draft.unclaimed);
    let mut bound = Vec::new();
    for waiting in queue {
        if waiting.deadline().is_some_and(|deadline| deadline <= now) {
            if waiting.binding > 0 {
                // The answers come first.
                continue;
            }
            let message = match claim::rejection(&waiting.claim) {
                Some(rejection) => format!("not bound within waitTimeoutSeconds: {rejection}"),
                None => format!("{} became available within waitTimeoutSeconds", nothing(waiting)),
            };
            fail(draft, waiting, reasons::WAIT_TIMEOUT, message);
            continue;
        }
        let policy = waiting.resolved_spec.revision_policy;
        if claimable.has(waiting.needs(), policy) {
            let waits_for = limit.bind(waiting.needs());
            for index in claimable.take(waiting, &draft.unclaimed) {
                bound.push(index);
                bind(draft, &waiting.claim, index, waits_for);
            }
        } else if waiting.resolved_spec.on_empty == OnEmpty::Fail && !may_be_back(draft, policy) {
            let message = format!(
                "{} that would do could be had, and onEmpty is Fail",
                nothing(waiting)
            );
            fail(draft, waiting, reasons::POOL_EMPTY, message);
        } else {
            wait(draft, waiting);
            if waiting.may_ever_be_served_by(spec) {
                claimable.take(waiting, &draft.unclaimed);
            }
        }
    }
    bound.sort_unstable_by(|a, b| b.cmp(a));
    for index in bound {
        draft.unclaimed.remove(index);
    }
}

/// A sandbox that would do is kept from claims only until the watch shows why a write on it met a conflict.
fn may_be_back(draft: &Draft, policy: RevisionPolicy) -> bool {
    let would_do = |unclaimed: &UnclaimedSandbox| unclaimed.updated || policy != RevisionPolicy::Latest;
    let mut unclaimed = draft.unclaimed.iter();
    unclaimed.any(|u| u.available && u.conflicted && !u.evict_requested && would_do(u))
}

fn nothing(waiting: &Waiting) -> String {
    match waiting.claim.wanted() {
        1 => "no sandbox".to_string(),
        wanted => format!("no {wanted} sandboxes together"),
    }
}

fn bind(draft: &mut Draft, claim: &Arc<Claim>, index: usize, waits_for: Option<WaitsFor>) {
    let Some(unclaimed) = draft.unclaimed.get(index) else {
        return;
    };
    let sandbox = Arc::clone(&unclaimed.sandbox);
    draft.budget.claim();
    draft.unconfirmed += 1;
    let claim = Arc::clone(claim);
    let step = Step::BindClaim { claim, sandbox };
    draft.act_once(PlanPhase::Scheduling, "Available", step, waits_for);
}

/// A claim waits, and adds to the demand unless nothing that may be created now would do.
fn wait(draft: &mut Draft, waiting: &Waiting) {
    let latest = waiting.resolved_spec.revision_policy == RevisionPolicy::Latest;
    let creates = waiting.resolved_spec.on_empty == OnEmpty::Create
        && waiting.may_ever_be_served_by(&draft.snapshot.pool.spec);
    if creates && !(latest && draft.rollout_is_paused()) {
        draft.demand += waiting.needs();
        draft.demand_latest += if latest { waiting.needs() } else { 0 };
    }
    if let Some(deadline) = waiting.deadline() {
        draft.wake(deadline);
    }
    draft.unserved.push(waiting.clone());
}

fn fail(draft: &mut Draft, waiting: &Waiting, reason: &'static str, message: String) {
    let step = Step::FailClaim {
        claim: Arc::clone(&waiting.claim),
        message,
    };
    draft.act(PlanPhase::Scheduling, reason, step);
}
