//! A claim, decoded and validated once.

use super::Key;
use super::stored::{self, StoredClaim};
use crate::api::claim::{Phase, RevisionPolicy};
use crate::api::{SandboxClaimSpec, SandboxClaimStatus};
use jiff::{SignedDuration, Timestamp};

/// A SandboxClaim as decisions need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: String,
    /// Resource version of the state these facts were read from.
    pub resource_version: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Creation time; the API gives it in whole seconds.
    pub created: Timestamp,
    /// Order of arrival at this process. It tells claims of the same second apart, since a watch delivers
    /// creations in the order in which they were stored.
    pub sequence: u64,
    /// When the claim came, as exactly as this process knows: the moment its creation was seen, or, for a
    /// claim older than the process, its creation time.
    pub arrived: Timestamp,
    /// Has a deletion timestamp.
    pub terminating: bool,
    /// The pool asked for, as far as it can be read.
    pub pool: String,
    /// The spec, or a sentence saying what in it is not understood.
    pub spec: Result<SandboxClaimSpec, String>,
    /// The stored status; empty when it is not understood, since the truth is on the pods.
    pub status: SandboxClaimStatus,
}

impl Claim {
    /// Facts of a stored claim that is number `sequence` to arrive, at `arrived`.
    pub fn read(claim: &StoredClaim, sequence: u64, arrived: Timestamp) -> Self {
        let spec: Result<SandboxClaimSpec, String> = stored::decode("spec", &claim.spec).and_then(valid);
        Self {
            key: stored::key(&claim.metadata),
            uid: stored::uid(&claim.metadata),
            resource_version: stored::resource_version(&claim.metadata),
            generation: claim.metadata.generation.unwrap_or_default(),
            created: stored::created(&claim.metadata),
            sequence,
            arrived,
            terminating: claim.metadata.deletion_timestamp.is_some(),
            pool: claim
                .spec
                .pointer("/poolRef/name")
                .and_then(|n| n.as_str())
                .unwrap_or_default()
                .to_string(),
            spec,
            status: stored::decode("status", &claim.status).unwrap_or_default(),
        }
    }

    /// Key of the pool asked for.
    pub fn pool_key(&self) -> Key {
        Key::new(self.key.namespace.clone(), self.pool.clone())
    }

    /// Neither bound, failed nor being deleted, as far as its status says.
    pub fn waiting(&self) -> bool {
        !self.terminating && matches!(self.status.phase, None | Some(Phase::Pending))
    }

    /// Which revisions will do.
    pub fn revision_policy(&self) -> RevisionPolicy {
        self.spec.as_ref().map(|s| s.revision_policy).unwrap_or_default()
    }

    /// When an unbound claim fails with reason WaitTimeout.
    pub fn deadline(&self) -> Option<Timestamp> {
        let seconds = self.spec.as_ref().ok()?.wait_timeout_seconds;
        self.created
            .checked_add(SignedDuration::from_secs(seconds.into()))
            .ok()
    }

    /// Order of service: higher priority first, then older first.
    pub fn service_order(&self) -> impl Ord + use<> {
        let priority = self.spec.as_ref().map_or(i32::MIN, |s| s.priority);
        (
            std::cmp::Reverse(priority),
            self.created,
            self.sequence,
            self.key.name.clone(),
        )
    }
}

/// What the schema refuses today but an object stored under a looser one may hold.
fn valid(spec: SandboxClaimSpec) -> Result<SandboxClaimSpec, String> {
    if spec.pool_ref.name.is_empty() {
        return Err("spec.poolRef.name: must name a pool".into());
    }
    if spec.wait_timeout_seconds < 1 {
        return Err(format!(
            "spec.waitTimeoutSeconds: {} is not 1 or more",
            spec.wait_timeout_seconds
        ));
    }
    Ok(spec)
}
