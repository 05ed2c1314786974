//! The snapshot of one pool or claim: everything the planner knows, as plain data.

use crate::cache::pod_disruption_budget_snapshot::BudgetSnapshot;
use crate::cache::waiting_claim::Waiting;
use crate::model::Key;
use crate::model::availability::AvailabilityRule;
use crate::model::claim::Claim;
use crate::model::demand::Demand;
use crate::model::known_nodes::KnownNodes;
use crate::model::pool::Pool;
use crate::model::queue_position::QueuePosition;
use crate::model::request::RevisionStep;
use crate::model::resolved_claim_spec::ResolvedClaimSpec;
use crate::model::retry::{ObjectWrite, Tries};
use crate::model::revision::Revision;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use smol_str::SmolStr;
use std::collections::BTreeMap;
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
    /// Pods with the pool's label, each with the write on it that the watch has not shown, in order of their names.
    pub sandboxes: Vec<SandboxEntry>,
    /// The nodes of the sandboxes.
    pub nodes: KnownNodes,
    /// Creations that the watch has not shown.
    pub creating: Vec<CreationInFlight>,
    /// Waiting claims that this pool serves.
    pub claims: Vec<Waiting>,
    /// For each selector claim that accepts this pool, the pool that serves the claim.
    pub selected_pools: BTreeMap<Key, Key>,
    /// The pool's stored revisions.
    pub revisions: Vec<Arc<Revision>>,
    /// The write of the pool's status that is not known to be done.
    pub status_write: Option<ObjectWrite>,
    /// When this process wrote the pool's status last; `None`: not yet.
    pub status_written_at: Option<Timestamp>,
    /// What is known of the last request about the pool's stored revisions.
    pub revision_request: RevisionProgress,
    /// The PodDisruptionBudgets that concern the pool.
    pub disruption_budgets: BudgetSnapshot,
    /// Whether pods may be created now.
    pub creation: Creation,
    /// The API server has accepted a pod of the pool a moment ago.
    pub creation_proven: bool,
    /// Warm-up failures in a row, by revision, as far as this process remembers them.
    pub failures: BTreeMap<String, WarmUpFailures>,
    /// When claims took sandboxes within the last seconds, oldest first.
    pub recent_claims: Vec<Timestamp>,
    /// What is remembered of the demand for the sandboxes of an autoscaled pool.
    pub demand: Option<Arc<Demand>>,
    /// The size that the planner chose; `None` without `autoscaling`.
    pub sizing: Option<Sizing>,
}

/// The size that `autoscaling` chose for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// Unclaimed sandboxes to keep warm.
    pub size: usize,
    /// The size that the claims call for, whatever the limits.
    pub needed: usize,
    /// Least size.
    pub floor: usize,
    /// The schedule that sets the size, if one does.
    pub schedule: Option<String>,
    /// What keeps the pool from the size that the claims call for.
    pub limit: ScalingLimit,
    /// When time alone may change the size.
    pub next: Option<Timestamp>,
}

/// What keeps a pool from the size that its claims call for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScalingLimit {
    /// Nothing.
    None,
    /// The floor is higher.
    TooFew,
    /// `maxReplicas` is lower.
    TooMany,
    /// `scaleStrategy.maxUnavailable` lets too few sandboxes warm up at once.
    Warming,
    /// The API server rejects new sandboxes.
    Rejected,
    /// A field of `autoscaling` is invalid, as this sentence says.
    Invalid(String),
}

/// The waiting selector claims of a namespace and the pools that they accept, at one moment.
#[derive(Clone, Debug)]
pub struct SelectorSnapshot {
    /// The moment.
    pub now: Timestamp,
    /// The pools, without those being deleted.
    pub pools: Vec<SelectablePool>,
    /// The claims.
    pub claims: Vec<SelectorClaim>,
}

/// A pool that a selector claim accepts.
#[derive(Clone, Debug)]
pub struct SelectablePool {
    /// The pool.
    pub pool: Arc<Pool>,
    /// Pods with the pool's label, each with the write on it that the watch has not shown.
    pub sandboxes: Vec<SandboxEntry>,
    /// The nodes of the pods.
    pub nodes: KnownNodes,
    /// Waiting claims that name the pool.
    pub claims: Vec<Waiting>,
}

