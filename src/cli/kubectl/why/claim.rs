//! Why a claim waits, or what it has: a pure function of the cluster as read.

use crate::api::SandboxClaimStatus;
use crate::api::claim::Phase;
use crate::api::conditions;
use crate::cache::index::Index;
use crate::cli::kubectl::why::outlook::Outlook;
use crate::cli::kubectl::why::pool;
use crate::cli::kubectl::why::words::{between, clock, since};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::planner;
use crate::planner::Step;
use jiff::Timestamp;

/// What there is to say about a claim, a sentence each; `None` when it is not there.
pub fn explain(index: &Index, key: &Key, now: Timestamp) -> Option<Vec<String>> {
    let claim = index.claim(key)?;
    let name = &key.name;
    if claim.terminating {
        return Some(vec![format!(
            "Claim {name} is being deleted, and its sandbox goes with it."
        )]);
    }
    let snapshot = index.claim_snapshot(key, now)?;
    let status = planner::claim::plan(&snapshot).status;
    // What the operator is about to write is the truth already.
    let status = status.as_deref().unwrap_or(&claim.status);
    Some(match status.phase {
        Some(Phase::Bound) => bound(index, key, status, now),
        None | Some(Phase::Pending) => waiting(index, &claim, status, now),
        Some(phase) => vec![
            format!("Claim {name} is {phase:?}: {}.", words(status, conditions::BOUND)),
            format!(
                "It waits for nothing any more; 'kubectl delete sandboxclaim {name} -n {}' removes it.",
                key.namespace
            ),
        ],
    })
}

fn words(status: &SandboxClaimStatus, condition: &str) -> String {
    conditions::find(&status.conditions, condition).map_or_else(String::new, |c| c.message.clone())
}

/// What a claim has, and how it is.
fn bound(index: &Index, key: &Key, status: &SandboxClaimStatus, now: Timestamp) -> Vec<String> {
    let mut said = Vec::new();
    let latest = Outlook::of(index, &Key::new(&key.namespace, &status.pool), now)
        .map(|outlook| outlook.plan.status.update_revision);
    for sandbox in &status.sandboxes {
        let ip = match sandbox.ip.as_str() {
            "" => String::new(),
            ip => format!(" ({ip})"),
        };
        let came = if sandbox.warm {
            "It was available when the claim came"
        } else {
            "It became available only after the claim had come"
        };
        said.push(format!(
            "Claim {} is bound to sandbox {}{ip} of pool {} {}.",
            key.name,
            sandbox.name,
            status.pool,
            since(sandbox.bound_time.0, now)
        ));
        said.push(match status.wait.as_str() {
            "" => format!("{came}."),
            wait => format!("{came}, which waited {wait}."),
        });
        if let Some(latest) = latest.as_ref().filter(|latest| **latest != sandbox.revision) {
            said.push(format!(
                "The sandbox runs revision {}, and the pool's latest is {latest}; no rollout touches a claimed sandbox.",
                sandbox.revision
            ));
        }
    }
    if let Some(end) = &status.expiration_time {
        said.push(format!(
            "It expires at {}, in {}.",
            clock(end.0),
            between(now, end.0)
        ));
    }
    if conditions::find(&status.conditions, conditions::READY).is_some_and(|c| c.status != "True") {
        said.push(format!("It is not Ready: {}.", words(status, conditions::READY)));
    }
    said
}

/// What a claim waits for, and what is done about it.
fn waiting(index: &Index, claim: &Claim, status: &SandboxClaimStatus, now: Timestamp) -> Vec<String> {
    let age = between(claim.waits_from(claim.created), now);
    let name = &claim.key.name;
    if claim.spec.is_err() {
        return vec![format!(
            "Claim {name} cannot be served, its spec is not understood: {}.",
            words(status, conditions::BOUND)
        )];
    }
    let server = index.serving_pool(claim, now);
    let Some(outlook) = server.and_then(|pool| Outlook::of(index, &pool, now)) else {
        let why = words(status, conditions::BOUND);
        let mut said = vec![format!("Claim {name} has waited {age}: {why}.")];
        said.extend(deadline(claim, None, now));
        return said;
    };
    let pool = &outlook.snapshot.pool.key.name;
    if outlook.snapshot.pool.terminating {
        let mut said = vec![format!(
            "Claim {name} has waited {age}. Pool {pool} is being deleted, so nothing is made for it and no sandbox of the \
             pool is given away any more."
        )];
        said.extend(deadline(claim, Some(&outlook), now));
        return said;
    }
    let wait_reason = outlook.plan.waiting.iter().find(|v| v.uid == claim.uid);
    let Some(wait_reason) = wait_reason else {
        let mut said = vec![decided(&outlook, claim)];
        let refused = planner::claim::rejection(claim).and_then(|_| deadline(claim, Some(&outlook), now));
        said.extend(refused);
        return said;
    };
    let mut said = vec![format!(
        "Claim {name} has waited {age} for a sandbox of pool {pool}: {}.",
        wait_reason.message
    )];
    let others = index.pools_for(claim).len().saturating_sub(1);
    if others > 0 {
        said.push(format!(
            "It would take from {others} other pools too, if one of them can serve it sooner."
        ));
    }
    if outlook.snapshot.pool.error.is_none() {
        if outlook.snapshot.pool.spec.replicas == 0 {
            said.push(format!("Pool {pool} keeps none warm: its spec.replicas is 0."));
        }
        said.extend(pool::shortage(&outlook));
    }
    said.extend(deadline(claim, Some(&outlook), now));
    said
}

/// What the planner does about a claim that need not wait.
fn decided(outlook: &Outlook, claim: &Claim) -> String {
    let name = &claim.key.name;
    let step = outlook.plan.actions.iter().find_map(|action| match &action.step {
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

/// When time alone ends it.
fn deadline(claim: &Claim, outlook: Option<&Outlook>, now: Timestamp) -> Option<String> {
    let resolved_spec = claim.resolved_spec(outlook.map(|o| &o.snapshot.pool.claim_defaults));
    let at = claim.deadline(&resolved_spec)?;
    if let Some(end) = claim.expiration().filter(|end| *end <= at) {
        return Some(format!(
            "It expires at {}, in {}, bound by then or not.",
            clock(end),
            between(now, end)
        ));
    }
    Some(format!(
        "It fails at {}, in {}, unless it is bound by then (waitTimeoutSeconds).",
        clock(at),
        between(now, at)
    ))
}
