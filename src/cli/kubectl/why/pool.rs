//! Explains how full a pool is, its rollout and the next actions.

use crate::api::conditions::{self, progressing, scaling_limited};
use crate::api::labels;
use crate::api::pool::UpdateStrategyType;
use crate::cache::index::Index;
use crate::cli::kubectl::why::format::{are, because, claims, sandboxes};
use crate::cli::kubectl::why::warming;
use crate::cli::pool_plan::PoolPlan;
use crate::model::Key;
use crate::model::resolved_pool_spec::ResolvedPoolSpec;
use crate::model::sandbox_state::SandboxState;
use crate::planner::{BURST_REPLICAS, Step, WaitsFor};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use std::collections::BTreeMap;

/// Explains a pool, one sentence per item; `None` when it does not exist.
pub fn explain(index: &Index, key: &Key, now: Timestamp) -> Option<Vec<String>> {
    let pool_plan = PoolPlan::of(index, key, now)?;
    let pool = &pool_plan.snapshot.pool;
    let name = &key.name;
    if pool.terminating {
        return Some(vec![format!(
            "Pool {name} is being deleted: its unclaimed sandboxes are deleted, and claimed sandboxes remain with their claims."
        )]);
    }
    let mut sentences = vec![fullness(&pool_plan)];
    if pool.status.observed_generation < pool.generation {
        sentences.push(
            "The operator has not observed the latest change of the spec; if this does not change, check that the operator \
             is running."
                .into(),
        );
    }
    sentences.extend(size(&pool_plan));
    if pool.error.is_none() {
        sentences.extend(shortage(&pool_plan));
        sentences.extend(rollout(&pool_plan));
    }
    sentences.extend(error(&pool_plan));
    sentences.extend(set_aside(&pool_plan));
    sentences.extend(warming::reasons(&pool_plan));
    sentences.push(next(&pool_plan));
    Some(sentences)
}

fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}

/// The field that says how many sandboxes the pool keeps warm.
pub(super) fn size_field(spec: &ResolvedPoolSpec) -> &'static str {
    match spec.autoscaling {
        None => "spec.replicas",
        Some(_) => "status.desiredReplicas",
    }
}

/// How many sandboxes the pool has and wants.
fn fullness(pool_plan: &PoolPlan) -> String {
    let (status, spec) = (&pool_plan.plan.status, &pool_plan.snapshot.pool.spec);
    let name = &pool_plan.snapshot.pool.key.name;
    let (available, unclaimed) = (count(status.available), count(status.replicas));
    let wanted = spec.replicas;
    let known = pool_plan.snapshot.pool.error.is_none();
    let mut sentence = if !known {
        format!(
            "Pool {name} has {}, {available} of them available",
            sandboxes(unclaimed)
        )
    } else if wanted == 0 && unclaimed == 0 {
        format!("Pool {name} keeps no sandbox warm: its {} is 0", size_field(spec))
    } else if available >= wanted {
        format!("Pool {name} is full: {available} available, {wanted} wanted")
    } else {
        format!("Pool {name} is not full: {available} available, {wanted} wanted")
    };
    let warming = unclaimed.saturating_sub(available);
    if warming > 0 {
        sentence += &format!(", {warming} not available yet");
    }
    let more = [(status.claimed, "held by claims"), (status.draining, "draining")];
    for (n, state) in more.iter().filter(|(n, _)| *n > 0) {
        sentence += &format!(", {n} {state}");
    }
    sentence + "."
}

/// How many sandboxes are missing, and which limits keep the operator from creating all of them now.
pub(super) fn shortage(pool_plan: &PoolPlan) -> Vec<String> {
    let shortfall = pool_plan.plan.shortfall;
    let spec = &pool_plan.snapshot.pool.spec;
    let mut sentences = Vec::new();
    let waiting = count(pool_plan.plan.status.pending_claims);
    if waiting > 0 {
        let verb = if waiting == 1 { "waits" } else { "wait" };
        sentences.push(format!("{} {verb} for this pool.", claims(waiting)));
    }
    if let Some(message) = pool_plan.creation_rejection() {
        sentences.push(format!(
            "The API server rejects new sandboxes: {message}. The operator retries with a single sandbox, at least once a minute."
        ));
        return sentences;
    }
    if shortfall.missing == 0 {
        return sentences;
    }
    let created = pool_plan.creations();
    sentences.push(format!(
        "{} {} missing, and the operator creates {created} now.",
        sandboxes(shortfall.missing),
        are(shortfall.missing)
    ));
    if shortfall.total_headroom < shortfall.missing {
        let max = spec.max_total.unwrap_or_default();
        sentences.push(format!(
            "capacity.maxTotal is {max}, claimed and terminating ones included, and allows {} more.",
            shortfall.total_headroom
        ));
    }
    if shortfall.warming_headroom < shortfall.missing.min(shortfall.total_headroom) {
        sentences.push(format!(
            "At most scaleStrategy.maxUnavailable ({}) sandboxes warm up at once; the others are created as these become \
             available.",
            spec.warming
        ));
    }
    if created >= BURST_REPLICAS {
        sentences.push(format!(
            "At most {BURST_REPLICAS} sandboxes are created at once; the others follow."
        ));
    } else if created
        < shortfall
            .missing
            .min(shortfall.total_headroom)
            .min(shortfall.warming_headroom)
    {
        sentences.push(
            "While no sandbox of the revision has become available, at most maxUnavailable and maxSurge together are \
             created at once."
                .into(),
        );
    }
    sentences
}