/// A waiting selector claim.
#[derive(Clone, Debug)]
pub struct SelectorClaim {
    /// The claim, with the defaults of no pool.
    pub waiting: Waiting,
    /// The pool that it cannot change any more.
    pub fixed_pool: Option<Key>,
    /// The pool that served it so far.
    pub assigned_pool: Option<Key>,
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

impl SandboxEntry {
    /// A write is in flight after which the sandbox is unclaimed no more, or draining.
    pub fn is_leaving(&self) -> bool {
        use ExpectedWrite::{
            Bind, ChooseReplacement, Conflicted, Delete, Deleted, Drain, MarkDisruption, Restore,
        };
        match self.expected {
            Some(Bind | Delete | Deleted | Drain) => true,
            None | Some(Restore | MarkDisruption | ChooseReplacement | Conflicted) => false,
        }
    }
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
    /// The mark that says since when a claimed pod may be evicted.
    MarkDisruption,
    /// The mark on a claimed pod that is about to be published as a replacement.
    ChooseReplacement,
    /// A deletion by any client, which the API server confirmed.
    Deleted,
    /// The last write met a version conflict. No write follows before the watch shows the change.
    Conflicted,
}

/// A creation that the watch has not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreationInFlight {
    /// Pod name.
    pub name: SmolStr,
    /// Its revision.
    pub revision: String,
    /// The API server created the pod.
    pub is_answered: bool,
}

/// What is known of the last request about the stored revisions of a pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RevisionProgress {
    /// Nothing is under way.
    #[default]
    Idle,
    /// The request is under way.
    Sent(Option<Tries>),
    /// The request failed, and the same is sent again.
    Failed(RevisionStep, Tries),
    /// Another object has the name of the update revision.
    NameTaken,
    /// The stored update revision, with this UID, has lost its labels.
    Unlabeled(SmolStr),
    /// An old revision could not be deleted; no other is before this moment.
    TrimFailed(Timestamp),
    /// The API server answered the last request as done, which renumbered a revision.
    Renumbered(Renumbering),
}

/// A stored revision got a number and a change-cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Renumbering {
    /// UID of the revision.
    pub revision: SmolStr,
    /// Its number.
    pub number: i64,
    /// Its change-cause.
    pub change_cause: Option<String>,
    /// The same is not written again before this moment, whoever takes it back.
    pub until: Timestamp,
}

impl RevisionProgress {
    /// Forgets when requests failed: the clock was set back.
    pub(crate) fn forget_moments(&mut self) {
        match self {
            Self::Sent(Some(tries)) | Self::Failed(_, tries) => tries.forget_moments(),
            Self::TrimFailed(_) | Self::Renumbered(_) => *self = Self::Idle,
            Self::Idle | Self::Sent(None) | Self::NameTaken | Self::Unlabeled(_) => {}
        }
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
    /// The nodes of the sandboxes.
    pub nodes: KnownNodes,
    /// A binding of the claim is in flight.
    pub binding: bool,
    /// The write on the claim that is not known to be done.
    pub write: Option<ObjectWrite>,
    /// The claim was bound to its sandboxes without having waited for one, since this process began.
    pub bound_at_once: bool,
    /// When sandboxes of its pool count as available; `None` while the pool is unknown.
    pub availability_rule: Option<AvailabilityRule>,
    /// Why no sandbox can have the claim's metadata, in the API server's words.
    pub invalid_metadata: Option<String>,
    /// What live reads said of sandboxes, by UID.
    pub reads: BTreeMap<SmolStr, SandboxRead>,
    /// Whether a pool exists that serves the claim.
    pub pool_presence: PoolPresence,
    /// The pool that serves the claim; empty when none is known.
    pub pool: SmolStr,
    /// Its spec with the defaults of its pool.
    pub resolved_spec: ResolvedClaimSpec,
    /// Why the last plan of its pool left the claim waiting.
    pub wait_reason: Option<WaitReason>,
    /// The budgets that may cover its sandboxes, where no pool has them covered.
    pub disruption_budgets: BudgetSnapshot,
}

/// What a live read says of a sandbox that its claim may have lost, or may not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxRead {
    /// The pod is being read.
    PodSent,
    /// The claim is being read, for the sandbox of this resource version.
    ClaimSent(SmolStr),
    /// The claim has lost the sandbox.
    Lost,
    /// The claim does not list the sandbox.
    Unlisted {
        /// Resource version of the claim that was read.
        claim: SmolStr,
        /// Resource version that the sandbox had before the read.
        sandbox: SmolStr,
    },
    /// The watch is right so far, or nobody knows. The next read is due at this moment.
    Again(Timestamp),
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
    /// Such a pool exists in the shard of another operator, which serves the claim.
    Elsewhere,
}

/// Why a claim waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitReason {
    /// Reason for the condition `Bound`.
    pub reason: &'static str,
    /// Sentence for the condition `Bound`, without the claim's position. Claims that wait for the same share it.
    pub message: Arc<str>,
    /// The claim's position in the queue of its pool; `None` where the claim does not wait for others.
    pub position: Option<QueuePosition>,
}

impl PoolSnapshot {
    /// Whether a pod with the pool's label has this name.
    pub(crate) fn has_sandbox(&self, name: &str) -> bool {
        let found = self
            .sandboxes
            .binary_search_by(|entry| entry.sandbox.key.name.as_str().cmp(name));
        found.is_ok()
    }

    /// Key of the pool.
    pub fn key(&self) -> &Key {
        &self.pool.key
    }
}
