//! A SandboxClaim, decoded and validated once.

use crate::api::claim::{Phase, ReleasePolicy};
use crate::api::{ClaimDefaults, SandboxClaimSpec, SandboxClaimStatus};
use crate::model::Key;
use crate::model::claim_validation::validated;
use crate::model::pool::Pool;
use crate::model::resolved_claim_spec::ResolvedClaimSpec;
use crate::model::sandbox::{PodPhase, Sandbox};
use crate::model::stored::{self, StoredClaim};
use jiff::Timestamp;
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// A SandboxClaim as decisions need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: SmolStr,
    /// Resource version of the state these facts were read from.
    pub resource_version: SmolStr,
    /// `metadata.generation`.
    pub generation: i64,
    /// Creation time; the API stores whole seconds.
    pub created: Timestamp,
    /// Order of arrival at this process. It orders claims of the same second, because a watch delivers creations in the
    /// order in which they were stored.
    pub sequence: u64,
    /// When the claim arrived: when this process saw its creation or, for a claim older than the process, its creation
    /// time.
    pub arrived: Timestamp,
    /// When this process saw the claim bound for the first time; `None` if it did not see that happen.
    pub binding_seen: Option<Timestamp>,
    /// When this process saw the claim enter its phase; `None` if it did not see that happen.
    pub phase_seen: Option<Timestamp>,
    /// Has a deletion timestamp.
    pub terminating: bool,
    /// Which pools may serve the claim.
    pub target: Target,
    /// The spec, or a sentence that names the field with an invalid value.
    pub spec: Result<SandboxClaimSpec, String>,
    /// The stored status; empty when it does not decode, because the pods hold the truth.
    pub status: SandboxClaimStatus,
}

/// Which pools of its namespace may serve a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The pool with this name.
    Pool(String),
    /// Any pool with these labels.
    AnyWith(BTreeMap<String, String>),
}

impl Target {
    fn read(spec: &SandboxClaimSpec) -> Result<Self, String> {
        match (&spec.pool_ref, &spec.pool_selector) {
            (Some(pool), None) if pool.name.is_empty() => Err("spec.poolRef.name: must name a pool".into()),
            (Some(pool), None) => Ok(Self::Pool(pool.name.clone())),
            (None, Some(selector)) if selector.match_labels.is_empty() => {
                Err("spec.poolSelector.matchLabels: must hold at least one label".into())
            }
            (None, Some(selector)) => Ok(Self::AnyWith(selector.match_labels.clone())),
            _ => Err("spec: must hold exactly one of poolRef and poolSelector".into()),
        }
    }
}

impl Claim {
    /// Decodes a stored claim. It was number `sequence` to arrive, at `arrived`.
    pub fn read(claim: &StoredClaim, sequence: u64, arrived: Timestamp) -> Self {
        let spec: Result<SandboxClaimSpec, String> = stored::decode("spec", &claim.spec).and_then(validated);
        let target = spec.as_ref().map_err(Clone::clone).and_then(Target::read);
        Self {
            key: stored::key(&claim.metadata),
            uid: stored::uid(&claim.metadata),
            resource_version: stored::resource_version(&claim.metadata),
            generation: claim.metadata.generation.unwrap_or_default(),
            created: stored::created(&claim.metadata),
            sequence,
            arrived,
            binding_seen: None,
            phase_seen: None,
            terminating: claim.metadata.deletion_timestamp.is_some(),
            spec: target.as_ref().map_err(Clone::clone).and(spec),
            // No pool has the name "", so an invalid claim gets nothing.
            target: target.unwrap_or(Target::Pool(String::new())),
            status: stored::decode("status", &claim.status).unwrap_or_default(),
        }
    }

    /// The claim with the moments that were `known` of it before an event at `seen`; `None`: a list showed it, which
    /// does not show when something happened.
    #[must_use]
    pub fn seen_after(self, known: &Self, seen: Option<Timestamp>) -> Self {
        let same_binding = known.status.bound_time == self.status.bound_time;
        let same_phase = known.status.phase.unwrap_or_default() == self.status.phase.unwrap_or_default();
        Self {
            binding_seen: if same_binding { known.binding_seen } else { seen },
            phase_seen: if same_phase { known.phase_seen } else { seen },
            ..self
        }
    }

    /// Forgets when this process saw what happened to the claim. After the clock was set back these moments lie in the
    /// future.
    pub(crate) fn forget_moments(&mut self) {
        self.arrived = self.created;
        self.binding_seen = None;
        self.phase_seen = None;
    }

    /// The pool that serves the claim or that the claim names; empty while a selector claim has none.
    pub fn pool(&self) -> &str {
        match &self.target {
            Target::Pool(name) => name,
            Target::AnyWith(_) => &self.status.pool,
        }
    }

    /// The pool that the claim names.
    pub fn named_pool(&self) -> Option<Key> {
        match &self.target {
            Target::Pool(name) => Some(Key::new(self.key.namespace.clone(), name)),
            Target::AnyWith(_) => None,
        }
    }

    /// Whether `pool` may serve the claim.
    pub fn accepts(&self, pool: &Pool) -> bool {
        let matches = match &self.target {
            Target::Pool(name) => pool.key.name == *name,
            Target::AnyWith(labels) => labels
                .iter()
                .all(|(key, value)| pool.labels.get(key) == Some(value)),
        };
        matches && pool.key.namespace == self.key.namespace
    }

    /// Sandboxes wanted.
    pub fn wanted(&self) -> usize {
        let replicas = self.spec.as_ref().map_or(1, |s| s.replicas);
        usize::try_from(replicas).unwrap_or(1)
    }

    /// The claim's spec with defaults filled in. The defaults of the pool count until the claim is bound for the first
    /// time or ends; the status keeps those that counted then. An invalid claim keeps its sandboxes.
    pub fn resolved_spec(&self, defaults: Option<&ClaimDefaults>) -> ResolvedClaimSpec {
        let kept = self.status.defaults.clone();
        let defaults = kept.or_else(|| defaults.map(Into::into)).unwrap_or_default();
        match &self.spec {
            Ok(spec) => ResolvedClaimSpec::of(spec, defaults),
            Err(_) => ResolvedClaimSpec {
                release_policy: ReleasePolicy::Retain,
                defaults,
                ..ResolvedClaimSpec::default()
            },
        }
    }

    /// Whether the claim may keep a sandbox that it holds. A sandbox in its status may have succeeded: its tenant ended
    /// it.
    pub fn keeps(&self, sandbox: &Sandbox) -> bool {
        let succeeded = sandbox.phase == PodPhase::Succeeded;
        !sandbox.terminating && (!sandbox.finished() || succeeded && self.lists(sandbox))
    }

    /// Whether the status lists the sandbox.
    pub fn lists(&self, sandbox: &Sandbox) -> bool {
        self.status.sandboxes.iter().any(|s| s.uid == sandbox.uid)
    }

    /// The claim has been bound before, according to its status.
    pub fn was_bound(&self) -> bool {
        self.status.wait_seconds.is_some()
    }

    /// The sandbox says that it was chosen as a replacement on this very version of the claim.
    pub fn has_chosen(&self, sandbox: &Sandbox) -> bool {
        sandbox.chosen_on == self.resource_version
    }

    /// The claim is neither bound, ended nor being deleted, according to its status.
    pub fn waiting(&self) -> bool {
        !self.terminating && matches!(self.status.phase, None | Some(Phase::Pending))
    }
}