/// Why an autoscaled pool has its size, as the operator said last: it remembers more than this plan knows.
fn size(pool_plan: &PoolPlan) -> Vec<String> {
    let (stored, planned) = (&pool_plan.snapshot.pool.status, &pool_plan.plan.status);
    let Some(autoscaling) = stored.autoscaling.as_ref().or(planned.autoscaling.as_ref()) else {
        return Vec::new();
    };
    let mut sentences = vec![format!("Autoscaling chose its size: {}.", autoscaling.message)];
    let limit = conditions::find(&planned.conditions, conditions::SCALING_LIMITED);
    let limits = |c: &&Condition| c.status == "True" && c.reason != scaling_limited::TOO_FEW;
    sentences.extend(
        limit
            .filter(limits)
            .map(|c| format!("It is limited: {}.", c.message)),
    );
    sentences
}

/// The error that stops the pool, if it has one.
pub(super) fn error(pool_plan: &PoolPlan) -> Option<String> {
    let error = pool_plan.snapshot.pool.error.as_ref()?;
    Some(format!(
        "Nothing is created or deleted: {}. Warm sandboxes can still be claimed.",
        error.message()
    ))
}

/// The state of the rollout. Prefers the stored condition for this revision, because the operator remembers more than
/// this plan knows.
fn rollout(pool_plan: &PoolPlan) -> Vec<String> {
    let (pool, plan) = (&pool_plan.snapshot.pool, &pool_plan.plan);
    let planned = conditions::find(&plan.status.conditions, conditions::PROGRESSING);
    let same = pool.status.observed_generation == pool.generation
        && pool.status.update_revision == plan.status.update_revision;
    let stored = conditions::find(&pool.status.conditions, conditions::PROGRESSING).filter(|_| same);
    let Some(progress) = stored.or(planned) else {
        return Vec::new();
    };
    let mut sentences = vec![format!("Rollout: {}.", progress.message)];
    sentences.extend(blocker(pool_plan, &progress.reason));
    sentences
}

/// What an incomplete rollout waits for.
fn blocker(pool_plan: &PoolPlan, reason: &str) -> Option<String> {
    let (pool, plan) = (&pool_plan.snapshot.pool, &pool_plan.plan);
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
            Some("Its strategy is OnReplenish: old sandboxes are replaced only as claims take them.".into())
        }
        _ if count(plan.status.available) <= stay => Some(format!(
            "No old sandbox can be deleted now: {} {} available, and updateStrategy.maxUnavailable ({}) requires {} to stay available.",
            plan.status.available,
            are(count(plan.status.available)),
            spec.rollout_budget(claimed).max_unavailable,
            stay
        )),
        _ => Some(
            "No more old sandboxes are replaced until new sandboxes become available: as many as \
             maxUnavailable allows are warming up."
                .into(),
        ),
    }
}

/// Pods with a state label that the operator does not understand, and what to do about them.
fn set_aside(pool_plan: &PoolPlan) -> Option<String> {
    let (pool, now) = (&pool_plan.snapshot.pool, pool_plan.snapshot.now);
    let rule = &pool.spec.availability_rule;
    let sandboxes = pool_plan.snapshot.sandboxes.iter().map(|entry| &entry.sandbox);
    let of_state = sandboxes.filter(|s| s.state_at(&pool.uid, rule, now) == SandboxState::SetAside);
    let mut names: Vec<&str> = of_state.map(|sandbox| sandbox.key.name.as_str()).collect();
    names.sort_unstable();
    let first = names.first()?;
    let pods = match names.len() {
        1 => format!("Pod {first} has"),
        count => format!("{count} pods have"),
    };
    let (label, warm, namespace) = (labels::STATE, labels::WARM, &pool.key.namespace);
    Some(format!(
        "{pods} no label {label} that the operator writes for an unclaimed sandbox: it neither claims nor deletes such a pod, \
         and the pod counts toward capacity.maxTotal. Give {first} back to the pool with 'kubectl label pod {first} -n \
         {namespace} --overwrite {label}={warm}', or delete it."
    ))
}

/// The planned actions, grouped by verb and reason.
fn next(pool_plan: &PoolPlan) -> String {
    let mut planned: BTreeMap<(&str, &str, &str), Vec<&str>> = BTreeMap::new();
    for action in &pool_plan.plan.actions {
        let (verb, name) = match &action.step {
            Step::CreatePod { revision, .. } => ("create a sandbox of revision", revision.as_str()),
            Step::DeletePod { sandbox } => ("delete", sandbox.key.name.as_str()),
            Step::DrainPod { sandbox } => ("drain", sandbox.key.name.as_str()),
            Step::RestorePod { sandbox } => ("set back to warm", sandbox.key.name.as_str()),
            Step::BindClaim { claim, .. } => ("bind a sandbox to claim", claim.key.name.as_str()),
            Step::FailClaim { claim, .. } => ("fail claim", claim.key.name.as_str()),
        };
        let waits_for = action.waits_for.map_or("", WaitsFor::clause);
        let group = (verb, action.reason, waits_for);
        planned.entry(group).or_default().push(name);
    }
    if planned.is_empty() {
        return warming::first_replacement(pool_plan).unwrap_or_else(|| "There is nothing to do now.".into());
    }
    let clause = |((verb, reason, waits_for), names): (&(&str, &str, &str), &Vec<&str>)| {
        let mut distinct = names.clone();
        distinct.dedup();
        let times = match (distinct.len(), names.len()) {
            (1, n @ 2..) => format!(" ({n} times)"),
            _ => String::new(),
        };
        let because = because(reason);
        let names = distinct.join(", ");
        let after = if waits_for.is_empty() { "" } else { ", " };
        format!("{verb} {names}{times} {because}{after}{waits_for}")
    };
    let clauses: Vec<_> = planned.iter().map(clause).collect();
    format!("Next the operator would {}.", clauses.join("; "))
}
