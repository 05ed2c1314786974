//! `warmpool plan`: runs the planner once on a live cluster or a file.

use crate::api::PoolStatus;
use crate::api::claim::Phase as ClaimPhase;
use crate::api::conditions;
use crate::cache::index::Index;
use crate::cache::snapshot::{ClaimSnapshot, PoolSnapshot};
use crate::cli::documents::{DocumentError, Documents};
use crate::cli::dry_run::PoolPlan;
use crate::cli::kubectl::cluster::{Cluster, ClusterError};
use crate::cli::kubectl::connection::Connection;
use crate::cli::runtime::block_on;
use crate::client::identity::Component;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::sandbox::Sandbox;
use crate::planner;
use crate::planner::claim::release_reason;
use crate::planner::{Action, PlanPhase, Step, WaitsFor};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Exit code for invalid input.
const BAD_INPUT: u8 = 2;

/// Arguments of `warmpool plan`.
#[derive(Args)]
#[command(after_help = "\
Without -f, the cluster of the current kubeconfig context is read: 'warmpool plan' reads all namespaces and 'kubectl \
warmpool plan' that of the context, unless -n or -A says otherwise. The names of pods to create are examples: the operator \
generates other names. Exit code 0: a plan was printed. Exit code 2: the file is invalid or empty; the error names the \
document and the field. Exit code 1: any other error.

Examples:
  warmpool plan -n sandboxes
  kubectl warmpool plan -A
  warmpool plan -o json | jq '.pools[].actions'
  kubectl get wp,sbc,pods,podtemplates,controllerrevisions,nodes -o yaml | warmpool plan -f -")]
pub struct Arguments {
    /// YAML or JSON file to plan from instead of a cluster; - reads standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Time to plan for, as in 2026-01-31T12:00:00Z [default: now]
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,
    /// Read all namespaces, whatever -n says
    #[arg(short = 'A', long, conflicts_with = "file")]
    all_namespaces: bool,
    /// Format of the plan
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Which namespaces are read where neither `-n` nor `-A` says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All.
    All,
    /// That of the kubeconfig context, as for kubectl.
    Context,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// A table
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// No plan was printed.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A document of the file is invalid.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The cluster could not be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The runtime could not be set up.
    #[error("cannot set up the runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// The plan could not be printed.
    #[error("cannot print the plan: {0}")]
    Print(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl PlanError {
    /// 2 for invalid input, 1 for every other error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. } | Self::Document(_) => BAD_INPUT,
            Self::Cluster(_) | Self::Runtime(_) | Self::Print(_) => 1,
        }
    }
}

/// The JSON form of the plans of all pools.
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
    /// What has to happen before the operator does this. The keys of the JSON form are fixed, so only the table has it.
    #[serde(skip)]
    waits_for: Option<WaitsFor>,
}

/// Prints the plan.
///
/// # Errors
/// See [`PlanError`].
pub(super) fn run(connection: &Connection, arguments: &Arguments, scope: Scope) -> Result<(), PlanError> {
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let index = match &arguments.file {
        Some(path) => from_file(path, now)?,
        None => {
            let all = arguments.all_namespaces || (scope == Scope::All && connection.namespace.is_none());
            block_on(from_cluster(connection, all))??
        }
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
        Output::Yaml => {
            serde_yaml_ng::to_string(&Report { pools }).map_err(|e| PlanError::Print(e.into()))?
        }
        Output::Text => table(&pools).map_err(|e| PlanError::Print(e.into()))?,
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|e| PlanError::Print(e.into()))
}

fn from_file(path: &PathBuf, now: Timestamp) -> Result<Index, PlanError> {
    let read_error = |source| PlanError::Read {
        path: path.clone(),
        source,
    };
    let mut text = String::new();
    if path.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).map_err(read_error)?;
    } else {
        text = std::fs::read_to_string(path).map_err(read_error)?;
    }
    let documents = Documents::read(&text)?;
    for ignored in &documents.ignored {
        eprintln!(
            "warning: {ignored} is ignored; a plan uses only Pools, SandboxClaims, Pods, Nodes, PodTemplates and ControllerRevisions"
        );
    }
    let index = documents.made_at(now).into_index(now);
    Documents::check(&index)?;
    Ok(index)
}

async fn from_cluster(connection: &Connection, all: bool) -> Result<Index, ClusterError> {
    let cluster = Cluster::open_as(connection, Component::Plan).await?;
    let namespace = (!all).then_some(cluster.namespace.as_str());
    cluster.read_of(namespace).await
}

