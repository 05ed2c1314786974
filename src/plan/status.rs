//! Phase *status*: what the pool's status should say of the view. It speaks of what is seen, not of what the
//! plan is about to do.

use super::draft::Draft;
use crate::api::conditions::{self, Statement, Truth, available, exhausted, progressing, replica_failure};
use crate::api::{PoolStatus, labels};
use crate::observe::fault::Fault;
use crate::observe::sandbox::Owner;
use crate::observe::view::{Creation, OwnWrite};

/// Counts over the unclaimed sandboxes as seen.
#[derive(Default)]
struct Counts {
    replicas: usize,
    ready: usize,
    available: usize,
    updated: usize,
    updated_available: usize,
}

pub(super) fn run(draft: &Draft) -> PoolStatus {
    let pool = &draft.view.pool;
    let counts = count(draft);
    let update = &draft.revisions.update.hash;
    let complete = complete(draft, &counts);
    let current = if complete {
        update.clone()
    } else {
        pool.status.current_revision.clone()
    };
    let mut statements = vec![availability(draft, &counts), progress(draft, &counts, complete)];
    if let Creation::BackOff { message, .. } = &draft.view.creation {
        statements.push(Statement {
            type_: conditions::REPLICA_FAILURE,
            status: Truth::True,
            reason: replica_failure::FAILED_CREATE,
            message: message.clone(),
        });
    }
    if draft.forbidden > 0 && !draft.unserved.is_empty() {
        let max = pool.targets.max_total.unwrap_or_default();
        statements.push(Statement {
            type_: conditions::EXHAUSTED,
            status: Truth::True,
            reason: exhausted::MAX_TOTAL,
            message: format!("claims wait, and capacity.maxTotal {max} forbids more sandboxes"),
        });
    }
    let set = |s| conditions::set(&pool.status.conditions, s, Some(pool.generation), draft.view.now);
    PoolStatus {
        observed_generation: pool.generation,
        replicas: number(counts.replicas),
        ready: number(counts.ready),
        available: number(counts.available),
        updated: number(counts.updated),
        updated_available: number(counts.updated_available),
        expected_updated: number(pool.targets.replicas - kept(draft, complete)),
        claimed: number(draft.claimed.len()),
        total: number(counts.replicas + draft.claimed.len()),
        pending_claims: number(draft.view.claims.iter().filter(|w| !w.served).count()),
        current_revision: current,
        update_revision: update.clone(),
        collision_count: Some(draft.revisions.collision_count).filter(|c| *c > 0),
        selector: format!(
            "{}={},{}={}",
            labels::POOL,
            pool.key.name,
            labels::STATE,
            labels::WARM
        ),
        conditions: statements.into_iter().map(set).collect(),
    }
}

fn count(draft: &Draft) -> Counts {
    let mut counts = Counts::default();
    for seen in &draft.view.sandboxes {
        let sandbox = &seen.sandbox;
        let unclaimed = matches!(&sandbox.owner, Owner::Pool { uid } if *uid == draft.view.pool.uid);
        let leaving = matches!(
            seen.pending,
            Some(OwnWrite::Bind | OwnWrite::Delete | OwnWrite::Deleted)
        );
        if !unclaimed || leaving || sandbox.terminating || sandbox.finished() || sandbox.state != labels::WARM
        {
            continue;
        }
        let available = sandbox
            .available_at(draft.view.pool.targets.min_ready)
            .is_some_and(|at| at <= draft.view.now);
        let updated = sandbox.revision == draft.revisions.update.hash;
        counts.replicas += 1;
        counts.ready += usize::from(sandbox.ready_since.is_some());
        counts.available += usize::from(available);
        counts.updated += usize::from(updated);
        counts.updated_available += usize::from(updated && available);
    }
    counts
}

/// A rollout is complete when no unclaimed sandbox of an old revision is left and the update revision has
/// brought up `replicas` sandboxes, those taken by claims meanwhile included. It stays complete while claims
/// take sandboxes and the pool refills.
fn complete(draft: &Draft, counts: &Counts) -> bool {
    let pool = &draft.view.pool;
    let taken = draft.claimed.iter().filter(|updated| **updated).count();
    pool.status.current_revision == draft.revisions.update.hash
        || (pool.fault.is_none()
            && counts.updated == counts.replicas
            && draft.view.creating.len() == draft.creating_updated()
            && counts.updated_available + taken >= pool.targets.replicas)
}

