//! Why each claim that is left waiting waits, in words.

use crate::api::claim::RevisionPolicy;
use crate::api::conditions::{claim as reasons, time_of_day};
use crate::cache::snapshot::{WaitReason, Waiting};
use crate::model::pool_error::PoolError;
use crate::planner::draft::Draft;

/// Why each unserved claim waits. Read after the phase *scale*, which knows what `maxTotal` forbade.
pub(crate) fn of(draft: &Draft) -> Vec<WaitReason> {
    let (pool, update) = (&draft.snapshot.pool, &draft.revisions.update.hash);
    let wait_reason = |(ahead, waiting): (usize, &Waiting)| {
        let (reason, why) = if let Some(error) = &pool.error {
            let reason = match error {
                PoolError::Spec(_) => reasons::POOL_INVALID,
                PoolError::TemplateNotFound(_) => reasons::TEMPLATE_NOT_FOUND,
                PoolError::TemplateInvalid(_) => reasons::TEMPLATE_INVALID,
            };
            (reason, format!("the pool's {}", error.message()))
        } else if !waiting.may_ever_be_served_by(&draft.snapshot.pool.spec) {
            (reasons::EXHAUSTED, never_enough(draft, waiting))
        } else if draft.forbidden > 0 {
            let why = format!(
                "{} and the pool's capacity.maxTotal forbids more",
                too_few(waiting, "")
            );
            (reasons::EXHAUSTED, why)
        } else if waiting.resolved_spec.revision_policy != RevisionPolicy::Latest {
            (reasons::NONE_AVAILABLE, format!("{} yet", too_few(waiting, "")))
        } else if draft.rollout_is_paused() {
            (
                reasons::POOL_PAUSED,
                format!("revisionPolicy is Latest, and the pool's rollout to revision {update} is paused"),
            )
        } else {
            let of_update = format!(" of revision {update}");
            (
                reasons::NONE_AVAILABLE,
                format!("{} yet", too_few(waiting, &of_update)),
            )
        };
        let queue = match ahead {
            0 => "first in line".to_string(),
            1 => "1 claim ahead".to_string(),
            n => format!("{n} claims ahead"),
        };
        let at = time_of_day(draft.snapshot.now);
        WaitReason {
            uid: waiting.claim.uid.clone(),
            reason,
            message: format!("{why}; {queue} at {at}"),
        }
    };
    draft.unserved.iter().enumerate().map(wait_reason).collect()
}

/// What a claim misses; `which` narrows down the sandboxes that would do.
fn too_few(waiting: &Waiting, which: &str) -> String {
    match (waiting.claim.wanted(), waiting.held) {
        (1, _) => format!("no sandbox{which} is available"),
        (wanted, 0) => format!("{wanted} sandboxes{which} are wanted together, and fewer are available"),
        (wanted, held) => {
            format!("{held} of {wanted} sandboxes are held, and no further one{which} is available")
        }
    }
}

fn never_enough(draft: &Draft, waiting: &Waiting) -> String {
    let (spec, wanted) = (&draft.snapshot.pool.spec, waiting.claim.wanted());
    match spec.max_total {
        Some(max) if wanted > max => format!("{wanted} sandboxes are wanted, and capacity.maxTotal is {max}"),
        _ => format!(
            "{wanted} sandboxes are wanted, and with onEmpty Wait the pool makes no more than {}",
            spec.most_warm()
        ),
    }
}
