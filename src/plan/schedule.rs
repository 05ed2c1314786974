//! Phase *schedule*: which claim gets which sandbox, which claims fail, and why the others wait.

use super::draft::{Draft, Idle};
use super::{Phase, Step};
use crate::api::claim::{OnEmpty, RevisionPolicy};
use crate::api::conditions::claim as reasons;
use crate::observe::fault::Fault;
use crate::observe::view::Verdict;
use std::sync::Arc;

/// Serves waiting claims strictly in order of priority, then age, each with the best available sandbox that its
/// revision policy lets it take. One that none is left for holds up nobody.
pub(super) fn run(draft: &mut Draft) {
    let mut waiting: Vec<_> = draft
        .view
        .claims
        .iter()
        .filter(|w| !w.served && w.claim.spec.is_ok())
        .collect();
    waiting.sort_by_cached_key(|w| w.claim.service_order());
    let mut stock = Stock::of(&draft.idle);
    let mut given = Vec::new();
    for claim in waiting.into_iter().map(|w| &w.claim) {
        if claim
            .deadline()
            .is_some_and(|deadline| deadline <= draft.view.now)
        {
            fail(
                draft,
                claim,
                reasons::WAIT_TIMEOUT,
                "no sandbox became available within waitTimeoutSeconds",
            );
        } else if let Some(index) = stock.take(claim.revision_policy()) {
            given.push(index);
            let sandbox = draft.idle.get(index).map(|idle| Arc::clone(&idle.sandbox));
            if let Some(sandbox) = sandbox {
                let step = Step::BindClaim {
                    claim: Arc::clone(claim),
                    sandbox,
                };
                draft.budget.claim();
                draft.leaving += 1;
                draft.act(Phase::Scheduling, "Available", step);
            }
        } else {
            let on_empty = claim.spec.as_ref().map(|s| s.on_empty).unwrap_or_default();
            match on_empty {
                OnEmpty::Fail => {
                    fail(
                        draft,
                        claim,
                        reasons::POOL_EMPTY,
                        "no sandbox that will do is available, and onEmpty is Fail",
                    );
                    continue;
                }
                OnEmpty::Create => ask_for_one(draft, claim.revision_policy()),
                OnEmpty::Wait => {}
            }
            if let Some(deadline) = claim.deadline() {
                draft.wake(deadline);
            }
            draft.unserved.push(Arc::clone(claim));
        }
    }
    given.sort_unstable_by(|a, b| b.cmp(a));
    for index in given {
        draft.idle.remove(index);
    }
}

/// A claim adds to the demand, unless nothing that may be created now would do.
fn ask_for_one(draft: &mut Draft, policy: RevisionPolicy) {
    let latest = policy == RevisionPolicy::Latest;
    if latest && draft.rollout_is_paused() {
        return;
    }
    draft.demand += 1;
    draft.demand_latest += usize::from(latest);
}

/// Positions of the sandboxes that claims may take, the last to be removed last.
struct Stock {
    updated: Vec<usize>,
    old: Vec<usize>,
}

impl Stock {
    fn of(idle: &[Idle]) -> Self {
        let free = |(_, i): &(usize, &Idle)| i.may_be_claimed();
        let (updated, old) = idle
            .iter()
            .enumerate()
            .filter(free)
            .map(|(index, _)| index)
            .partition(|index| idle.get(*index).is_some_and(|i| i.updated));
        Self { updated, old }
    }

    /// Takes the sandbox that would be removed last, of the preferred revision.
    fn take(&mut self, policy: RevisionPolicy) -> Option<usize> {
        match policy {
            RevisionPolicy::Latest => self.updated.pop(),
            RevisionPolicy::PreferLatest => self.updated.pop().or_else(|| self.old.pop()),
            RevisionPolicy::Any if self.old.last() > self.updated.last() => self.old.pop(),
            RevisionPolicy::Any => self.updated.pop(),
        }
    }
}

fn fail(draft: &mut Draft, claim: &Arc<crate::observe::claim::Claim>, reason: &'static str, message: &str) {
    let step = Step::FailClaim {
        claim: Arc::clone(claim),
        message: message.to_string(),
    };
    draft.act(Phase::Scheduling, reason, step);
}

/// Why each claim that is left waits. Read after the phase *scale*, which knows what `maxTotal` forbade.
pub(super) fn verdicts(draft: &Draft) -> Vec<Verdict> {
    let (pool, update) = (&draft.view.pool, &draft.revisions.update.hash);
    let verdict = |(ahead, claim): (usize, &Arc<crate::observe::claim::Claim>)| {
        let (reason, why) = if let Some(fault) = &pool.fault {
            let reason = match fault {
                Fault::Spec(_) => reasons::POOL_INVALID,
                Fault::TemplateNotFound(_) => reasons::TEMPLATE_NOT_FOUND,
                Fault::TemplateInvalid(_) => reasons::TEMPLATE_INVALID,
            };
            (reason, format!("the pool's {}", fault.message()))
        } else if draft.forbidden > 0 {
            (
                reasons::EXHAUSTED,
                "no sandbox is available and the pool's capacity.maxTotal forbids more".into(),
            )
        } else if claim.revision_policy() != RevisionPolicy::Latest {
            (reasons::NONE_AVAILABLE, "no sandbox is available yet".to_string())
        } else if draft.rollout_is_paused() {
            (
                reasons::POOL_PAUSED,
                format!("revisionPolicy is Latest, and the pool's rollout to revision {update} is paused"),
            )
        } else {
            (
                reasons::NONE_AVAILABLE,
                format!("no sandbox of revision {update} is available yet"),
            )
        };
        let queue = match ahead {
            0 => "first in line".to_string(),
            1 => "1 claim ahead".to_string(),
            n => format!("{n} claims ahead"),
        };
        let at = jiff::fmt::strtime::format("%H:%M:%SZ", draft.view.now).unwrap_or_default();
        Verdict {
            uid: claim.uid.clone(),
            reason,
            message: format!("{why}; {queue} at {at}"),
        }
    };
    draft.unserved.iter().enumerate().map(verdict).collect()
}
