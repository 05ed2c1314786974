//! The snapshot of one pool or claim: everything the planner knows, as plain data.

use crate::api::claim::OnEmpty;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::claim_spec::ResolvedClaimSpec;
use crate::model::pool::Pool;
use crate::model::pool_spec::ResolvedPoolSpec;
use crate::model::revision::Revision;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// One pool and everything that belongs to it, at one moment.
#[derive(Clone, Debug)]
pub struct PoolSnapshot {
    /// The moment.
    pub now: Timestamp,
    /// Seed of fresh pod names. Two plans of the same snapshot choose the same names.
    pub seed: u64,
    /// The pool.
    pub pool: Arc<Pool>,
    /// Pods with the pool's label, each with the write on it that the watch has not shown.
    pub sandboxes: Vec<SandboxEntry>,
    /// Creations that the watch has not shown.
    pub creating: Vec<CreationInFlight>,
    /// Waiting claims that this pool serves.
    pub claims: Vec<Waiting>,
    /// For each selector claim that accepts this pool, the pool that serves the claim.
    pub selected_pools: BTreeMap<Key, Key>,
    /// The pool's stored revisions.
    pub revisions: Vec<Arc<Revision>>,
    /// Whether pods may be created now.
    pub creation: Creation,
    /// Warm-up failures in a row, by revision.
    pub failures: BTreeMap<String, WarmUpFailures>,
    /// When claims took sandboxes within the last seconds, oldest first.
    pub recent_claims: Vec<Timestamp>,
}

/// Failures in a row to bring up a sandbox of one revision. Failures at one moment count once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmUpFailures {
    /// How many.
    pub count: u32,
    /// When the last one happened.
    pub last: Timestamp,
    /// Why the last sandbox did not run, if its status says so.
    pub not_running_reason: Option<String>,
}

/// A sandbox and the operator's last write on it.
#[derive(Clone, Debug)]
pub struct SandboxEntry {
    /// The sandbox as last seen.
    pub sandbox: Arc<Sandbox>,
    /// The write on the sandbox that the watch has not shown.
    pub expected: Option<ExpectedWrite>,
}

/// A write of the operator on a pod that the watch has not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedWrite {
    /// The binding to a claim.
    Bind,
    /// The deletion, not answered yet.
    Delete,
    /// The change of the state to draining.
    Drain,
    /// The change of the state back to warm.
    Restore,
    /// A deletion by any client, which the API server confirmed.
    Deleted,
    /// The last write met a version conflict. No write follows before the watch shows the change.
    Conflicted,
}

/// A creation that the watch has not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreationInFlight {
    /// Pod name.
    pub name: String,
    /// Its revision.
    pub revision: String,
}

/// A waiting claim.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The claim as last seen.
    pub claim: Arc<Claim>,
    /// Its spec with the defaults of this pool.
    pub resolved_spec: ResolvedClaimSpec,
    /// Sandboxes that the claim holds or that are being bound to it.
    pub held: usize,
    /// A write on the claim is in flight, or its status follows: nothing is decided about the claim.
    pub busy: bool,
    /// The API server rejected its last binding, or failed to make it.
    pub refused: bool,
    /// UIDs of sandboxes that the API server did not bind to the claim, which tries others first.
    pub rejected_sandboxes: Arc<HashSet<String>>,
}

impl Waiting {
    /// Sandboxes still to be bound to the claim.
    pub fn needs(&self) -> usize {
        if self.busy {
            0
        } else {
            self.claim.wanted().saturating_sub(self.held)
        }
    }

    /// Whether the claim waits for more than the answer to a binding.
    pub fn waits(&self) -> bool {
        self.refused || self.needs() > 0
    }

    /// The same claim with the defaults of `pool`.
    #[must_use]
    pub fn on(&self, pool: &Pool) -> Self {
        Self {
            resolved_spec: self.claim.resolved_spec(Some(&pool.claim_defaults)),
            ..self.clone()
        }
    }

    /// Whether a pool with this spec could ever hold as many sandboxes as the claim needs. No other claim waits for a claim
    /// that can never be served.
    pub fn may_ever_be_served_by(&self, spec: &ResolvedPoolSpec) -> bool {
        if self.claim.wanted() == 1 {
            return true;
        }
        let unclaimed = match self.resolved_spec.on_empty {
            OnEmpty::Create => usize::MAX,
            OnEmpty::Wait | OnEmpty::Fail => spec.most_warm(),
        };
        let total = spec.max_total.unwrap_or(usize::MAX);
        self.needs() <= unclaimed && self.claim.wanted() <= total
    }

    /// Order of service: higher priority first, then older first.
    pub fn service_order(&self) -> impl Ord + use<> {
        let claim = &self.claim;
        (
            Reverse(self.resolved_spec.priority),
            claim.created,
            claim.sequence,
            claim.key.name.clone(),
        )
    }

    /// When the claim fails with reason WaitTimeout.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.claim.deadline(&self.resolved_spec)
    }
}

/// Whether pods may be created, after rejections by the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Creation {
    /// No pod was rejected lately.
    #[default]
    Open,
    /// A pod was rejected.
    BackOff {
        /// No creation before this moment; from then on one pod at a time, to find out.
        until: Timestamp,
        /// The API server's words.
        message: String,
    },
}

/// One claim and the pods it owns, at one moment.
#[derive(Clone, Debug)]
pub struct ClaimSnapshot {
    /// The moment.
    pub now: Timestamp,
    /// The claim.
    pub claim: Arc<Claim>,
    /// Pods whose controller is the claim, by UID.
    pub sandboxes: Vec<Arc<Sandbox>>,
    /// A binding of the claim is in flight.
    pub binding: bool,
    /// Whether a pool exists that serves the claim.
    pub pool_presence: PoolPresence,
    /// The pool that serves the claim; empty when none is known.
    pub pool: String,
    /// Its spec with the defaults of its pool.
    pub resolved_spec: ResolvedClaimSpec,
    /// Why the last plan of its pool left the claim waiting.
    pub wait_reason: Option<WaitReason>,
}

/// Whether a pool exists that serves a claim: the pool whose sandboxes it holds, or else any pool that it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolPresence {
    /// A pool exists.
    Present,
    /// Every such pool is being deleted.
    Terminating,
    /// No such pool exists.
    Absent,
}

/// Why a claim waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitReason {
    /// UID of the claim.
    pub uid: String,
    /// Reason for the condition `Bound`.
    pub reason: &'static str,
    /// Sentence for the condition `Bound`.
    pub message: String,
}

impl PoolSnapshot {
    /// Key of the pool.
    pub fn key(&self) -> &Key {
        &self.pool.key
    }
}
