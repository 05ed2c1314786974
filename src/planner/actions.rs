//! What a plan holds: the writes, the status, and why claims wait.

use crate::api::PoolStatus;
use crate::cache::snapshot::{WaitReason, WarmUpFailures};
use crate::model::claim::Claim;
use crate::model::demand::Demand;
use crate::model::pod_disruption_budget::BudgetStep;
use crate::model::request::RevisionStep;
use crate::model::sandbox::Sandbox;
use crate::planner::revise::Revisions;
use jiff::Timestamp;
use serde::Serialize;
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What to do about a pool now.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Writes on pods and claims, in the order of the phases.
    pub actions: Vec<Action>,
    /// The revision of the present template, and what to do about the stored ones.
    pub revisions: Revisions,
    /// The request about a stored revision that is to be sent now.
    pub revision_step: Option<RevisionStep>,
    /// The write of a PodDisruptionBudget that is to be sent now.
    pub budget_step: Option<BudgetStep>,
    /// The status that the pool should have.
    pub status: PoolStatus,
    /// When it is written.
    pub write_status: WriteStatus,
    /// Claims left waiting, in order of service, each with the reason.
    pub waiting: Vec<(Arc<Claim>, WaitReason)>,
    /// Unclaimed sandboxes that are missing, and how many may be made now.
    pub shortfall: Shortfall,
    /// Failures in a row to bring up a sandbox, by revision: those of the snapshot without the rows that are over, and
    /// the new ones.
    pub failures: BTreeMap<String, WarmUpFailures>,
    /// What is to be remembered of the demand for the sandboxes of an autoscaled pool.
    pub demand: Option<Arc<Demand>>,
    /// When time alone will change the plan: a sandbox becomes available, a claim times out, a backoff ends.
    pub next: Option<Timestamp>,
}

impl WaitsFor {
    /// As a clause that follows the write.
    pub fn clause(self) -> &'static str {
        match self {
            Self::RevisionStored => "once the revision is stored",
            Self::FirstPodCreated => "once the API server has created the first",
            Self::BindingsInFlight => "once fewer bindings are in flight",
        }
    }
}

impl Plan {
    /// The bindings to be sent now, by claim, in order of service.
    pub fn bindings(&self) -> Vec<(&Arc<Claim>, Vec<Arc<Sandbox>>)> {
        bindings(&self.actions)
    }
}

/// The bindings among `actions` that are sent now, by claim, in order of service.
pub(crate) fn bindings(actions: &[Action]) -> Vec<(&Arc<Claim>, Vec<Arc<Sandbox>>)> {
    let mut bindings: Vec<(&Arc<Claim>, Vec<Arc<Sandbox>>)> = Vec::new();
    for action in actions {
        let Step::BindClaim { claim, sandbox } = &action.step else {
            continue;
        };
        if action.waits_for.is_some() {
            continue;
        }
        match bindings.last_mut() {
            Some((last, sandboxes)) if last.uid == claim.uid => sandboxes.push(Arc::clone(sandbox)),
            _ => bindings.push((claim, vec![Arc::clone(sandbox)])),
        }
    }
    bindings
}

/// When the status of a pool is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteStatus {
    /// Not now: it says nothing new, or a write is under way.
    #[default]
    No,
    /// Not before this moment.
    At(Timestamp),
    /// At once.
    Now,
}

/// The phase that decided an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanPhase {
    /// A sandbox that is leaving is removed.
    Eviction,
    /// A claim is bound or ends.
    Scheduling,
    /// A sandbox of an old revision is removed.
    Recreate,
    /// A sandbox too many is removed, or a missing sandbox is made.
    Scale,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Action {
    /// The phase that decided it.
    pub phase: PlanPhase,
    /// The write.
    pub step: Step,
    /// CamelCase reason.
    pub reason: &'static str,
    /// What has to happen before the write is sent. The next plan decides on it anew.
    pub waits_for: Option<WaitsFor>,
}

/// What a write waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The revision of the pod is stored before its first pod is created.
    RevisionStored,
    /// The API server has accepted one pod of the pool before others are created. A template that it rejects then costs
    /// one request, not hundreds.
    FirstPodCreated,
    /// Fewer bindings of the pool are in flight.
    BindingsInFlight,
}

/// A write on a pod or claim.
#[derive(Clone, Debug)]
pub enum Step {
    /// Create a pod of a revision.
    CreatePod {
        /// Name of the pod.
        name: SmolStr,
        /// Its revision.
        revision: String,
    },
    /// Delete an unclaimed pod.
    DeletePod {
        /// The pod as last seen.
        sandbox: Arc<Sandbox>,
    },
    /// Mark an unclaimed pod as draining: its deletion waits for its preDelete hooks.
    DrainPod {
        /// The pod as last seen.
        sandbox: Arc<Sandbox>,
    },
    /// Mark a draining pod as warm again.
    RestorePod {
        /// The pod as last seen.
        sandbox: Arc<Sandbox>,
    },
    /// Bind a pod to a claim.
    BindClaim {
        /// The claim as last seen.
        claim: Arc<Claim>,
        /// The pod as last seen.
        sandbox: Arc<Sandbox>,
    },
    /// End a claim without a sandbox.
    FailClaim {
        /// The claim as last seen.
        claim: Arc<Claim>,
        /// Why, for a person.
        message: String,
    },
}

/// Unclaimed sandboxes that are missing, and how many the pool lets be made now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortfall {
    /// Missing sandboxes, those for waiting claims and for the surge of a rollout included.
    pub missing: usize,
    /// How many more `capacity.maxTotal` allows to exist; `usize::MAX` without one.
    pub total_headroom: usize,
    /// How many more may start to warm up under `scaleStrategy.maxUnavailable`.
    pub warming_headroom: usize,
}
