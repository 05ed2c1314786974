//! Why a pool is as it is: a pure function of the cluster as read.

use crate::api::conditions;
use crate::api::conditions::progressing;
use crate::api::pool::UpdateStrategyType;
use crate::cache::index::Index;
use crate::cli::kubectl::why::outlook::Outlook;
use crate::cli::kubectl::why::words::{are, because, claims, sandboxes};
use crate::model::Key;
use crate::planner::{BURST_REPLICAS, Step};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use std::collections::BTreeMap;

/// What there is to say about a pool, a sentence each; `None` when it is not there.
pub fn explain(index: &Index, key: &Key, now: Timestamp) -> Option<Vec<String>> {
    let outlook = Outlook::of(index, key, now)?;
    let pool = &outlook.snapshot.pool;
    let name = &key.name;
    if pool.terminating {
        return Some(vec![format!(
            "Pool {name} is being deleted: its unclaimed sandboxes go, and those of claims stay with their claims."
        )]);
    }
    let mut said = vec![fullness(&outlook)];
    if pool.status.observed_generation < pool.generation {
        said.push(
            "The operator has not seen the latest change of it yet; if that stays so, no operator may be running."
                .into(),
        );
    }
    if pool.error.is_none() {
        said.extend(shortage(&outlook));
        said.extend(rollout(&outlook));
    }
    said.extend(stopped(&outlook));
    said.push(next(&outlook));
    Some(said)
}

fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}

/// How many sandboxes the pool has of those that it is to have.
fn fullness(outlook: &Outlook) -> String {
    let (status, spec) = (&outlook.plan.status, &outlook.snapshot.pool.spec);
    let name = &outlook.snapshot.pool.key.name;
    let (available, here) = (count(status.available), count(status.replicas));
    let wanted = spec.replicas;
    let known = outlook.snapshot.pool.error.is_none();
    let mut said = if !known {
        format!(
            "Pool {name} has {}, {available} of them available",
            sandboxes(here)
        )
    } else if wanted == 0 && here == 0 {
        format!("Pool {name} keeps no sandbox warm: its spec.replicas is 0")
    } else if available >= wanted {
        format!("Pool {name} is full: {available} available, {wanted} wanted")
    } else {
        format!("Pool {name} is not full: {available} available, {wanted} wanted")
    };
    let warming = here.saturating_sub(available);
    if warming > 0 {
        said += &format!(", {warming} not available yet");
    }
    let more = [
        (status.claimed, "held by claims"),
        (status.draining, "draining before they are deleted"),
    ];
    for (n, what) in more.iter().filter(|(n, _)| *n > 0) {
        said += &format!(", {n} {what}");
    }
    said + "."
}

/// What the pool does about sandboxes that are missing, and what keeps it from making them all.
pub(super) fn shortage(outlook: &Outlook) -> Vec<String> {
    let lack = outlook.plan.shortfall;
    let spec = &outlook.snapshot.pool.spec;
    let mut said = Vec::new();
    let waiting = count(outlook.plan.status.pending_claims);
    if waiting > 0 {
        let verb = if waiting == 1 { "waits" } else { "wait" };
        said.push(format!("{} {verb} for it.", claims(waiting)));
    }
    if let Some(words) = outlook.rejection() {
        said.push(format!(
            "The API server refuses new sandboxes: {words}. The operator tries one now and then, a minute apart at most."
        ));
        return said;
    }
    if lack.missing == 0 {
        return said;
    }
    let created = outlook.creations();
    said.push(format!(
        "{} {} missing, and the operator creates {created} now.",
        sandboxes(lack.missing),
        are(lack.missing)
    ));
    if lack.total_headroom < lack.missing {
        let max = spec.max_total.unwrap_or_default();
        said.push(format!(
            "capacity.maxTotal is {max}, claimed and terminating ones included, and has room for {} more.",
            lack.total_headroom
        ));
    }
    if lack.warming_headroom < lack.missing.min(lack.total_headroom) {
        said.push(format!(
            "No more than scaleStrategy.maxUnavailable ({}) warm up at once; the others come as these become available.",
            spec.warming
        ));
    }
    if created >= BURST_REPLICAS {
        said.push(format!(
            "No more than {BURST_REPLICAS} are made at a time; the others come as these have been made."
        ));
    } else if created < lack.missing.min(lack.total_headroom).min(lack.warming_headroom) {
        said.push(
            "More of a revision that has yet to come up, or failed to, are not tried at once: no more than \
             maxUnavailable and maxSurge together."
                .into(),
        );
    }
    said
}

