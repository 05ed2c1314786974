//! Explains the state of a sandbox and the operator's next action on it.

use crate::api::claim::ReleasePolicy;
use crate::api::disruption::DrainPolicy;
use crate::api::labels;
use crate::cache::index::Index;
use crate::cli::kubectl::why::format::{because, between, rank, since, timestamp};
use crate::cli::kubectl::why::pool;
use crate::cli::pool_plan::PoolPlan;
use crate::model::Key;
use crate::model::leaving_reason::LeavingReason;
use crate::model::lifecycle_hook::Hook;
use crate::model::resolved_pool_spec::ResolvedPoolSpec;
use crate::model::sandbox::{Owner, PodPhase, Sandbox};
use crate::planner::Step;
use crate::planner::explain_order::SandboxQueues;
use jiff::Timestamp;
use std::sync::Arc;

/// Explains a pod, one sentence per item; `None` when it has no label of a pool.
pub fn explain(index: &Index, key: &Key, now: Timestamp) -> Option<Vec<String>> {
    let sandbox = index.pod(key)?;
    let pool = sandbox.pool_key();
    let pool_plan = PoolPlan::of(index, &pool, now);
    let (name, pool) = (&key.name, &sandbox.pool);
    Some(match (&sandbox.owner, &pool_plan) {
        (Owner::Claim { name: claim, uid }, _) => claimed(index, &sandbox, claim, uid, pool_plan.as_ref()),
        (Owner::Pool { uid }, Some(pool_plan)) if *uid == pool_plan.snapshot.pool.uid => {
            unclaimed(&sandbox, pool_plan, now)
        }
        (Owner::Pool { .. }, _) => vec![format!(
            "Sandbox {name} belongs to a deleted pool {pool}; Kubernetes' garbage collector deletes it."
        )],
        (Owner::Other, _) => vec![format!(
            "Pod {name} has the label of pool {pool}, but no pool or claim owns it; the operator does not \
             touch it."
        )],
    })
}

fn claimed(
    index: &Index,
    sandbox: &Sandbox,
    claim: &str,
    uid: &str,
    pool_plan: Option<&PoolPlan>,
) -> Vec<String> {
    let (name, pool) = (&sandbox.key.name, &sandbox.pool);
    let owner = index.claim(&Key::new(sandbox.key.namespace.clone(), claim));
    let mut sentences = vec![format!("Sandbox {name} of pool {pool} belongs to claim {claim}.")];
    if sandbox.terminating {
        sentences.push("It is being deleted.".into());
    } else if owner.as_ref().is_none_or(|owner| owner.uid != uid) {
        sentences.push("That claim is deleted, so Kubernetes' garbage collector deletes the sandbox.".into());
    } else {
        let ready = if sandbox.ready_since.is_some() {
            "Ready"
        } else {
            "not Ready"
        };
        let defaults = pool_plan.map(|pool_plan| &pool_plan.snapshot.pool.claim_defaults);
        let ends = match owner.map(|owner| owner.resolved_spec(defaults).release_policy) {
            Some(ReleasePolicy::Delete) => ", or when that expires",
            Some(ReleasePolicy::Retain) | None => "",
        };
        sentences.push(format!("It is {ready}. It goes only with its claim{ends}."));
    }
    sentences.extend(pool_plan.map(|pool_plan| revision(sandbox, pool_plan)));
    sentences
}

