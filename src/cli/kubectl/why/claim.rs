//! Explains why a claim waits, which sandbox it has, or why it ended.

use crate::api::SandboxClaimStatus;
use crate::api::claim::{OnEmpty, Phase};
use crate::api::conditions;
use crate::cache::index::Index;
use crate::cli::kubectl::why::format::{between, since, timestamp};
use crate::cli::kubectl::why::pool;
use crate::cli::pool_plan::PoolPlan;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::planner::{self, Step, select_pool};
use jiff::Timestamp;

/// Explains a claim, one sentence per item; `None` when it does not exist.
pub fn explain(index: &Index, key: &Key, now: Timestamp) -> Option<Vec<String>> {
    let claim = index.claim(key)?;
    let name = &key.name;
    if claim.terminating {
        return Some(vec![format!(
            "Claim {name} is being deleted, and its sandbox with it."
        )]);
    }
    let snapshot = index.claim_snapshot(key, now)?;
    let status = planner::claim::plan(&snapshot).status;
    // The stored status may be older than the status that the operator is about to write.
    let status = status.as_deref().unwrap_or(&claim.status);
    Some(match status.phase {
        Some(Phase::Bound) => bound(index, key, status, now),
        None | Some(Phase::Pending) => waiting(index, &claim, status, now),
        Some(phase) => vec![
            format!(
                "Claim {name} is {phase:?}: {}.",
                message(status, conditions::BOUND)
            ),
            format!(
                "It does not wait any more; 'kubectl delete sandboxclaim {name} -n {}' removes it.",
                key.namespace
            ),
        ],
    })
}

fn message(status: &SandboxClaimStatus, condition: &str) -> String {
    conditions::find(&status.conditions, condition).map_or_else(String::new, |c| c.message.clone())
}

/// Which sandboxes the claim has, and whether they are Ready.
fn bound(index: &Index, key: &Key, status: &SandboxClaimStatus, now: Timestamp) -> Vec<String> {
    let mut sentences = Vec::new();
    let latest = PoolPlan::of(index, &Key::new(key.namespace.clone(), &status.pool), now)
        .map(|pool_plan| pool_plan.plan.status.update_revision);
    for sandbox in &status.sandboxes {
        let ip = match sandbox.ip.as_str() {
            "" => String::new(),
            ip => format!(" ({ip})"),
        };
        let origin = if sandbox.warm {
            "It was available when the claim was created"
        } else {
            "It became available only after the claim was created"
        };
        sentences.push(format!(
            "Claim {} is bound to sandbox {}{ip} of pool {} {}.",
            key.name,
            sandbox.name,
            status.pool,
            since(sandbox.bound_time.0, now)
        ));
        sentences.push(match status.wait.as_str() {
            "" => format!("{origin}."),
            wait => format!("{origin}. The claim waited {wait}."),
        });
        if let Some(latest) = latest.as_ref().filter(|latest| **latest != sandbox.revision) {
            sentences.push(format!(
                "The sandbox runs revision {}, and the pool's latest is {latest}; no rollout touches a claimed sandbox.",
                sandbox.revision
            ));
        }
    }
    if let Some(end) = &status.expiration_time {
        sentences.push(format!(
            "It expires at {}, in {}.",
            timestamp(end.0),
            between(now, end.0)
        ));
    }
    if conditions::find(&status.conditions, conditions::READY).is_some_and(|c| c.status != "True") {
        sentences.push(format!(
            "It is not Ready: {}.",
            message(status, conditions::READY)
        ));
    }
    sentences.extend(disruption(status));
    sentences
}

/// Why the node of a sandbox of the claim has to go, and until when the sandbox stays.
fn disruption(status: &SandboxClaimStatus) -> Option<String> {
    let pending = conditions::find(&status.conditions, conditions::DISRUPTION_PENDING)?;
    Some(format!("Its disruption is pending: {}.", pending.message))
}

