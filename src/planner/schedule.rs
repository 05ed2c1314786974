//! Phase *schedule*: which claim gets which sandbox, and which claims fail.

use crate::api::claim::{OnEmpty, RevisionPolicy};
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::Waiting;
use crate::model::claim::Claim;
use crate::planner::claim;
use crate::planner::draft::Draft;
use crate::planner::plan::{PlanPhase, Step, WaitsFor};
use crate::planner::unclaimed::UnclaimedSandbox;
use std::sync::Arc;

/// Most bindings of one pool in flight, from the first request to the published status. A binding already decided cannot serve
/// a higher-priority claim that arrives later. A claim for several gets all its sandboxes together, however many.
const BIND_LIMIT: usize = 32;

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
    queue.sort_by_cached_key(|waiting| waiting.service_order());
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
    let mut in_flight: usize = draft.snapshot.claims.iter().map(Waiting::unpublished).sum();
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
            let waits_for = (in_flight >= BIND_LIMIT).then_some(WaitsFor::BindingsInFlight);
            in_flight += waiting.needs();
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

/// Positions in the removal order of the sandboxes that claims may take, ascending: claims take from the end.
struct Claimable {
    updated: Vec<usize>,
    old: Vec<usize>,
}

impl Claimable {
    fn of(unclaimed: &[UnclaimedSandbox]) -> Self {
        let (updated, old) = unclaimed
            .iter()
            .enumerate()
            .filter(|(_, u)| u.may_be_claimed())
            .map(|(index, _)| index)
            .partition(|index| unclaimed.get(*index).is_some_and(|u| u.updated));
        Self { updated, old }
    }

    /// Whether `count` sandboxes would do.
    fn has(&self, count: usize, policy: RevisionPolicy) -> bool {
        let old = match policy {
            RevisionPolicy::Latest => 0,
            RevisionPolicy::PreferLatest | RevisionPolicy::Any => self.old.len(),
        };
        self.updated.len() + old >= count
    }

    /// Takes as many as the claim needs, or as there are. Sandboxes that were rejected for it come last.
    fn take(&mut self, waiting: &Waiting, unclaimed: &[UnclaimedSandbox]) -> Vec<usize> {
        let policy = waiting.resolved_spec.revision_policy;
        let rejected = |index: usize| {
            let unclaimed = unclaimed.get(index);
            unclaimed.is_some_and(|u| waiting.rejected_sandboxes.contains(&u.sandbox.uid))
        };
        let next = |_| {
            let other = self.take_last(policy, |index| !rejected(index));
            other.or_else(|| self.take_last(policy, |_| true))
        };
        (0..waiting.needs()).map_while(next).collect()
    }

    /// Takes the sandbox of the preferred revision that would be removed last, of those that `of` selects.
    fn take_last(&mut self, policy: RevisionPolicy, of: impl Fn(usize) -> bool) -> Option<usize> {
        let last = |indexes: &[usize]| indexes.iter().copied().rfind(|index| of(*index));
        let (updated, old) = (last(&self.updated), last(&self.old));
        let index = match policy {
            RevisionPolicy::Latest => updated,
            RevisionPolicy::PreferLatest => updated.or(old),
            RevisionPolicy::Any => updated.max(old),
        }?;
        for indexes in [&mut self.updated, &mut self.old] {
            if let Ok(at) = indexes.binary_search(&index) {
                indexes.remove(at);
            }
        }
        Some(index)
    }
}

fn fail(draft: &mut Draft, waiting: &Waiting, reason: &'static str, message: String) {
    let step = Step::FailClaim {
        claim: Arc::clone(&waiting.claim),
        message,
    };
    draft.act(PlanPhase::Scheduling, reason, step);
}
