//! Phase *status*: what the pool's status should say of the view. It speaks of what is seen, not of what the
//! plan is about to do.

use super::draft::Draft;
use super::warm_up;
use crate::api::conditions::{self, Statement, Truth, available, exhausted, progressing, replica_failure};
use crate::api::pool::UpdateStrategyType;
use crate::api::{PoolStatus, labels};
use crate::observe::sandbox::Owner;
use crate::observe::view::{Creation, OwnWrite, WarmUpFailures};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Counts over the unclaimed sandboxes as seen.
#[derive(Default)]
struct Counts {
    replicas: usize,
    ready: usize,
    available: usize,
    updated: usize,
    updated_available: usize,
    draining: usize,
}

pub(super) fn run(draft: &mut Draft) -> PoolStatus {
    let pool = &draft.view.pool;
    let counts = count(draft);
    let update = &draft.revisions.update.hash;
    let complete = complete(draft, &counts);
    let current = if complete {
        update.clone()
    } else {
        pool.status.current_revision.clone()
    };
    let last_progress = last_progress(draft, &counts, complete);
    let deadline = last_progress.and_then(|last| last.checked_add(draft.view.pool.targets.progress).ok());
    if let Some(deadline) = deadline {
        draft.wake(deadline);
    }
    let stuck = deadline.is_some_and(|deadline| deadline <= draft.view.now);
    let mut statements = vec![
        availability(draft, &counts),
        progress(draft, &counts, complete, stuck),
    ];
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
        draining: number(counts.draining),
        pending_claims: number(draft.view.claims.iter().filter(|w| !w.served).count()),
        current_revision: current,
        update_revision: update.clone(),
        last_progress_time: last_progress.map(Time),
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
            Some(OwnWrite::Bind | OwnWrite::Delete | OwnWrite::Deleted | OwnWrite::Drain)
        );
        let draining = unclaimed && !sandbox.terminating && sandbox.state == labels::DRAINING;
        counts.draining += usize::from(draining);
        if !unclaimed || leaving || sandbox.terminating || sandbox.finished() || sandbox.state != labels::WARM
        {
            continue;
        }
        let available = sandbox
            .available_at(&draft.view.pool.targets.gate)
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
    if pool.fault.is_some() {
        return false;
    }
    let taken = draft.claimed.iter().filter(|updated| **updated).count();
    pool.status.current_revision == draft.revisions.update.hash
        || (counts.updated == counts.replicas
            && draft.view.creating.len() == draft.creating_updated()
            && counts.updated_available + taken >= pool.targets.replicas)
}

fn availability(draft: &Draft, counts: &Counts) -> Statement {
    let targets = &draft.view.pool.targets;
    let enough = draft.view.pool.fault.is_none() && counts.available >= targets.min_available();
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

/// When the rollout made progress last; `None` while none is under way, and while it waits for somebody: paused,
/// at its partition, for claims to take the old sandboxes, for its spec to be mended.
fn last_progress(draft: &Draft, counts: &Counts, complete: bool) -> Option<Timestamp> {
    let pool = &draft.view.pool;
    let (targets, update) = (&pool.targets, draft.revisions.update.hash.as_str());
    let kept = kept(draft, complete);
    let at_partition = kept > 0 && counts.updated_available + kept >= targets.replicas;
    let waits = targets.paused || at_partition || targets.strategy == UpdateStrategyType::OnReplenish;
    if complete || waits || pool.fault.is_some() {
        return None;
    }
    let stored = pool.status.last_progress_time.as_ref().map(|time| time.0);
    let known = stored.filter(|_| pool.status.update_revision == update);
    let of_update = draft.came_up.iter().filter(|(revision, _)| *revision == update);
    let came_up = of_update.map(|(_, at)| *at).max();
    known.map_or(Some(conditions::whole_seconds(draft.view.now)), |known| {
        came_up.max(Some(known))
    })
}

fn progress(draft: &Draft, counts: &Counts, complete: bool, stuck: bool) -> Statement {
    let targets = &draft.view.pool.targets;
    let update = &draft.revisions.update.hash;
    let (updated, up) = (counts.updated, counts.updated_available);
    let wanted = targets.replicas;
    let kept = kept(draft, complete);
    let so_far =
        format!("{updated} of {wanted} unclaimed sandboxes run revision {update}, {up} of them available");
    let (status, reason, mut message) = if let Some(fault) = &draft.view.pool.fault {
        (
            Truth::False,
            progressing::INVALID_SPEC,
            format!("nothing is created or deleted: {fault}"),
        )
    } else if complete {
        (
            Truth::True,
            progressing::COMPLETE,
            format!("revision {update} is complete"),
        )
    } else if targets.paused {
        (Truth::Unknown, progressing::PAUSED, format!("paused; {so_far}"))
    } else if kept > 0 && up + kept >= wanted {
        (
            Truth::True,
            progressing::PARTITION_COMPLETE,
            format!("{so_far}; the partition keeps {kept} on the old revision"),
        )
    } else if stuck {
        (
            Truth::False,
            progressing::DEADLINE_EXCEEDED,
            format!(
                "{so_far}; none became available for progressDeadlineSeconds ({})",
                targets.progress.as_secs()
            ),
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
    if let Some(failing) = warm_up_failures(draft) {
        message = format!("{message}; {failing}");
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

/// A sentence on revisions whose sandboxes fail to come up.
fn warm_up_failures(draft: &Draft) -> Option<String> {
    let sentence = |(revision, failures): (&String, &WarmUpFailures)| {
        let next = jiff::fmt::strtime::format("%H:%M:%SZ", warm_up::resumes_at(failures)).unwrap_or_default();
        let times = match failures.count {
            1 => "once".to_string(),
            n => format!("{n} times in a row"),
        };
        format!(
            "sandboxes of revision {revision} failed to become available {times}, they are tried again from {next} on"
        )
    };
    let sentences: Vec<_> = draft.failures.iter().map(sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
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