/// Why the claim waits, and what the operator does about it.
fn waiting(index: &Index, claim: &Claim, status: &SandboxClaimStatus, now: Timestamp) -> Vec<String> {
    let age = between(claim.waits_from(claim.created), now);
    let name = &claim.key.name;
    if claim.spec.is_err() {
        return vec![format!(
            "Claim {name} cannot be served because its spec is invalid: {}.",
            message(status, conditions::BOUND)
        )];
    }
    let assigned_pool = select_pool::serving_pool(index, claim, now);
    let Some(pool_plan) = assigned_pool.and_then(|pool| PoolPlan::of(index, &pool, now)) else {
        let why = message(status, conditions::BOUND);
        let mut sentences = vec![format!("Claim {name} has waited {age}: {why}.")];
        sentences.extend(deadline(claim, None, now));
        return sentences;
    };
    let pool = &pool_plan.snapshot.pool.key.name;
    if pool_plan.snapshot.pool.terminating {
        let mut sentences = vec![format!(
            "Claim {name} has waited {age}. Pool {pool} is being deleted: it creates no sandbox and serves no claim."
        )];
        sentences.extend(deadline(claim, Some(&pool_plan), now));
        return sentences;
    }
    let mut waiting = pool_plan.plan.waiting.iter();
    let Some((_, wait_reason)) = waiting.find(|(waiting, _)| waiting.uid == claim.uid) else {
        let mut sentences = vec![planned_action(&pool_plan, claim)];
        let fails_at = planner::claim::rejection(claim).and_then(|_| deadline(claim, Some(&pool_plan), now));
        sentences.extend(fails_at);
        return sentences;
    };
    let position = wait_reason
        .position
        .map(|position| format!("; {}", position.present()));
    let mut sentences = vec![format!(
        "Claim {name} has waited {age} for a sandbox of pool {pool}: {}{}.",
        wait_reason.message,
        position.unwrap_or_default()
    )];
    let others = index.pools_for(claim).len().saturating_sub(1);
    if others > 0 {
        let pools = if others == 1 { "pool" } else { "pools" };
        sentences.push(format!(
            "Its poolSelector also selects {others} other {pools}; the first that can serve the claim does."
        ));
    }
    if pool_plan.snapshot.pool.error.is_none() {
        let spec = claim.resolved_spec(Some(&pool_plan.snapshot.pool.claim_defaults));
        // Of a claim that only waits the reason says so, unless a sandbox may still come.
        let pool_spec = &pool_plan.snapshot.pool.spec;
        if pool_spec.replicas == 0 && spec.on_empty == OnEmpty::Create {
            let field = pool::size_field(pool_spec);
            sentences.push(format!("Pool {pool} keeps no sandbox warm: its {field} is 0."));
        }
        sentences.extend(pool::shortage(&pool_plan));
    }
    sentences.extend(deadline(claim, Some(&pool_plan), now));
    sentences
}

/// What the planner does about a claim that does not wait.
fn planned_action(pool_plan: &PoolPlan, claim: &Claim) -> String {
    let name = &claim.key.name;
    let step = pool_plan
        .plan
        .actions
        .iter()
        .find_map(|action| match &action.step {
            Step::BindClaim { claim: to, sandbox } if to.uid == claim.uid => {
                let would = format!("the operator would bind it to sandbox {} now", sandbox.key.name);
                Some(match planner::claim::rejection(claim) {
                    Some(rejection) => format!("Claim {name} is next: {would}, but {rejection}."),
                    None => format!("Claim {name} is next: {would}."),
                })
            }
            Step::FailClaim { claim: of, message } if of.uid == claim.uid => {
                Some(format!("Claim {name} is about to fail: {message}."))
            }
            _ => None,
        });
    step.unwrap_or_else(|| format!("Claim {name} is being bound."))
}

/// When the claim fails or expires if nothing changes.
fn deadline(claim: &Claim, pool_plan: Option<&PoolPlan>, now: Timestamp) -> Option<String> {
    let resolved_spec = claim.resolved_spec(pool_plan.map(|o| &o.snapshot.pool.claim_defaults));
    let at = claim.deadline(&resolved_spec)?;
    if let Some(end) = claim.expiration().filter(|end| *end <= at) {
        return Some(format!(
            "It expires at {}, in {}, bound or not.",
            timestamp(end),
            between(now, end)
        ));
    }
    Some(format!(
        "It fails at {}, in {}, unless it is bound before (waitTimeoutSeconds).",
        timestamp(at),
        between(now, at)
    ))
}
