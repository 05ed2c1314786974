//! `warmpool plan`: runs the planner once on a live cluster or a file.

use crate::api::PoolStatus;
use crate::api::claim::Phase as ClaimPhase;
use crate::api::conditions;
use crate::cache::index::Index;
use crate::cache::snapshot::{ClaimSnapshot, PoolSnapshot};
use crate::cli::documents::{DocumentError, Documents};
use crate::cli::kubectl::cluster::Cluster;
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::print::{self, Data};
use crate::cli::kubectl::selection::{Selected, Selection};
use crate::cli::kubectl::table::Table;
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use crate::cli::pool_plan::PoolPlan;
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
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Read;
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
  warmpool plan -l lang=python -o json | jq '.pools[].actions'
  kubectl get wp,sbc,pods,podtemplates,controllerrevisions,nodes -o yaml | warmpool plan -f -")]
pub struct Arguments {
    /// YAML or JSON file to plan from instead of a cluster; - reads standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["all_namespaces", "selector"])]
    file: Option<PathBuf>,
    /// Time to plan for, as in 2026-01-31T12:00:00Z [default: now]
    #[arg(long, value_name = "RFC3339")]
    now: Option<Timestamp>,
    #[command(flatten)]
    selection: Selection,
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
    /// Kind and name of each pool about which something would be done
    Name,
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
    /// As for every verb.
    #[error(transparent)]
    Verb(VerbError),
}

wraps_verb_error!(PlanError);

impl PlanError {
    /// 2 for invalid input, 1 for every other error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. } | Self::Document(_) => BAD_INPUT,
            Self::Verb(_) => 1,
        }
    }
}

/// What `warmpool plan -o json` and `kubectl warmpool plan -o json` print.
#[derive(Serialize, JsonSchema)]
pub(super) struct Report {
    /// The pools, by namespace and name.
    pools: Vec<PoolReport>,
}

#[derive(Serialize, JsonSchema)]
struct PoolReport {
    /// Namespace of the pool.
    namespace: String,
    /// Name of the pool.
    name: String,
    /// What the operator would do, in this order.
    actions: Vec<ActionReport>,
    /// The status that the operator would write: see Pool.
    status: PoolStatus,
}

#[derive(Serialize, JsonSchema)]
struct ActionReport {
    /// One of eviction, scheduling, recreate, scale.
    #[schemars(with = "String")]
    phase: PlanPhase,
    /// One of CreatePod, DeletePod, BindClaim, DrainPod, RestorePod, FailClaim, ReleaseClaim.
    action: &'static str,
    /// Name of the pod.
    pod: Option<String>,
    /// Name of the claim.
    claim: Option<String>,
    /// Revision of the pod.
    revision: Option<String>,
    /// Why, in one word.
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
    let Selected { index, pools } = match &arguments.file {
        Some(path) => {
            let index = from_file(path, now)?;
            let pools = index.pool_keys();
            Selected { index, pools }
        }
        None => {
            let selection = &arguments.selection;
            let all = selection.all_namespaces || (scope == Scope::All && connection.namespace.is_none());
            block_on(from_cluster(connection, selection, all))??
        }
    };
    let pools = pools.iter().filter_map(|key| report(&index, key, now));
    let report = Report {
        pools: pools.collect(),
    };
    Ok(print::out(&match arguments.output {
        Output::Json => print::data(Data::Json, &report)?,
        Output::Yaml => print::data(Data::Yaml, &report)?,
        Output::Text => text(&report.pools),
        Output::Name => {
            let busy = report.pools.iter().filter(|pool| !pool.actions.is_empty());
            busy.map(|pool| print::title(&pool.name) + "\n").collect()
        }
    })?)
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
            "warning: {ignored} is ignored; a plan uses only Pools, SandboxClaims, Pods, Nodes, PodTemplates, ControllerRevisions and EvictionRequests"
        );
    }
    let index = documents.made_at(now).into_index(now);
    Documents::check(&index)?;
    Ok(index)
}

async fn from_cluster(
    connection: &Connection,
    selection: &Selection,
    all: bool,
) -> Result<Selected, VerbError> {
    let cluster = Cluster::open_as(connection, Component::Plan).await?;
    let namespace = (!all).then_some(cluster.namespace.as_str());
    Ok(selection.read(&cluster, namespace).await?)
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

/// The plan for people.
fn text(pools: &[PoolReport]) -> String {
    if pools.is_empty() {
        return "No pools.\n".into();
    }
    let pools = pools.iter().flat_map(|pool| {
        let lines = lines(pool).into_iter().chain([String::new()]);
        lines.map(|line| line + "\n")
    });
    pools.collect()
}

/// The lines about a pool: what it has, its conditions, and a table of the actions.
fn lines(pool: &PoolReport) -> Vec<String> {
    let status = &pool.status;
    let mut lines = vec![format!(
        "Pool {}/{}: {} unclaimed, {} available, {} updated; {} claimed, {} waiting; revision {}",
        pool.namespace,
        pool.name,
        status.replicas,
        status.available,
        status.updated,
        status.claimed,
        status.pending_claims,
        status.update_revision
    )];
    let conditions = status.conditions.iter();
    lines.extend(conditions.map(|condition| {
        let (kind, message) = (&condition.type_, &condition.message);
        format!("  {kind} {}: {message}", condition.status)
    }));
    if pool.actions.is_empty() {
        lines.push("  Nothing to do.".into());
    } else {
        lines.extend(table(&pool.actions).iter().map(|line| format!("  {line}")));
    }
    lines
}

fn table(actions: &[ActionReport]) -> Vec<String> {
    let mut table = Table::new(["PHASE", "ACTION", "POD", "CLAIM", "REVISION", "REASON"].into_iter());
    let or_dash = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "-".into());
    for action in actions {
        let phase = match action.phase {
            PlanPhase::Eviction => "eviction",
            PlanPhase::Scheduling => "scheduling",
            PlanPhase::Recreate => "recreate",
            PlanPhase::Scale => "scale",
        };
        let reason = match action.waits_for {
            Some(waits_for) => format!("{}, {}", action.reason, waits_for.clause()),
            None => action.reason.clone(),
        };
        let cells = [
            phase.into(),
            action.action.into(),
            or_dash(&action.pod),
            or_dash(&action.claim),
            or_dash(&action.revision),
            reason,
        ];
        table.row(cells.into_iter());
    }
    table.lines()
}
