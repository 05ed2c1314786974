//! `warmpool plan`: the planner of the controllers, run once over a live cluster or over files.

use crate::api::PoolStatus;
use crate::api::claim::Phase as ClaimPhase;
use crate::api::conditions;
use crate::cache::index::Index;
use crate::cache::snapshot::{ClaimSnapshot, Creation, PoolSnapshot};
use crate::cli::documents::{DocumentError, Documents};
use crate::cli::live;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::sandbox::Sandbox;
use crate::planner;
use crate::planner::claim::release_reason;
use crate::planner::{Action, Plan, PlanPhase, Step};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kube::Client;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Arguments of `warmpool plan`.
#[derive(Args)]
#[command(after_help = "\
Without -f the live cluster of the current kubeconfig context is read. The names of pods to be created are \
examples: the operator draws its own.

Examples:
  warmpool plan
  warmpool plan -o json | jq '.pools[].actions'
  kubectl get wp,sbc,pods,podtemplates,controllerrevisions -o yaml | warmpool plan -f -")]
pub struct Arguments {
    /// Plan from this YAML or JSON file instead of a cluster; - reads standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    file: Option<PathBuf>,
    /// The moment to plan for, as in 2026-01-31T12:00:00Z [default: now]
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,
    /// How the plan is printed
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// A table for people
    Text,
    /// One JSON document
    Json,
}

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The file could not be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A document is wrong.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The cluster could not be read.
    #[error("the cluster could not be read: {0}")]
    Cluster(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The plan could not be printed.
    #[error("the plan could not be printed: {0}")]
    Print(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl PlanError {
    /// 2 for input that is wrong, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. } | Self::Document(_) => super::BAD_INPUT,
            Self::Cluster(_) | Self::Print(_) => 1,
        }
    }
}

/// All plans, in the JSON form.
#[derive(Serialize)]
struct Report {
    pools: Vec<PoolReport>,
}

#[derive(Serialize)]
struct PoolReport {
    namespace: String,
    name: String,
    actions: Vec<ActionReport>,
    status: PoolStatus,
}

#[derive(Serialize)]
struct ActionReport {
    phase: PlanPhase,
    action: &'static str,
    pod: Option<String>,
    claim: Option<String>,
    revision: Option<String>,
    reason: String,
}

/// Prints the plan.
///
/// # Errors
/// As [`PlanError`] says.
pub fn run(arguments: &Arguments) -> Result<(), PlanError> {
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let index = match &arguments.file {
        Some(path) => from_file(path)?,
        None => super::block_on(from_cluster()).map_err(|e| PlanError::Cluster(e.into()))??,
    };
    let pools = index
        .pool_keys()
        .iter()
        .filter_map(|key| report(&index, key, now))
        .collect();
    let text = match arguments.output {
        Output::Json => {
            serde_json::to_string_pretty(&Report { pools }).map_err(|e| PlanError::Print(e.into()))? + "\n"
        }
        Output::Text => table(&pools).map_err(|e| PlanError::Print(e.into()))?,
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|e| PlanError::Print(e.into()))
}

fn from_file(path: &PathBuf) -> Result<Index, PlanError> {
    let wrong = |source| PlanError::Read {
        path: path.clone(),
        source,
    };
    let mut text = String::new();
    if path.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).map_err(wrong)?;
    } else {
        text = std::fs::read_to_string(path).map_err(wrong)?;
    }
    let documents = Documents::read(&text)?;
    for ignored in &documents.ignored {
        eprintln!(
            "warning: {ignored} is ignored; a plan is made from Pools, SandboxClaims, Pods, PodTemplates and ControllerRevisions"
        );
    }
    let index = documents.into_index();
    Documents::check(&index)?;
    Ok(index)
}

async fn from_cluster() -> Result<Index, PlanError> {
    let client = Client::try_default()
        .await
        .map_err(|e| PlanError::Cluster(e.into()))?;
    let index = live::read(&client, None).await;
    index.map_err(|e| PlanError::Cluster(e.into()))
}

fn report(index: &Index, key: &Key, now: Timestamp) -> Option<PoolReport> {
    let snapshot = index.pool_snapshot(key, now, 0, Creation::Open)?;
    let (mut actions, status) = if snapshot.pool.terminating {
        // The operator leaves it to the garbage collector.
        (Vec::new(), snapshot.pool.status.clone())
    } else {
        let Plan { actions, status, .. } = planner::plan(&snapshot);
        (actions.iter().map(action).collect(), status)
    };
    actions.extend(recovery(index, &snapshot));
    Some(PoolReport {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        actions,
        status,
    })
}

fn action(action: &Action) -> ActionReport {
    let (verb, pod, claim, revision) = match &action.step {
        Step::CreatePod { name, revision } => ("CreatePod", Some(name), None, Some(revision)),
        Step::DeletePod { sandbox } => (
            "DeletePod",
            Some(&sandbox.key.name),
            None,
            Some(&sandbox.revision),
        ),
        Step::DrainPod { sandbox } => ("DrainPod", Some(&sandbox.key.name), None, Some(&sandbox.revision)),
        Step::RestorePod { sandbox } => (
            "RestorePod",
            Some(&sandbox.key.name),
            None,
            Some(&sandbox.revision),
        ),
        Step::BindClaim { claim, sandbox } => (
            "BindClaim",
            Some(&sandbox.key.name),
            Some(&claim.key.name),
            Some(&sandbox.revision),
        ),
        Step::FailClaim { claim, .. } => ("FailClaim", None, Some(&claim.key.name), None),
    };
    ActionReport {
        phase: action.phase,
        action: verb,
        pod: pod.cloned(),
        claim: claim.cloned(),
        revision: revision.cloned(),
        reason: action.reason.to_string(),
    }
}

