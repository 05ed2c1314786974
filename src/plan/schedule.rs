//! Phase *schedule*: which claim gets which sandbox, which claims fail, and why the others wait.

use super::draft::{Draft, Idle};
use super::{Phase, Step};
use crate::api::claim::OnEmpty;
use crate::api::conditions::claim as reasons;
use crate::observe::fault::Fault;
use crate::observe::view::Verdict;
use std::sync::Arc;

/// Serves waiting claims strictly in order of priority, then age, from the available sandboxes: those of the
/// update revision first, and within a revision the last to be removed first.
pub(super) fn run(draft: &mut Draft) {
    let mut waiting: Vec<_> = draft
        .view
        .claims
        .iter()
        .filter(|w| !w.served && w.claim.spec.is_ok())
        .collect();
    waiting.sort_by_cached_key(|w| w.claim.service_order());
    let mut taken = claimable(&draft.idle).into_iter();
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
        } else if let Some(index) = taken.next() {
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
                        "no sandbox is available, and onEmpty is Fail",
                    );
                    continue;
                }
                OnEmpty::Create => draft.demand += 1,
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

/// Positions of the sandboxes that a claim may take, best first.
fn claimable(idle: &[Idle]) -> Vec<usize> {
    let free = |updated: bool| {
        let fits = move |(_, i): &(usize, &Idle)| {
            i.available
                && !i.refused
                && !i.sandbox.evict
                && i.sandbox.ready_index.is_some()
                && i.updated == updated
        };
        idle.iter().enumerate().rev().filter(fits).map(|(index, _)| index)
    };
    free(true).chain(free(false)).collect()
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
    let pool = &draft.view.pool;
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
        } else {
            (reasons::NONE_AVAILABLE, "no sandbox is available yet".to_string())
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
