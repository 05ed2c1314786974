//! Why each claim that is left waiting waits, in words.

use crate::api::claim::{OnEmpty, RevisionPolicy};
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::WaitReason;
use crate::cache::waiting_claim::Waiting;
use crate::model::claim::Claim;
use crate::model::pool_error::PoolError;
use crate::model::queue_position::QueuePosition;
use crate::model::warming_reason::{self, WarmingReason};
use crate::planner::can_ever_serve::can_ever_serve;
use crate::planner::draft::Draft;
use std::sync::Arc;

/// Why each unserved claim waits. Read after the phase *scale*, which knows what `maxTotal` forbade.
///
/// The message of a claim that waits for warming sandboxes also says `why` they are not available, but without the
/// detail: a tenant may read claims but not pods.
pub(crate) fn of(draft: &Draft, why: Option<&WarmingReason>) -> Vec<(Arc<Claim>, WaitReason)> {
    let why = why.map(WarmingReason::summary);
    let with_why = |message: String| warming_reason::append(&message, why.clone());
    let (pool, update) = (&draft.snapshot.pool, &draft.revisions.update.hash);
    let is_dry = is_dry(draft);
    let mut last: Arc<str> = Arc::default();
    let wait_reason = |(ahead, waiting): (usize, &&Waiting)| {
        let (reason, message) = if let Some(error) = &pool.error {
            let reason = match error {
                PoolError::Spec(_) => reasons::POOL_INVALID,
                PoolError::TemplateNotFound(_) => reasons::TEMPLATE_NOT_FOUND,
                PoolError::TemplateInvalid(_) => reasons::TEMPLATE_INVALID,
            };
            (reason, format!("the pool's {}", error.message()))
        } else if !can_ever_serve(&draft.snapshot.pool.spec, waiting) {
            (reasons::EXHAUSTED, never_enough(draft, waiting))
        } else if is_dry && waiting.resolved_spec.on_empty == OnEmpty::Wait {
            (reasons::NONE_AVAILABLE, none_will_come(draft))
        } else if draft.forbidden > 0 {
            let message = format!(
                "{} and the pool's capacity.maxTotal forbids more",
                too_few(waiting, "")
            );
            (reasons::EXHAUSTED, with_why(message))
        } else if waiting.resolved_spec.revision_policy != RevisionPolicy::Latest {
            let message = format!("{} yet", too_few(waiting, ""));
            (reasons::NONE_AVAILABLE, with_why(message))
        } else if draft.rollout_is_paused() {
            (
                reasons::POOL_PAUSED,
                format!("revisionPolicy is Latest, and the pool's rollout to revision {update} is paused"),
            )
        } else {
            let of_update = format!(" of revision {update}");
            (
                reasons::NONE_AVAILABLE,
                with_why(format!("{} yet", too_few(waiting, &of_update))),
            )
        };
        if *last != *message {
            last = message.into();
        }
        let wait_reason = WaitReason {
            reason,
            message: Arc::clone(&last),
            position: Some(QueuePosition {
                ahead,
                at: draft.snapshot.now,
            }),
        };
        (Arc::clone(&waiting.claim), wait_reason)
    };
    draft.unserved.iter().enumerate().map(wait_reason).collect()
}

/// Whether the pool has no sandbox for a waiting claim and will get none: it keeps none warm, none is being created or
/// may come back from a write in flight, and no claim has one created. A draining sandbox becomes warm again only if
/// the pool wants more.
fn is_dry(draft: &Draft) -> bool {
    let keeps_none = draft.snapshot.pool.spec.most_warm() == 0;
    let none_there = draft.unclaimed.is_empty() && draft.unconfirmed == 0;
    let none_on_its_way = draft.snapshot.creating.is_empty() && draft.returning == 0;
    keeps_none && none_there && none_on_its_way && draft.demand == 0
}

/// A claim with a selector may still come to another pool, so the message says which pool has none.
fn none_will_come(draft: &Draft) -> String {
    let pool = &draft.snapshot.pool.key.name;
    format!(
        "no sandbox is available, and none will come from pool {pool} while its spec.replicas is 0 and onEmpty is Wait: \
         raise replicas, or set onEmpty to Create"
    )
}

/// What a claim misses; `which` names the revision that the claim needs.
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
