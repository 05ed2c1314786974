//! The view: everything the planner may know, as plain data.

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

/// One pool and all that belongs to it, at one moment.
#[derive(Clone, Debug)]
pub struct PoolSnapshot {
    /// The moment.
    pub now: Timestamp,
    /// Seed of fresh pod names. Two plans with the same view and seed choose the same names.
    pub seed: u64,
    /// The pool.
    pub pool: Arc<Pool>,
    /// Pods that carry the pool's label, with the writes on them not yet seen.
    pub sandboxes: Vec<SandboxEntry>,
    /// Creations on their way, not yet seen.
    pub creating: Vec<CreationInFlight>,
    /// Claims that are neither bound nor ended, and that this pool is to serve.
    pub claims: Vec<Waiting>,
    /// Of each claim that leaves the choice of the pool, and that this one would do for, the pool that is to serve it.
    pub selected_pools: BTreeMap<Key, Key>,
    /// The pool's stored revisions.
    pub revisions: Vec<Arc<Revision>>,
    /// Whether pods may be created now.
    pub creation: Creation,
    /// Failures to bring up a sandbox, by revision.
    pub failures: BTreeMap<String, WarmUpFailures>,
    /// When claims took sandboxes lately, oldest first.
    pub recent_claims: Vec<Timestamp>,
}

/// Failures in a row to bring up a sandbox of one revision. Those of one moment count once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmUpFailures {
    /// How many.
    pub count: u32,
    /// When the last one was noted.
    pub last: Timestamp,
    /// What kept that one from running, if anybody said so.
    pub not_running_reason: Option<String>,
}

/// A sandbox and what this process has done to it.
#[derive(Clone, Debug)]
pub struct SandboxEntry {
    /// The sandbox as last seen.
    pub sandbox: Arc<Sandbox>,
    /// Own write not yet seen.
    pub expected: Option<ExpectedWrite>,
}

/// An own write on a pod that the watch has not shown yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedWrite {
    /// Being bound to a claim.
    Bind,
    /// Being deleted; the answer is outstanding.
    Delete,
    /// Being marked as draining.
    Drain,
    /// Being marked as warm again.
    Restore,
    /// Deleted, by whomever: the API server has said so.
    Deleted,
    /// The last write was refused because the pod had changed; nothing is tried before the change is seen.
    Conflicted,
}

/// A creation on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreationInFlight {
    /// Pod name.
    pub name: String,
    /// Its revision.
    pub revision: String,
}

/// A claim that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The claim as last seen.
    pub claim: Arc<Claim>,
    /// What holds for it on this pool.
    pub resolved_spec: ResolvedClaimSpec,
    /// Sandboxes that it holds already or that are being bound to it.
    pub held: usize,
    /// A task is binding or ending it just now, or its status is about to follow: nothing is to be decided.
    pub busy: bool,
    /// The API server refused to bind it, or failed to, when that was tried last.
    pub refused: bool,
    /// UIDs of sandboxes that were refused to it: it tries others first.
    pub rejected_sandboxes: Arc<HashSet<String>>,
}

impl Waiting {
    /// Sandboxes still to be bound to it.
    pub fn needs(&self) -> usize {
        if self.busy {
            0
        } else {
            self.claim.wanted().saturating_sub(self.held)
        }
    }

    /// Whether it waits for more than the answer to a binding.
    pub fn waits(&self) -> bool {
        self.refused || self.needs() > 0
    }

    /// The same claim as it would wait for `pool`.
    #[must_use]
    pub fn on(&self, pool: &Pool) -> Self {
        Self {
            resolved_spec: self.claim.resolved_spec(Some(&pool.claim_defaults)),
            ..self.clone()
        }
    }

    /// Whether a pool with these targets could ever hold as many sandboxes as a claim for several needs. For one that it
    /// cannot, nobody else shall wait.
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

    /// When it fails with reason WaitTimeout.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.claim.deadline(&self.resolved_spec)
    }
}

/// Whether pods may be created, after refusals by the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Creation {
    /// Nothing was refused lately.
    #[default]
    Open,
    /// A create was refused.
    BackOff {
        /// No create before this moment; at it, one to find out.
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
    /// Pods whose controller is the claim (told by UID).
    pub sandboxes: Vec<Arc<Sandbox>>,
    /// This process is binding a sandbox to it just now.
    pub binding: bool,
    /// Whether there is a pool to serve it.
    pub pool_presence: PoolPresence,
    /// The pool that serves it or is to; empty when none is known.
    pub pool: String,
    /// What holds for it on its pool.
    pub resolved_spec: ResolvedClaimSpec,
    /// Why the pool's last plan left the claim waiting.
    pub wait_reason: Option<WaitReason>,
}

/// Whether there is a pool to serve a claim: the one whose sandboxes it holds, or else any that will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolPresence {
    /// One is there.
    Present,
    /// One is there, but it is being deleted.
    Terminating,
    /// None is there.
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