fn unclaimed(sandbox: &Arc<Sandbox>, pool_plan: &PoolPlan, now: Timestamp) -> Vec<String> {
    let spec = &pool_plan.snapshot.pool.spec;
    let mut sentences = vec![format!(
        "Sandbox {} of pool {} is unclaimed.",
        sandbox.key.name, sandbox.pool
    )];
    if sandbox.terminating {
        sentences.push("It is being deleted.".into());
        return sentences;
    }
    if pool_plan.snapshot.pool.terminating {
        sentences
            .push("Its pool is being deleted, so Kubernetes' garbage collector deletes the sandbox.".into());
        return sentences;
    }
    sentences.push(availability(sandbox, spec, now));
    sentences.extend(warm_up_deadline(sandbox, pool_plan, now));
    if sandbox.evict {
        sentences.push(format!(
            "Its label {}=true requests its replacement: no claim gets it, and it is deleted as soon as enough others are \
             available.",
            labels::EVICT
        ));
    }
    sentences.extend(leaving(sandbox, pool_plan, now));
    sentences.push(revision(sandbox, pool_plan));
    sentences.extend(ranks(sandbox, &SandboxQueues::of(&pool_plan.snapshot)));
    sentences.extend(pool::error(pool_plan));
    sentences.push(next(sandbox, pool_plan));
    sentences
}

/// Whether the sandbox is available, and what it lacks.
fn availability(sandbox: &Sandbox, spec: &ResolvedPoolSpec, now: Timestamp) -> String {
    match sandbox.state.as_str() {
        labels::WARM => {}
        labels::DRAINING => return draining(sandbox, &spec.pre_delete),
        state => {
            return format!(
                "Its label {} is {state:?}, which the operator does not write. The operator does not claim or delete the \
                 sandbox until you set the label to {:?}.",
                labels::STATE,
                labels::WARM
            );
        }
    }
    if sandbox.finished() {
        return format!("Its containers have exited: its phase is {:?}.", sandbox.phase);
    }
    match sandbox.available_at(&spec.availability_rule) {
        Some(at) if sandbox.is_available(&spec.availability_rule, now) => {
            format!("It is available {}.", since(at, now))
        }
        Some(at) => format!(
            "It is Ready and not available yet: minReadySeconds end in {}, at {}.",
            between(now, at),
            timestamp(at)
        ),
        None => format!(
            "It is not available: {}.",
            unmet_conditions(sandbox, spec).join("; ")
        ),
    }
}

/// Why the sandbox cannot stay on its node, and when it goes.
fn leaving(sandbox: &Sandbox, pool_plan: &PoolPlan, now: Timestamp) -> Option<String> {
    let leaving = pool_plan.snapshot.nodes.leaving(sandbox, now)?;
    if leaving.reason == LeavingReason::EvictRequested {
        return None;
    }
    let spec = &pool_plan.snapshot.pool.spec;
    let deadline = leaving
        .since
        .checked_add(spec.drain_deadline)
        .unwrap_or(Timestamp::MAX);
    let when = match spec.drain_policy {
        DrainPolicy::Wait => format!(
            "it goes once its replacement is available, and at {} at the latest (disruption.drainDeadlineSeconds)",
            timestamp(deadline)
        ),
        DrainPolicy::Break => "it goes at once (disruption.drainPolicy is Break)".to_string(),
    };
    Some(format!(
        "It cannot stay on node {}, {}: {when}.",
        sandbox.node.as_deref().unwrap_or_default(),
        leaving.reason.clause()
    ))
}

/// When the sandbox is replaced if it does not become available. A pool with an error replaces no sandbox.
fn warm_up_deadline(sandbox: &Sandbox, pool_plan: &PoolPlan, now: Timestamp) -> Option<String> {
    let pool = &pool_plan.snapshot.pool;
    let warms_up = sandbox.state == labels::WARM
        && !sandbox.finished()
        && sandbox.available_at(&pool.spec.availability_rule).is_none();
    if !warms_up || pool.error.is_some() {
        return None;
    }
    let due = sandbox.overdue_at(pool.spec.warm_up);
    Some(if due > now {
        format!(
            "It is replaced at {}, in {}, unless it becomes available before (warmUpDeadlineSeconds).",
            timestamp(due),
            between(now, due)
        )
    } else {
        format!(
            "Its warm-up deadline passed at {} (warmUpDeadlineSeconds).",
            timestamp(due)
        )
    })
}

