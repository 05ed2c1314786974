//! A request of the operator to the API server, and its outcome, as plain data.

use crate::api::claim::BoundSandbox;
use crate::api::{PoolStatus, SandboxClaimStatus};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::disruption_mark::DisruptionMark;
use crate::model::failure::Failure;
use crate::model::lifecycle_hook::Hook;
use crate::model::pod_disruption_budget::BudgetStep;
use crate::model::pool::Pool;
use crate::model::revision::{Revision, Template};
use crate::model::sandbox::Sandbox;
use crate::model::stored::{StoredClaim, StoredDisruptionBudget, StoredPod, StoredPool, StoredRevision};
use smol_str::SmolStr;
use std::sync::Arc;

/// One request. It holds what it was decided on, so the executor decides nothing.
#[derive(Clone, Debug)]
pub enum Request {
    /// Change or delete a pod.
    WritePod(Arc<PodWrite>),
    /// Create a pod.
    CreatePod(Arc<PodCreation>),
    /// Read a pod, to learn whether a write on it happened.
    ReadPod(Key),
    /// Read a pod that a claim seems to have lost.
    ReadLostPod(Arc<Claim>, BoundSandbox),
    /// Write the status of a claim.
    WriteClaim(Arc<ClaimWrite>),
    /// Delete a claim that has ended.
    DeleteClaim(Arc<Claim>),
    /// Read a claim.
    ReadClaim(Arc<Claim>),
    /// Write the status of a pool.
    WritePool(Arc<PoolWrite>),
    /// Read or write a stored revision of a pool.
    Revision(Arc<RevisionRequest>),
    /// Write a PodDisruptionBudget of a pool or claim.
    DisruptionBudget(Arc<BudgetRequest>),
}

impl Request {
    /// Verb and resource in the terms of RBAC, for the log.
    pub fn verb_and_resource(&self) -> (&'static str, &'static str) {
        match self {
            Self::WritePod(write) => match write.change {
                PodChange::Delete => ("delete", "pods"),
                PodChange::Bind { .. }
                | PodChange::Drain
                | PodChange::Restore(_)
                | PodChange::MarkDisruption(_)
                | PodChange::ChooseReplacement(_) => ("patch", "pods"),
            },
            Self::CreatePod(_) => ("create", "pods"),
            Self::ReadPod(_) | Self::ReadLostPod(..) => ("get", "pods"),
            Self::WriteClaim(_) => ("update", "sandboxclaims/status"),
            Self::DeleteClaim(_) => ("delete", "sandboxclaims"),
            Self::ReadClaim(_) => ("get", "sandboxclaims"),
            Self::WritePool(_) => ("patch", "pools/status"),
            Self::Revision(request) => {
                let verb = match request.step {
                    RevisionStep::Create { .. } => "create",
                    RevisionStep::Read { .. } => "get",
                    RevisionStep::Label { .. } | RevisionStep::Renumber(..) => "patch",
                    RevisionStep::Delete(_) => "delete",
                };
                (verb, "controllerrevisions")
            }
            Self::DisruptionBudget(request) => {
                let verb = match request.step {
                    BudgetStep::Create(..) => "create",
                    BudgetStep::Change(..) => "patch",
                    BudgetStep::Delete(_) => "delete",
                };
                (verb, "poddisruptionbudgets")
            }
        }
    }
}

/// A write on an existing pod.
#[derive(Clone, Debug)]
pub struct PodWrite {
    /// The pod as last seen when this was decided.
    pub sandbox: Arc<Sandbox>,
    /// What the write does.
    pub change: PodChange,
    /// CamelCase reason.
    pub reason: &'static str,
}

/// What a write on a pod does.
#[derive(Clone, Debug)]
pub enum PodChange {
    /// Binds the pod to the claim.
    Bind {
        /// The claim as last seen.
        claim: Arc<Claim>,
        /// The pool of the pod.
        pool: Arc<Pool>,
    },
    /// The pod is deleted, if it has not changed.
    Delete,
    /// A warm pod becomes draining, if it has not changed.
    Drain,
    /// A claimed pod says since when it may be evicted.
    MarkDisruption(DisruptionMark),
    /// A claimed pod is about to be published as a replacement: it says so, and every deletion under way fails.
    ChooseReplacement(Arc<Claim>),
    /// A draining pod becomes warm again, if every handler of the pool's preDelete hooks is still on it.
    Restore(Hook),
}

