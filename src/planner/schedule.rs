//! Phase *schedule*: which claim gets which sandbox, which claims fail, and why the others wait.

use crate::api::claim::{OnEmpty, RevisionPolicy};
use crate::api::conditions::{claim as reasons, time_of_day};
use crate::cache::snapshot::{WaitReason, Waiting};
use crate::model::claim::Claim;
use crate::model::pool_error::PoolError;
use crate::planner::draft::{Draft, UnclaimedSandbox};
use crate::planner::{Phase, Step, claim};
use std::sync::Arc;

/// Serves waiting claims strictly in order of priority, then age, each with the best available sandboxes that its
/// revision policy lets it take. A claim for several gets them all together; while there are too few, those that
/// there are wait for it, so that younger claims cannot starve it.
pub(crate) fn run(draft: &mut Draft) {
    let now = draft.snapshot.now;
    // One whose time is over is about to expire, and a sandbox given to it would go with it.
    let is_over = |w: &Waiting| w.claim.expiration().is_some_and(|time| time <= now);
    let mut waiting: Vec<_> = draft
        .snapshot
        .claims
        .iter()
        .filter(|w| w.needs() > 0 && w.claim.spec.is_ok() && !is_over(w))
        .collect();
    waiting.sort_by_cached_key(|w| w.service_order());
    let mut stock = Stock::of(&draft.unclaimed);
    let mut taken = Vec::new();
    for one in waiting {
        if one.deadline().is_some_and(|deadline| deadline <= now) {
            let message = match claim::rejection(&one.claim) {
                Some(rejection) => format!("not bound within waitTimeoutSeconds: {rejection}"),
                None => format!("{} became available within waitTimeoutSeconds", nothing(one)),
            };
            fail(draft, one, reasons::WAIT_TIMEOUT, message);
            continue;
        }
        let policy = one.resolved_spec.revision_policy;
        if stock.has(one.needs(), policy) {
            for index in stock.take(one, &draft.unclaimed) {
                taken.push(index);
                bind(draft, &one.claim, index);
            }
        } else if one.resolved_spec.on_empty == OnEmpty::Fail && !may_be_back(draft, policy) {
            let message = format!("{} that would do could be had, and onEmpty is Fail", nothing(one));
            fail(draft, one, reasons::POOL_EMPTY, message);
        } else {
            wait(draft, one);
            if can_ever_have(draft, one) {
                stock.take(one, &draft.unclaimed);
            }
        }
    }
    taken.sort_unstable_by(|a, b| b.cmp(a));
    for index in taken {
        draft.unclaimed.remove(index);
    }
}

/// A sandbox that will do is only left alone for a moment, since a write on it failed.
fn may_be_back(draft: &Draft, policy: RevisionPolicy) -> bool {
    let will_do = |unclaimed: &UnclaimedSandbox| unclaimed.updated || policy != RevisionPolicy::Latest;
    let mut unclaimed = draft.unclaimed.iter();
    unclaimed.any(|i| i.available && i.refused && !i.sandbox.evict && will_do(i))
}

fn nothing(one: &Waiting) -> String {
    match one.claim.wanted() {
        1 => "no sandbox".to_string(),
        wanted => format!("no {wanted} sandboxes together"),
    }
}

fn bind(draft: &mut Draft, claim: &Arc<Claim>, index: usize) {
    let Some(sandbox) = draft
        .unclaimed
        .get(index)
        .map(|unclaimed| Arc::clone(&unclaimed.sandbox))
    else {
        return;
    };
    draft.budget.claim();
    draft.leaving += 1;
    let claim = Arc::clone(claim);
    draft.act(Phase::Scheduling, "Available", Step::BindClaim { claim, sandbox });
}

/// A claim waits, and adds to the demand unless nothing that may be created now would do.
fn wait(draft: &mut Draft, one: &Waiting) {
    let latest = one.resolved_spec.revision_policy == RevisionPolicy::Latest;
    let creates = one.resolved_spec.on_empty == OnEmpty::Create && can_ever_have(draft, one);
    if creates && !(latest && draft.rollout_is_paused()) {
        draft.demand += one.needs();
        draft.demand_latest += if latest { one.needs() } else { 0 };
    }
    if let Some(deadline) = one.deadline() {
        draft.wake(deadline);
    }
    draft.unserved.push(one.clone());
}

fn can_ever_have(draft: &Draft, one: &Waiting) -> bool {
    one.may_ever_be_served_by(&draft.snapshot.pool.spec)
}

/// Positions of the sandboxes that claims may take, ascending: the last to be removed last.
struct Stock {
    updated: Vec<usize>,
    old: Vec<usize>,
}

impl Stock {
    fn of(unclaimed: &[UnclaimedSandbox]) -> Self {
        let free = |(_, i): &(usize, &UnclaimedSandbox)| i.may_be_claimed();
        let (updated, old) = unclaimed
            .iter()
            .enumerate()
            .filter(free)
            .map(|(index, _)| index)
            .partition(|index| unclaimed.get(*index).is_some_and(|i| i.updated));
        Self { updated, old }
    }