/// What the controller of claims would finish, end or release among the claims of this pool.
fn recovery(index: &Index, snapshot: &PoolSnapshot) -> Vec<ActionReport> {
    let views = index.claim_keys();
    let views = views
        .iter()
        .filter_map(|key| index.claim_snapshot(key, snapshot.now));
    views
        .filter(|claim| is_of(claim, &snapshot.pool.key))
        .flat_map(|claim| of_claim(&claim))
        .collect()
}

/// By the sandboxes that the claim holds; one that has none is of the pool that it asks for or that serves it.
fn is_of(claim: &ClaimSnapshot, pool: &Key) -> bool {
    let mut holds = claim.sandboxes.iter().map(|s| &s.pool);
    let here = if claim.sandboxes.is_empty() {
        claim.claim.pool() == pool.name
    } else {
        holds.any(|holds| *holds == pool.name)
    };
    here && claim.claim.key.namespace == pool.namespace
}

fn of_claim(snapshot: &ClaimSnapshot) -> Vec<ActionReport> {
    let plan = planner::claim::plan(snapshot);
    let one = |action, sandbox: Option<(&str, &str)>, reason: &str| ActionReport {
        phase: PlanPhase::Scheduling,
        action,
        pod: sandbox.map(|(pod, _)| pod.to_string()),
        claim: Some(snapshot.claim.key.name.clone()),
        revision: sandbox.map(|(_, revision)| revision.to_string()),
        reason: reason.to_string(),
    };
    let release = |sandbox: &Arc<Sandbox>, claim: &Claim| {
        let named = (sandbox.key.name.as_str(), sandbox.revision.as_str());
        one("ReleaseClaim", Some(named), release_reason(claim))
    };
    let mut reports = Vec::new();
    if let Some(status) = &plan.status {
        match status.phase {
            Some(ClaimPhase::Bound) if snapshot.claim.waiting() => {
                let sandbox = status.sandboxes.first();
                let named = sandbox.map(|s| (s.name.as_str(), s.revision.as_str()));
                reports.push(one("BindClaim", named, "HalfBound"));
            }
            Some(ClaimPhase::Failed) => {
                let why = conditions::find(&status.conditions, conditions::BOUND);
                reports.push(one("FailClaim", None, why.map_or("", |c| &c.reason)));
            }
            Some(ClaimPhase::Expired) => {
                // As soon as that is written its sandboxes go, unless they are retained.
                let mut expired = snapshot.clone();
                Arc::make_mut(&mut expired.claim).status = (**status).clone();
                let released = planner::claim::plan(&expired).release;
                reports.extend(released.iter().map(|s| release(s, &expired.claim)));
            }
            _ => {}
        }
    }
    reports.extend(plan.release.iter().map(|s| release(s, &snapshot.claim)));
    reports
}

fn table(pools: &Vec<PoolReport>) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for pool in pools {
        let status = &pool.status;
        writeln!(
            text,
            "Pool {}/{}: {} unclaimed, {} available, {} updated; {} claimed, {} waiting; revision {}",
            pool.namespace,
            pool.name,
            status.replicas,
            status.available,
            status.updated,
            status.claimed,
            status.pending_claims,
            status.update_revision
        )?;
        for condition in &status.conditions {
            writeln!(
                text,
                "  {} {}: {}",
                condition.type_, condition.status, condition.message
            )?;
        }
        if pool.actions.is_empty() {
            writeln!(text, "  Nothing to do.")?;
        } else {
            let mut rows = tabwriter::TabWriter::new(Vec::new()).padding(3);
            let mut row = |cells: [&str; 6]| writeln!(rows, "  {}", cells.join("\t"));
            let mut written = row(["PHASE", "ACTION", "POD", "CLAIM", "REVISION", "REASON"]);
            for action in &pool.actions {
                let phase = match action.phase {
                    PlanPhase::Eviction => "eviction",
                    PlanPhase::Scheduling => "scheduling",
                    PlanPhase::Recreate => "recreate",
                    PlanPhase::Scale => "scale",
                };
                let or_dash = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "-".into());
                let (pod, claim, revision) = (
                    or_dash(&action.pod),
                    or_dash(&action.claim),
                    or_dash(&action.revision),
                );
                written = written.and(row([
                    phase,
                    action.action,
                    &pod,
                    &claim,
                    &revision,
                    &action.reason,
                ]));
            }
            let rows = written.and(
                rows.into_inner()
                    .map_err(|e| std::io::Error::other(e.to_string())),
            );
            text.push_str(&String::from_utf8_lossy(&rows.map_err(|_| std::fmt::Error)?));
        }
        writeln!(text)?;
    }
    if pools.is_empty() {
        writeln!(text, "No pools.")?;
    }
    Ok(text)
}