fn availability(draft: &Draft, counts: &Counts) -> Statement {
    let targets = &draft.view.pool.targets;
    let known = !matches!(draft.view.pool.fault, Some(Fault::Spec(_)));
    let enough = known && counts.available >= targets.min_available();
    Statement {
        type_: conditions::AVAILABLE,
        status: enough.into(),
        reason: if enough {
            available::MINIMUM
        } else {
            available::BELOW_MINIMUM
        },
        message: format!(
            "{} of {} unclaimed sandboxes are available, at least {} are wanted",
            counts.available,
            targets.replicas,
            targets.min_available()
        ),
    }
}

fn progress(draft: &Draft, counts: &Counts, complete: bool) -> Statement {
    if let Some(fault) = &draft.view.pool.fault {
        return stopped(fault);
    }
    let targets = &draft.view.pool.targets;
    let update = &draft.revisions.update.hash;
    let (updated, up) = (counts.updated, counts.updated_available);
    let wanted = targets.replicas;
    let kept = kept(draft, complete);
    let so_far =
        format!("{updated} of {wanted} unclaimed sandboxes run revision {update}, {up} of them available");
    let (status, reason, mut message) = if complete {
        (
            Truth::True,
            progressing::COMPLETE,
            format!("revision {update} is complete"),
        )
    } else if targets.paused {
        (Truth::Unknown, progressing::PAUSED, format!("paused; {so_far}"))
    } else if kept > 0 && (up + kept >= wanted || reached_partition(draft, kept)) {
        (
            Truth::True,
            progressing::PARTITION_COMPLETE,
            format!("{so_far}; the partition keeps {kept} on the old revision"),
        )
    } else if updated == 0 {
        (Truth::True, progressing::NEW_REVISION, so_far)
    } else {
        (Truth::True, progressing::PROGRESSING, so_far)
    };
    // With maxUnavailable 0 a rollout needs room for one more than are wanted.
    let needed = wanted + usize::from(targets.max_unavailable == 0);
    let room = draft.within_total(needed);
    if !complete && room < needed {
        message = format!(
            "{message}; held back, capacity.maxTotal leaves room for {room} beside the claimed ones and {needed} are needed"
        );
    }
    for remark in &targets.remarks {
        message = format!("{message}; {remark}");
    }
    Statement {
        type_: conditions::PROGRESSING,
        status,
        reason,
        message,
    }
}

/// The status says of this revision that all but the `kept` ones run it. That stays so while claims take sandboxes
/// and the pool refills.
fn reached_partition(draft: &Draft, kept: usize) -> bool {
    let pool = &draft.view.pool;
    let said = conditions::find(&pool.status.conditions, conditions::PROGRESSING);
    said.is_some_and(|c| c.reason == progressing::PARTITION_COMPLETE)
        && pool.status.update_revision == draft.revisions.update.hash
        && pool.status.expected_updated == number(pool.targets.replicas - kept)
}

/// A pool with a fault makes no progress until it is mended.
fn stopped(fault: &Fault) -> Statement {
    Statement {
        type_: conditions::PROGRESSING,
        status: Truth::False,
        reason: match fault {
            Fault::Spec(_) => progressing::INVALID_SPEC,
            Fault::TemplateNotFound(_) => progressing::TEMPLATE_NOT_FOUND,
            Fault::TemplateInvalid(_) => progressing::TEMPLATE_INVALID,
        },
        message: format!("nothing is created or deleted: {}", fault.message()),
    }
}

/// Unclaimed sandboxes that the partition keeps on the old revision.
fn kept(draft: &Draft, complete: bool) -> usize {
    let rolling = !complete && !draft.view.pool.status.current_revision.is_empty();
    if rolling {
        draft.view.pool.targets.partition
    } else {
        0
    }
}

fn number(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}