    /// Whether there are `count` that will do.
    fn has(&self, count: usize, policy: RevisionPolicy) -> bool {
        let old = match policy {
            RevisionPolicy::Latest => 0,
            RevisionPolicy::PreferLatest | RevisionPolicy::Any => self.old.len(),
        };
        self.updated.len() + old >= count
    }

    /// Takes as many as `one` needs, or as there are: those that were refused to it last.
    fn take(&mut self, one: &Waiting, unclaimed: &[UnclaimedSandbox]) -> Vec<usize> {
        let policy = one.resolved_spec.revision_policy;
        let refused = |index: usize| {
            let unclaimed = unclaimed.get(index);
            unclaimed.is_some_and(|i| one.rejected_sandboxes.contains(&i.sandbox.uid))
        };
        let next = |_| {
            let other = self.take_one(policy, |index| !refused(index));
            other.or_else(|| self.take_one(policy, |_| true))
        };
        (0..one.needs()).map_while(next).collect()
    }

    /// Takes the sandbox that would be removed last of those that `of` selects, of the preferred revision.
    fn take_one(&mut self, policy: RevisionPolicy, of: impl Fn(usize) -> bool) -> Option<usize> {
        let last = |those: &[usize]| those.iter().copied().rfind(|index| of(*index));
        let (updated, old) = (last(&self.updated), last(&self.old));
        let taken = match policy {
            RevisionPolicy::Latest => updated,
            RevisionPolicy::PreferLatest => updated.or(old),
            RevisionPolicy::Any => updated.max(old),
        }?;
        for those in [&mut self.updated, &mut self.old] {
            if let Ok(at) = those.binary_search(&taken) {
                those.remove(at);
            }
        }
        Some(taken)
    }
}

fn fail(draft: &mut Draft, one: &Waiting, reason: &'static str, message: String) {
    let step = Step::FailClaim {
        claim: Arc::clone(&one.claim),
        message,
    };
    draft.act(Phase::Scheduling, reason, step);
}

/// Why each claim that is left waits. Read after the phase *scale*, which knows what `maxTotal` forbade.
pub(crate) fn wait_reasons(draft: &Draft) -> Vec<WaitReason> {
    let (pool, update) = (&draft.snapshot.pool, &draft.revisions.update.hash);
    let wait_reason = |(ahead, one): (usize, &Waiting)| {
        let (reason, why) = if let Some(error) = &pool.error {
            let reason = match error {
                PoolError::Spec(_) => reasons::POOL_INVALID,
                PoolError::TemplateNotFound(_) => reasons::TEMPLATE_NOT_FOUND,
                PoolError::TemplateInvalid(_) => reasons::TEMPLATE_INVALID,
            };
            (reason, format!("the pool's {}", error.message()))
        } else if !can_ever_have(draft, one) {
            (reasons::EXHAUSTED, never_enough(draft, one))
        } else if draft.forbidden > 0 {
            let why = format!(
                "{} and the pool's capacity.maxTotal forbids more",
                too_few(one, "")
            );
            (reasons::EXHAUSTED, why)
        } else if one.resolved_spec.revision_policy != RevisionPolicy::Latest {
            (reasons::NONE_AVAILABLE, format!("{} yet", too_few(one, "")))
        } else if draft.rollout_is_paused() {
            (
                reasons::POOL_PAUSED,
                format!("revisionPolicy is Latest, and the pool's rollout to revision {update} is paused"),
            )
        } else {
            let of_update = format!(" of revision {update}");
            (
                reasons::NONE_AVAILABLE,
                format!("{} yet", too_few(one, &of_update)),
            )
        };
        let queue = match ahead {
            0 => "first in line".to_string(),
            1 => "1 claim ahead".to_string(),
            n => format!("{n} claims ahead"),
        };
        let at = time_of_day(draft.snapshot.now);
        WaitReason {
            uid: one.claim.uid.clone(),
            reason,
            message: format!("{why}; {queue} at {at}"),
        }
    };
    draft.unserved.iter().enumerate().map(wait_reason).collect()
}

/// What a claim misses; `which` narrows down the sandboxes that will do.
fn too_few(one: &Waiting, which: &str) -> String {
    match (one.claim.wanted(), one.held) {
        (1, _) => format!("no sandbox{which} is available"),
        (wanted, 0) => format!("{wanted} sandboxes{which} are wanted together, and fewer are available"),
        (wanted, held) => {
            format!("{held} of {wanted} sandboxes are held, and no further one{which} is available")
        }
    }
}

fn never_enough(draft: &Draft, one: &Waiting) -> String {
    let (spec, wanted) = (&draft.snapshot.pool.spec, one.claim.wanted());
    match spec.max_total {
        Some(max) if wanted > max => format!("{wanted} sandboxes are wanted, and capacity.maxTotal is {max}"),
        _ => format!(
            "{wanted} sandboxes are wanted, and with onEmpty Wait the pool makes no more than {}",
            spec.most_warm()
        ),
    }
}
