//! The planner: one pure function from the view of a pool to a plan. It knows no client, clock, randomness
//! or log. Each phase adds to the same [`Draft`], so a later phase sees what an earlier one decided.

pub mod budget;
pub mod claim;
mod draft;
mod evict;
mod progress;
mod recreate;
pub mod removal_order;
pub mod revise;
mod rollout;
mod scale;
mod schedule;
mod status;
pub mod warm_up;

use crate::api::PoolStatus;
use crate::cache::snapshot::{PoolSnapshot, WaitReason, WarmUpFailures};
use crate::model::claim::Claim;
use crate::model::sandbox::Sandbox;
use draft::Draft;
use jiff::Timestamp;
pub use scale::{AT_ONCE, Shortfall};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What to do about a pool now.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Writes on pods and claims, in the order of the phases.
    pub actions: Vec<Action>,
    /// The revision of the present template, and what to do about the stored ones.
    pub revisions: revise::Revisions,
    /// The status that the pool should have.
    pub status: PoolStatus,
    /// Claims left waiting, in order of service, each with the reason.
    pub waiting: Vec<WaitReason>,
    /// Unclaimed sandboxes that are missing, and how many may be made at once.
    pub shortfall: Shortfall,
    /// Failures in a row to bring up a sandbox, by revision: those of the view without the rows that are over,
    /// and the new ones.
    pub failures: BTreeMap<String, WarmUpFailures>,
    /// When time alone will change the plan: a sandbox becomes available, a claim times out, a backoff ends.
    pub next: Option<Timestamp>,
}

impl Plan {
    /// The bindings, by claim, in order of service.
    pub fn bindings(&self) -> Vec<(&Arc<Claim>, Vec<Arc<Sandbox>>)> {
        let mut bindings: Vec<(&Arc<Claim>, Vec<Arc<Sandbox>>)> = Vec::new();
        for action in &self.actions {
            let Step::BindClaim { claim, sandbox } = &action.step else {
                continue;
            };
            match bindings.last_mut() {
                Some((last, sandboxes)) if last.uid == claim.uid => sandboxes.push(Arc::clone(sandbox)),
                _ => bindings.push((claim, vec![Arc::clone(sandbox)])),
            }
        }
        bindings
    }
}

/// The phase that decided an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Sandboxes that cannot stay go.
    Eviction,
    /// Claims get sandboxes.
    Scheduling,
    /// Sandboxes of old revisions go, within the budget.
    Recreate,
    /// The number of sandboxes is brought to the wanted one.
    Scale,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Action {
    /// The phase that decided it.
    pub phase: Phase,
    /// The write.
    pub step: Step,
    /// CamelCase reason.
    pub reason: &'static str,
}

/// A write on a pod or claim.
#[derive(Clone, Debug)]
pub enum Step {
    /// Create a pod of a revision.
    CreatePod {
        /// Name of the pod.
        name: String,
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

/// Plans the next writes for the pool of `view`.
pub fn plan(snapshot: &PoolSnapshot) -> Plan {
    let revisions = revise::resolve(snapshot);
    let mut draft = Draft::new(snapshot, &revisions);
    // Claims first: an eviction that was within the budget before a claim took its sandbox may not be after.
    schedule::run(&mut draft);
    if snapshot.pool.error.is_none() {
        evict::run(&mut draft);
        let surge = recreate::run(&mut draft);
        scale::run(&mut draft, surge);
    }
    let status = status::run(&mut draft);
    let waiting = schedule::wait_reasons(&draft);
    let Draft {
        actions,
        failures,
        shortfall,
        next,
        ..
    } = draft;
    Plan {
        shortfall,
        failures,
        actions,
        revisions,
        status,
        waiting,
        next,
    }
}