/// A pod to be created.
#[derive(Clone, Debug)]
pub struct PodCreation {
    /// Its pool.
    pub pool: Arc<Pool>,
    /// Its namespace and name.
    pub pod: Key,
    /// Its revision.
    pub revision: String,
    /// The template of that revision.
    pub template: Arc<Template>,
    /// CamelCase reason.
    pub reason: &'static str,
}

/// A status to be written, on the version of the claim that it was decided on.
#[derive(Clone, Debug)]
pub struct ClaimWrite {
    /// The claim as last seen.
    pub claim: Arc<Claim>,
    /// Its new status.
    pub status: Box<SandboxClaimStatus>,
}

/// A status to be written, whatever version the pool has.
#[derive(Clone, Debug)]
pub struct PoolWrite {
    /// The pool as last seen.
    pub pool: Arc<Pool>,
    /// Its new status.
    pub status: PoolStatus,
}

/// A request about a stored revision of a pool.
#[derive(Clone, Debug)]
pub struct RevisionRequest {
    /// The pool.
    pub pool: Arc<Pool>,
    /// What to do.
    pub step: RevisionStep,
}

/// A request about a PodDisruptionBudget.
#[derive(Clone, Debug)]
pub struct BudgetRequest {
    /// Whose it is.
    pub owner: BudgetOwner,
    /// What to do.
    pub step: BudgetStep,
}

/// Whose a PodDisruptionBudget of the operator is. It goes with its owner.
#[derive(Clone, Debug)]
pub enum BudgetOwner {
    /// The pool, for its sandboxes.
    Pool(Arc<Pool>),
    /// The claim, for its sandboxes, whose pool is gone.
    Claim(Arc<Claim>),
}

impl BudgetOwner {
    /// Namespace and name of the owner.
    pub fn key(&self) -> &Key {
        match self {
            Self::Pool(pool) => &pool.key,
            Self::Claim(claim) => &claim.key,
        }
    }
}

/// What to do about a stored revision.
#[derive(Clone, Debug, PartialEq)]
pub enum RevisionStep {
    /// Store the update revision.
    Create {
        /// Its hash.
        hash: String,
        /// Its template.
        template: Arc<Template>,
        /// Its number.
        number: i64,
    },
    /// Read the object that has the name of the revision with this hash.
    Read {
        /// The hash.
        hash: String,
    },
    /// Restore the labels of the stored revision with this hash. Without them no list of the pool's revisions holds it.
    Label {
        /// The hash.
        hash: String,
        /// UID of the object.
        uid: SmolStr,
    },
    /// Give a stored revision this number, and the pool's change-cause.
    Renumber(Arc<Revision>, i64),
    /// Delete a stored revision.
    Delete(Arc<Revision>),
}

impl RevisionStep {
    /// The step is about the object that has the name of the revision with this hash.
    pub fn is_about(&self, hash: &str) -> bool {
        match self {
            Self::Create { hash: of, .. } | Self::Read { hash: of } | Self::Label { hash: of, .. } => {
                of == hash
            }
            Self::Renumber(..) | Self::Delete(_) => false,
        }
    }
}

/// What the API server answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The pod as it is now.
    Pod(Box<StoredPod>),
    /// The claim as it is now.
    Claim(Box<StoredClaim>),
    /// The pool as it is now.
    Pool(Box<StoredPool>),
    /// The revision as it is now.
    Revision(Box<StoredRevision>),
    /// The PodDisruptionBudget as it is now.
    DisruptionBudget(Box<StoredDisruptionBudget>),
    /// The object is deleted.
    Deleted,
}

/// What became of a request.
pub type Outcome = Result<Answer, Failure>;
