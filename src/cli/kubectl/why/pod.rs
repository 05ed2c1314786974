//! Why a sandbox is where it is and what becomes of it: a pure function of the cluster as read.

use crate::api::claim::ReleasePolicy;
use crate::api::labels;
use crate::cache::index::Index;
use crate::cli::kubectl::why::outlook::Outlook;
use crate::cli::kubectl::why::pool;
use crate::cli::kubectl::why::words::{because, between, clock, place, since};
use crate::model::Key;
use crate::model::lifecycle_hook::Hook;
use crate::model::pool_spec::ResolvedPoolSpec;
use crate::model::sandbox::{Owner, PodPhase, Sandbox};
use crate::planner::Step;
use crate::planner::queues::SandboxQueues;
use jiff::Timestamp;
use std::sync::Arc;

/// What there is to say about a pod, a sentence each; `None` when it is no sandbox.
pub fn explain(index: &Index, key: &Key, now: Timestamp) -> Option<Vec<String>> {
    let sandbox = index.pod(key)?;
    let pool = Key::new(&key.namespace, &sandbox.pool);
    let outlook = Outlook::of(index, &pool, now);
    let (name, pool) = (&key.name, &sandbox.pool);
    Some(match (&sandbox.owner, &outlook) {
        (Owner::Claim { name: claim, uid }, _) => claimed(index, &sandbox, claim, uid, outlook.as_ref()),
        (Owner::Pool { uid }, Some(outlook)) if *uid == outlook.snapshot.pool.uid => {
            unclaimed(&sandbox, outlook, now)
        }
        (Owner::Pool { .. }, _) => vec![format!(
            "Sandbox {name} belongs to a pool {pool} that is gone; Kubernetes' garbage collector deletes it."
        )],
        (Owner::Other, _) => vec![format!(
            "Pod {name} has the label of pool {pool}, but neither a pool nor a claim owns it; the operator leaves it \
             alone."
        )],
    })
}

fn claimed(
    index: &Index,
    sandbox: &Sandbox,
    claim: &str,
    uid: &str,
    outlook: Option<&Outlook>,
) -> Vec<String> {
    let (name, pool) = (&sandbox.key.name, &sandbox.pool);
    let owner = index.claim(&Key::new(&sandbox.key.namespace, claim));
    let mut said = vec![format!("Sandbox {name} of pool {pool} belongs to claim {claim}.")];
    if sandbox.terminating {
        said.push("It is being deleted.".into());
    } else if owner.as_ref().is_none_or(|owner| owner.uid != uid) {
        said.push("That claim is gone, so Kubernetes' garbage collector deletes it.".into());
    } else {
        let ready = if sandbox.ready_since.is_some() {
            "Ready"
        } else {
            "not Ready"
        };
        let defaults = outlook.map(|outlook| &outlook.snapshot.pool.claim_defaults);
        let ends = match owner.map(|owner| owner.resolved_spec(defaults).release_policy) {
            Some(ReleasePolicy::Delete) => ", or when that expires",
            Some(ReleasePolicy::Retain) | None => "",
        };
        said.push(format!("It is {ready}. It goes only with its claim{ends}."));
    }
    said.extend(outlook.map(|outlook| revision(sandbox, outlook)));
    said
}

fn unclaimed(sandbox: &Arc<Sandbox>, outlook: &Outlook, now: Timestamp) -> Vec<String> {
    let spec = &outlook.snapshot.pool.spec;
    let mut said = vec![format!(
        "Sandbox {} of pool {} is unclaimed.",
        sandbox.key.name, sandbox.pool
    )];
    if sandbox.terminating {
        said.push("It is being deleted.".into());
        return said;
    }
    if outlook.snapshot.pool.terminating {
        said.push("Its pool is being deleted, and Kubernetes' garbage collector deletes it, too.".into());
        return said;
    }
    said.push(condition(sandbox, spec, now));
    said.extend(deadline(sandbox, outlook, now));
    if sandbox.evict {
        said.push(format!(
            "Its label {}=true asks for its replacement: no claim gets it, and it goes as soon as enough others are \
             available.",
            labels::EVICT
        ));
    }
    said.push(revision(sandbox, outlook));
    said.extend(lines(sandbox, &SandboxQueues::of(&outlook.snapshot)));
    said.extend(pool::stopped(outlook));
    said.push(next(sandbox, outlook));
    said
}