fn draining(sandbox: &Sandbox, pre_delete: &Hook) -> String {
    let held: Vec<_> = pre_delete
        .describe(sandbox)
        .filter(|(_, on)| *on)
        .map(|(handler, _)| handler)
        .collect();
    if held.is_empty() {
        return "It is draining, and its preDelete handlers are removed.".into();
    }
    format!(
        "It is draining: it is deleted when these preDelete handlers are removed: {}.",
        held.join(", ")
    )
}

/// The conditions of availability that a warm sandbox does not meet.
fn unmet_conditions(sandbox: &Sandbox, spec: &ResolvedPoolSpec) -> Vec<String> {
    let mut sentences = Vec::new();
    if sandbox.node.is_none() {
        sentences.push("it is not scheduled to a node".to_string());
    } else if sandbox.phase != PodPhase::Running {
        sentences.push(format!("its phase is {:?}", sandbox.phase));
    }
    sentences.extend(
        sandbox
            .not_running_reason
            .as_ref()
            .map(|reason| match &*sandbox.not_running_detail {
                "" => reason.clone(),
                detail => format!("{reason} ({detail})"),
            }),
    );
    match (sandbox.ready_since, sandbox.ready_changed) {
        (Some(_), _) => {}
        (None, Some(at)) => sentences.push(format!("it has not been Ready since {}", timestamp(at))),
        (None, None) => sentences.push("it has not been Ready yet".into()),
    }
    let missing: Vec<_> = spec
        .availability_rule
        .pre_normal
        .describe(sandbox)
        .filter(|(_, on)| !on)
        .map(|(handler, _)| handler)
        .collect();
    if !missing.is_empty() {
        sentences.push(format!(
            "these preNormal handlers are missing: {}",
            missing.join(", ")
        ));
    }
    sentences
}

fn revision(sandbox: &Sandbox, pool_plan: &PoolPlan) -> String {
    let latest = &pool_plan.plan.status.update_revision;
    let revision = &sandbox.revision;
    if revision == latest {
        format!("It runs revision {revision}, the pool's latest.")
    } else if latest.is_empty() {
        format!("It runs revision {revision}; the latest revision of the pool is unknown.")
    } else {
        format!("It runs the old revision {revision}; the pool's latest is {latest}.")
    }
}

/// The rank of the sandbox in the order of claiming and in the order of removal.
fn ranks(sandbox: &Sandbox, queues: &SandboxQueues) -> Vec<String> {
    let in_line = |line: &[Arc<Sandbox>]| {
        let index = line.iter().position(|s| s.uid == sandbox.uid)?;
        Some(rank(index, line.len()))
    };
    let claiming = in_line(&queues.claiming).map(|rank| format!("It is {rank} to be claimed."));
    let removal = in_line(&queues.removal)
        .map(|rank| format!("It is {rank} to be deleted when the pool has too many."));
    [claiming, removal].into_iter().flatten().collect()
}

/// What the planner would do with the sandbox.
fn next(sandbox: &Sandbox, pool_plan: &PoolPlan) -> String {
    let about = |s: &Arc<Sandbox>| s.uid == sandbox.uid;
    let planned = pool_plan.plan.actions.iter().find_map(|action| {
        let verb = match &action.step {
            Step::DeletePod { sandbox } if about(sandbox) => "delete it".to_string(),
            Step::DrainPod { sandbox } if about(sandbox) => "drain it".to_string(),
            Step::RestorePod { sandbox } if about(sandbox) => "set it back to warm".to_string(),
            Step::BindClaim { claim, sandbox } if about(sandbox) => {
                format!("bind it to claim {}", claim.key.name)
            }
            _ => return None,
        };
        Some(format!(
            "Next the operator would {verb} {}.",
            because(action.reason)
        ))
    });
    planned.unwrap_or_else(|| "The operator would not touch it now.".into())
}
