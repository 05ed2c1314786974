//! What the operator remembers of each pool and each claim: one record by UID, forgotten in one place.

use crate::cache::accepted_creations::AcceptedCreation;
use crate::cache::pod_disruption_budget_snapshot::BudgetMemory;
use crate::cache::recent_claims::RecentClaims;
use crate::cache::rejected_creations::CreationBackoff;
use crate::cache::snapshot::{RevisionProgress, SandboxRead, WaitReason, WarmUpFailures};
use crate::model::Key;
use crate::model::demand::Demand;
use crate::model::retry::{ObjectWrite, Purpose};
use jiff::Timestamp;
use smol_str::SmolStr;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What the operator remembers of one pool. A restart loses it.
#[derive(Clone, Debug, Default)]
pub struct PoolMemory {
    /// The status write that is not known to be done.
    pub status_write: Option<ObjectWrite>,
    /// When this process wrote the status last.
    pub status_written_at: Option<Timestamp>,
    /// When this process planned the pool last.
    pub planned_at: Option<Timestamp>,
    /// What is known of the last request about the stored revisions.
    pub revision_request: RevisionProgress,
    /// The last pod of the pool that the API server accepted.
    pub accepted_creation: AcceptedCreation,
    /// The last plan held creations back until the API server accepts the first.
    pub waits_for_first_pod: bool,
    /// Failures in a row to bring up a sandbox, by revision. A restarted operator reads them from the pool's status.
    pub warm_up_failures: BTreeMap<String, WarmUpFailures>,
    /// When claims took sandboxes of the pool.
    pub recent_claims: RecentClaims,
    /// The last request about the pool's PodDisruptionBudgets.
    pub budgets: BudgetMemory,
    /// What is known of the demand for the sandboxes of an autoscaled pool. A restarted operator reads a summary from
    /// the pool's status.
    pub demand: Option<Arc<Demand>>,
    /// Whether the API server rejects the pool's pods.
    pub creation_backoff: CreationBackoff,
}

impl PoolMemory {
    /// Notes that the status of a pool at resource version `version` is being written at `now`.
    pub fn note_status_write(&mut self, version: &str, now: Timestamp) {
        self.status_written_at = Some(now);
        self.status_write = Some(ObjectWrite::sent(
            self.status_write.as_ref(),
            version,
            Purpose::Report,
        ));
    }
}

/// A binding that the API server rejects, or does not make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// No binding of the claim is tried before this moment.
    pub until: Timestamp,
}

/// What the operator remembers of one claim. A restart loses it.
#[derive(Clone, Debug, Default)]
pub struct ClaimMemory {
    /// The write on the claim that is not known to be done. Boxed, because most claims have none.
    pub write: Option<Box<ObjectWrite>>,
    /// The claim arrived, and no plan has counted it.
    pub(crate) is_new: bool,
    /// Why the claim waits, as the last plan of its pool had it.
    pub(crate) wait_reason: Option<WaitReason>,
    /// The API server rejected the claim's last binding, or failed to make it.
    pub(crate) rejection: Option<Rejection>,
    /// Why no sandbox can have the claim's metadata, in the API server's words.
    pub(crate) invalid_metadata: Option<String>,
    /// The claim was bound without having waited for a sandbox.
    pub(crate) bound_at_once: bool,
    /// What live reads said of sandboxes, by UID.
    pub reads: BTreeMap<SmolStr, SandboxRead>,
    /// The last request about the claim's PodDisruptionBudget. Boxed, because only claims without a pool have one.
    pub budget: Option<Box<BudgetMemory>>,
    /// The pool that serves a selector claim, as decided last.
    pub(crate) assigned_pool: Option<Key>,
    /// UIDs of the sandboxes that the API server did not bind to the claim. The claim or the sandbox may be the cause,
    /// so the claim tries other sandboxes, and other claims may still take these.
    pub(crate) rejected_sandboxes: Arc<[SmolStr]>,
}

impl ClaimMemory {
    /// The claim waits no more.
    pub(crate) fn stop_waiting(&mut self) {
        *self = Self {
            write: self.write.take(),
            reads: std::mem::take(&mut self.reads),
            budget: self.budget.take(),
            ..Self::default()
        };
    }
}

/// The records of all pools and claims, by UID.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pools: HashMap<SmolStr, PoolMemory>,
    /// Boxed, so that the empty slots of the table stay small.
    claims: HashMap<SmolStr, Box<ClaimMemory>>,
}

impl Memory {
    /// The record of the pool with UID `uid`.
    pub(crate) fn pool(&self, uid: &str) -> Option<&PoolMemory> {
        self.pools.get(uid)
    }

    /// The record of a pool that exists, to be changed.
    pub(crate) fn pool_mut(&mut self, uid: &SmolStr) -> &mut PoolMemory {
        self.pools.entry(uid.clone()).or_default()
    }

    /// The record of the claim with UID `uid`.
    pub(crate) fn claim(&self, uid: &str) -> Option<&ClaimMemory> {
        self.claims.get(uid).map(AsRef::as_ref)
    }

    /// The record of a claim that exists, to be changed.
    pub(crate) fn claim_mut(&mut self, uid: &SmolStr) -> &mut ClaimMemory {
        self.claims.entry(uid.clone()).or_default()
    }

    /// The claim with UID `uid` waits no more.
    pub(crate) fn stop_waiting(&mut self, uid: &str) {
        if let Some(claim) = self.claims.get_mut(uid) {
            claim.stop_waiting();
        }
    }

    /// The object with UID `uid` is gone.
    pub(crate) fn forget(&mut self, uid: &str) {
        self.pools.remove(uid);
        self.claims.remove(uid);
    }

    /// Drops every remembered moment. After the clock was set back they lie in the future, and would be waited for.
    pub(crate) fn forget_moments(&mut self) {
        for pool in self.pools.values_mut() {
            pool.warm_up_failures.clear();
            pool.recent_claims = RecentClaims::default();
            pool.demand = None;
            pool.creation_backoff = CreationBackoff::default();
            pool.accepted_creation.forget();
            pool.status_write.iter_mut().for_each(ObjectWrite::forget_moments);
            pool.revision_request.forget_moments();
            pool.budgets.forget_moments();
        }
        for claim in self.claims.values_mut() {
            claim.write.iter_mut().for_each(|write| write.forget_moments());
            claim.rejection = None;
            claim.budget.iter_mut().for_each(|budget| budget.forget_moments());
            claim
                .reads
                .retain(|_, read| !matches!(read, SandboxRead::Again(_)));
        }
    }
}
