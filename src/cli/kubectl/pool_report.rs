//! The state of one pool, as `kubectl warmpool status` shows it to people and programs.

use crate::api::claim::Phase;
use crate::cache::index::Index;
use crate::cli::kubectl::why::explain_pool;
use crate::cli::pool_plan::PoolPlan;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::sandbox::{Owner, Sandbox};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What `kubectl warmpool status -o json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// A sentence when no operator holds its lease.
    pub operator: Option<String>,
    /// The pools, by namespace and name.
    pub pools: Vec<PoolReport>,
}

/// The state of one pool.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolReport {
    /// Namespace of the pool.
    pub namespace: String,
    /// Name of the pool.
    pub name: String,
    /// The conditions that the operator would write now.
    pub conditions: Vec<Arc<Condition>>,
    /// The revision of the current template, and then those of the other sandboxes by name.
    pub revisions: Vec<RevisionReport>,
    /// The sandboxes, by revision and name.
    pub sandboxes: Vec<SandboxReport>,
    /// The claims that the pool serves or that wait for it, oldest first.
    pub claims: Vec<ClaimReport>,
    /// What happens next and why, a sentence each.
    pub explanation: Vec<String>,
}

/// A revision of a pool's template.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionReport {
    /// The hash in the label warmpool.dev/revision.
    pub revision: String,
    /// True for the revision of the current template.
    pub latest: bool,
    /// Number of sandboxes in each state.
    pub sandboxes: BTreeMap<&'static str, usize>,
}

/// A sandbox of a pool.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxReport {
    /// Name of the pod.
    pub name: String,
    /// One of available, warming, claimed, draining, terminating, finished, set-aside, foreign.
    pub state: &'static str,
    /// Revision of its template.
    pub revision: String,
    /// Node of the pod.
    pub node: Option<String>,
    /// The claim that it belongs to.
    pub claim: Option<String>,
    /// Time of its creation.
    pub created: String,
}

/// A claim of a pool.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimReport {
    /// Name of the claim.
    pub name: String,
    /// Pending, Bound, Failed or Expired.
    #[schemars(with = "String")]
    pub phase: Phase,
    /// Names of all its sandboxes.
    pub sandboxes: Vec<String>,
    /// How long it waited until it was bound.
    pub wait_seconds: Option<f64>,
    /// Since when it waits.
    pub waiting_since: Option<String>,
    /// Why it waits.
    pub message: Option<String>,
}

/// The state of the pool `key` at `now`; `None` when it does not exist.
pub fn report(index: &Index, key: &Key, now: Timestamp) -> Option<PoolReport> {
    let pool_plan = PoolPlan::of(index, key, now)?;
    let sandboxes = sandboxes(&pool_plan, now);
    Some(PoolReport {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        revisions: revisions(&pool_plan.plan.status.update_revision, &sandboxes),
        sandboxes,
        claims: claims(index, &pool_plan),
        explanation: explain_pool(index, key, now).unwrap_or_default(),
        conditions: pool_plan.plan.status.conditions,
    })
}

fn sandboxes(pool_plan: &PoolPlan, now: Timestamp) -> Vec<SandboxReport> {
    let pool = &pool_plan.snapshot.pool;
    let report = |sandbox: &Sandbox| SandboxReport {
        name: sandbox.key.name.to_string(),
        state: sandbox
            .state_at(&pool.uid, &pool.spec.availability_rule, now)
            .as_str(),
        revision: sandbox.revision.to_string(),
        node: sandbox.node.as_ref().map(ToString::to_string),
        claim: match &sandbox.owner {
            Owner::Claim { name, .. } => Some(name.to_string()),
            Owner::Pool { .. } | Owner::Other => None,
        },
        created: sandbox.created.to_string(),
    };
    let entries = pool_plan.snapshot.sandboxes.iter();
    let mut sandboxes: Vec<_> = entries.map(|entry| report(&entry.sandbox)).collect();
    sandboxes.sort_by(|a, b| (&a.revision, &a.name).cmp(&(&b.revision, &b.name)));
    sandboxes
}

fn revisions(latest: &str, sandboxes: &[SandboxReport]) -> Vec<RevisionReport> {
    let older: BTreeSet<&str> = sandboxes
        .iter()
        .map(|sandbox| sandbox.revision.as_str())
        .collect();
    let older = older.into_iter().filter(|revision| *revision != latest);
    let report = |revision: &str| {
        let mut counts = BTreeMap::new();
        for sandbox in sandboxes.iter().filter(|sandbox| sandbox.revision == revision) {
            *counts.entry(sandbox.state).or_default() += 1;
        }
        RevisionReport {
            revision: revision.to_string(),
            latest: revision == latest,
            sandboxes: counts,
        }
    };
    std::iter::once(latest).chain(older).map(report).collect()
}

/// The claims that the pool has served, and those that wait for it.
fn claims(index: &Index, pool_plan: &PoolPlan) -> Vec<ClaimReport> {
    let key = &pool_plan.snapshot.pool.key;
    let all = index.claim_keys();
    let of_pool = all
        .iter()
        .filter_map(|claim| index.claim(claim))
        .filter(|claim| claim.key.namespace == key.namespace && claim.pool() == key.name);
    let decided = of_pool.filter_map(|claim| {
        let phase = claim.status.phase.filter(|phase| *phase != Phase::Pending)?;
        Some((claim.created, claim_report(&claim, phase, None)))
    });
    let waiting = pool_plan.plan.waiting.iter().map(|(claim, why)| {
        let report = claim_report(claim, Phase::Pending, Some(why.message.to_string()));
        (waits_since(claim), report)
    });
    let mut claims: Vec<_> = decided.chain(waiting).collect();
    claims.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
    claims.into_iter().map(|(_, claim)| claim).collect()
}

fn claim_report(claim: &Claim, phase: Phase, message: Option<String>) -> ClaimReport {
    let waits = phase == Phase::Pending;
    ClaimReport {
        name: claim.key.name.to_string(),
        phase,
        sandboxes: claim.status.sandboxes.iter().map(|s| s.name.clone()).collect(),
        wait_seconds: claim.status.wait_seconds,
        waiting_since: waits.then(|| waits_since(claim).to_string()),
        message,
    }
}

fn waits_since(claim: &Claim) -> Timestamp {
    claim.waits_from(claim.created)
}