/// What stops the pool as a whole.
pub(super) fn stopped(outlook: &Outlook) -> Option<String> {
    let error = outlook.snapshot.pool.error.as_ref()?;
    Some(format!(
        "Nothing is created or deleted: {}. What is warm may still be claimed.",
        error.message()
    ))
}

/// How the rollout fares, in the operator's words where it has some for this revision: it remembers more than is stored.
fn rollout(outlook: &Outlook) -> Vec<String> {
    let (pool, plan) = (&outlook.snapshot.pool, &outlook.plan);
    let planned = progress(&plan.status.conditions);
    let same = pool.status.observed_generation == pool.generation
        && pool.status.update_revision == plan.status.update_revision;
    let stored = progress(&pool.status.conditions).filter(|_| same);
    let Some(progress) = stored.or(planned) else {
        return Vec::new();
    };
    let mut said = vec![format!("Rollout: {}.", progress.message)];
    said.extend(hold(outlook, &progress.reason));
    said
}

fn progress(conditions: &[Condition]) -> Option<&Condition> {
    conditions::find(conditions, conditions::PROGRESSING)
}

/// What a rollout that is not at its end waits for.
fn hold(outlook: &Outlook, reason: &str) -> Option<String> {
    let (pool, plan) = (&outlook.snapshot.pool, &outlook.plan);
    let spec = &pool.spec;
    let old = count(plan.status.replicas - plan.status.updated);
    let claimed = count(plan.status.claimed);
    let stay = spec.min_available_beside(claimed);
    let replaces = plan.actions.iter().any(|a| a.reason == "OldRevision");
    match reason {
        progressing::COMPLETE | progressing::PARTITION_COMPLETE => None,
        progressing::PAUSED => Some(format!(
            "'kubectl warmpool rollout resume {} -n {}' lets it go on.",
            pool.key.name, pool.key.namespace
        )),
        _ if old == 0 || replaces => None,
        _ if spec.strategy == UpdateStrategyType::OnReplenish => {
            Some("By its strategy OnReplenish old sandboxes are replaced only as claims take them.".into())
        }
        _ if count(plan.status.available) <= stay => Some(format!(
            "No old sandbox may go now: {} {} available, and updateStrategy.maxUnavailable ({}) asks for {} to stay.",
            plan.status.available,
            are(count(plan.status.available)),
            spec.rollout_budget(claimed).max_unavailable,
            stay
        )),
        _ => Some(
            "No further old sandbox is replaced before new ones become available: as many as maxUnavailable allows \
             are on their way."
                .into(),
        ),
    }
}

/// What the planner would do, counted by what and why.
fn next(outlook: &Outlook) -> String {
    let mut told: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for action in &outlook.plan.actions {
        let (verb, name) = match &action.step {
            Step::CreatePod { revision, .. } => ("create a sandbox of revision", revision.as_str()),
            Step::DeletePod { sandbox } => ("delete", sandbox.key.name.as_str()),
            Step::DrainPod { sandbox } => ("drain", sandbox.key.name.as_str()),
            Step::RestorePod { sandbox } => ("keep after all", sandbox.key.name.as_str()),
            Step::BindClaim { claim, .. } => ("bind a sandbox to claim", claim.key.name.as_str()),
            Step::FailClaim { claim, .. } => ("fail claim", claim.key.name.as_str()),
        };
        told.entry((verb, action.reason)).or_default().push(name);
    }
    if told.is_empty() {
        return "There is nothing to do now.".into();
    }
    let part = |((verb, reason), names): (&(&str, &str), &Vec<&str>)| {
        let mut distinct = names.clone();
        distinct.dedup();
        let times = match (distinct.len(), names.len()) {
            (1, n @ 2..) => format!(" ({n} times)"),
            _ => String::new(),
        };
        let because = because(reason);
        format!("{verb} {}{times} {because}", distinct.join(", "))
    };
    let parts: Vec<_> = told.iter().map(part).collect();
    format!("Next the operator would {}.", parts.join("; "))
}