/// Whether a claim could take it, and if not, why.
fn condition(sandbox: &Sandbox, spec: &ResolvedPoolSpec, now: Timestamp) -> String {
    match sandbox.state.as_str() {
        labels::WARM => {}
        labels::DRAINING => return draining(sandbox, &spec.pre_delete),
        state => {
            return format!(
                "Its label {} is {state:?}, which is not the operator's doing: nobody gets it and nobody deletes it \
                 before it is {:?} again.",
                labels::STATE,
                labels::WARM
            );
        }
    }
    if sandbox.finished() {
        return format!("It has ended: its phase is {:?}.", sandbox.phase);
    }
    match sandbox.available_at(&spec.availability_rule) {
        Some(at) if sandbox.is_available(&spec.availability_rule, now) => {
            format!("It is available {}.", since(at, now))
        }
        Some(at) => format!(
            "It is Ready and not available yet: minReadySeconds are over in {}, at {}.",
            between(now, at),
            clock(at)
        ),
        None => format!("It is not available: {}.", obstacles(sandbox, spec).join("; ")),
    }
}

/// Until when it may take to become available. A pool that is stopped gives none up.
fn deadline(sandbox: &Sandbox, outlook: &Outlook, now: Timestamp) -> Option<String> {
    let pool = &outlook.snapshot.pool;
    let warms_up = sandbox.state == labels::WARM
        && !sandbox.finished()
        && sandbox.available_at(&pool.spec.availability_rule).is_none();
    if !warms_up || pool.error.is_some() {
        return None;
    }
    let due = sandbox.overdue_at(pool.spec.warm_up);
    Some(if due > now {
        format!(
            "It is replaced at {}, in {}, unless it is available by then (warmUpDeadlineSeconds).",
            clock(due),
            between(now, due)
        )
    } else {
        format!(
            "Its time for that was over at {} (warmUpDeadlineSeconds).",
            clock(due)
        )
    })
}

fn draining(sandbox: &Sandbox, pre_delete: &Hook) -> String {
    let held: Vec<_> = pre_delete
        .told(sandbox)
        .filter(|(_, on)| *on)
        .map(|(handler, _)| handler)
        .collect();
    if held.is_empty() {
        return "It is draining, and none of its preDelete handlers is left.".into();
    }
    format!(
        "It is draining: it is deleted when these preDelete handlers are off it: {}.",
        held.join(", ")
    )
}

/// What a warm sandbox lacks to be available.
fn obstacles(sandbox: &Sandbox, spec: &ResolvedPoolSpec) -> Vec<String> {
    let mut said = Vec::new();
    if sandbox.node.is_none() {
        said.push("it is not scheduled to a node".to_string());
    } else if sandbox.phase != PodPhase::Running {
        said.push(format!("its phase is {:?}", sandbox.phase));
    }
    said.extend(sandbox.not_running_reason.clone());
    match (sandbox.ready_since, sandbox.ready_changed) {
        (Some(_), _) => {}
        (None, Some(at)) => said.push(format!("it has not been Ready since {}", clock(at))),
        (None, None) => said.push("it has not been Ready yet".into()),
    }
    let missing: Vec<_> = spec
        .availability_rule
        .pre_normal
        .told(sandbox)
        .filter(|(_, on)| !on)
        .map(|(handler, _)| handler)
        .collect();
    if !missing.is_empty() {
        said.push(format!(
            "these preNormal handlers are missing: {}",
            missing.join(", ")
        ));
    }
    said
}

fn revision(sandbox: &Sandbox, outlook: &Outlook) -> String {
    let latest = &outlook.plan.status.update_revision;
    let revision = &sandbox.revision;
    if revision == latest {
        format!("It runs revision {revision}, the pool's latest.")
    } else if latest.is_empty() {
        format!("It runs revision {revision}; which is the latest cannot be said now.")
    } else {
        format!("It runs the old revision {revision}; the pool's latest is {latest}.")
    }
}

/// Where it stands in the lines for removal and for claims.
fn lines(sandbox: &Sandbox, lines: &SandboxQueues) -> Vec<String> {
    let in_line = |line: &[Arc<Sandbox>]| {
        let index = line.iter().position(|s| s.uid == sandbox.uid)?;
        Some(place(index, line.len()))
    };
    let claiming = in_line(&lines.claiming).map(|place| format!("It is {place} to be claimed."));
    let removal =
        in_line(&lines.removal).map(|place| format!("It is {place} to go when the pool has too many."));
    [claiming, removal].into_iter().flatten().collect()
}

/// What the planner would do with it.
fn next(sandbox: &Sandbox, outlook: &Outlook) -> String {
    let about = |s: &Arc<Sandbox>| s.uid == sandbox.uid;
    let told = outlook.plan.actions.iter().find_map(|action| {
        let verb = match &action.step {
            Step::DeletePod { sandbox } if about(sandbox) => "delete it".to_string(),
            Step::DrainPod { sandbox } if about(sandbox) => "drain it".to_string(),
            Step::RestorePod { sandbox } if about(sandbox) => "keep it after all".to_string(),
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
    told.unwrap_or_else(|| "The operator would not touch it now.".into())
}