fn report(index: &Index, key: &Key, now: Timestamp) -> Option<PoolReport> {
    let PoolPlan { snapshot, plan } = PoolPlan::of(index, key, now)?;
    let mut actions: Vec<_> = plan.actions.iter().map(action).collect();
    actions.extend(claim_actions(index, &snapshot));
    Some(PoolReport {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        actions,
        status: plan.status,
    })
}

fn action(action: &Action) -> ActionReport {
    let (verb, pod, claim, revision) = match &action.step {
        Step::CreatePod { name, revision } => ("CreatePod", Some(name), None, Some(revision.as_str())),
        Step::DeletePod { sandbox } => (
            "DeletePod",
            Some(&sandbox.key.name),
            None,
            Some(sandbox.revision.as_str()),
        ),
        Step::DrainPod { sandbox } => (
            "DrainPod",
            Some(&sandbox.key.name),
            None,
            Some(sandbox.revision.as_str()),
        ),
        Step::RestorePod { sandbox } => (
            "RestorePod",
            Some(&sandbox.key.name),
            None,
            Some(sandbox.revision.as_str()),
        ),
        Step::BindClaim { claim, sandbox } => (
            "BindClaim",
            Some(&sandbox.key.name),
            Some(&claim.key.name),
            Some(sandbox.revision.as_str()),
        ),
        Step::FailClaim { claim, .. } => ("FailClaim", None, Some(&claim.key.name), None),
    };
    ActionReport {
        phase: action.phase,
        action: verb,
        pod: pod.map(ToString::to_string),
        claim: claim.map(ToString::to_string),
        revision: revision.map(str::to_string),
        reason: action.reason.to_string(),
        waits_for: action.waits_for,
    }
}

/// What the claim controller would do about the claims of this pool.
fn claim_actions(index: &Index, snapshot: &PoolSnapshot) -> Vec<ActionReport> {
    index
        .claim_keys()
        .iter()
        .filter_map(|key| index.claim_snapshot(key, snapshot.now))
        .filter(|claim| belongs_to(claim, &snapshot.pool.key))
        .flat_map(|claim| actions_of(&claim))
        .collect()
}

/// Whether the claim holds a sandbox of `pool`. A claim without sandboxes belongs to the pool of its status or its
/// poolRef.
fn belongs_to(claim: &ClaimSnapshot, pool: &Key) -> bool {
    let same_pool = if claim.sandboxes.is_empty() {
        claim.claim.pool() == pool.name
    } else {
        claim.sandboxes.iter().any(|s| s.pool == pool.name)
    };
    same_pool && claim.claim.key.namespace == pool.namespace
}

fn actions_of(snapshot: &ClaimSnapshot) -> Vec<ActionReport> {
    let plan = planner::claim::plan(snapshot);
    let report = |action, sandbox: Option<(&str, &str)>, reason: &str| ActionReport {
        phase: PlanPhase::Scheduling,
        action,
        pod: sandbox.map(|(pod, _)| pod.to_string()),
        claim: Some(snapshot.claim.key.name.to_string()),
        revision: sandbox.map(|(_, revision)| revision.to_string()),
        reason: reason.to_string(),
        waits_for: None,
    };
    let release = |sandbox: &Arc<Sandbox>, claim: &Claim| {
        let named = (sandbox.key.name.as_str(), sandbox.revision.as_str());
        report("ReleaseClaim", Some(named), release_reason(claim))
    };
    let mut reports = Vec::new();
    if let Some(status) = &plan.status {
        match status.phase {
            Some(ClaimPhase::Bound) if snapshot.claim.waiting() => {
                let sandbox = status.sandboxes.first();
                let named = sandbox.map(|s| (s.name.as_str(), s.revision.as_str()));
                reports.push(report("BindClaim", named, "HalfBound"));
            }
            Some(ClaimPhase::Failed) => {
                let why = conditions::find(&status.conditions, conditions::BOUND);
                reports.push(report("FailClaim", None, why.map_or("", |c| &c.reason)));
            }
            Some(ClaimPhase::Expired) => {
                // Once the status says Expired, the next plan releases the sandboxes unless they are retained.
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
                let reason = match action.waits_for {
                    Some(waits_for) => format!("{}, {}", action.reason, waits_for.clause()),
                    None => action.reason.clone(),
                };
                written = written.and(row([phase, action.action, &pod, &claim, &revision, &reason]));
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
