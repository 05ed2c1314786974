//! A claim, decoded and validated once.

use crate::api::claim::{Phase, ReleasePolicy};
use crate::api::conditions;
use crate::api::{ClaimDefaults, SandboxClaimSpec, SandboxClaimStatus};
use crate::model::Key;
use crate::model::claim_spec::ResolvedClaimSpec;
use crate::model::pool::Pool;
use crate::model::sandbox::{PodPhase, Sandbox};
use crate::model::stored;
use crate::model::stored::StoredClaim;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

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
    /// Which pools will do.
    pub target: Target,
    /// The spec, or a sentence saying what in it is not understood.
    pub spec: Result<SandboxClaimSpec, String>,
    /// The stored status; empty when it is not understood, since the truth is on the pods.
    pub status: SandboxClaimStatus,
}

/// Which pools of its namespace will do for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The one with this name.
    Pool(String),
    /// Any that has these labels.
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
    /// Facts of a stored claim that is number `sequence` to arrive, at `arrived`.
    pub fn read(claim: &StoredClaim, sequence: u64, arrived: Timestamp) -> Self {
        let spec: Result<SandboxClaimSpec, String> = stored::decode("spec", &claim.spec).and_then(valid);
        let target = spec.as_ref().map_err(Clone::clone).and_then(Target::read);
        Self {
            key: stored::key(&claim.metadata),
            uid: stored::uid(&claim.metadata),
            resource_version: stored::resource_version(&claim.metadata),
            generation: claim.metadata.generation.unwrap_or_default(),
            created: stored::created(&claim.metadata),
            sequence,
            arrived,
            terminating: claim.metadata.deletion_timestamp.is_some(),
            spec: target.as_ref().map_err(Clone::clone).and(spec),
            // Nothing is called "", so a claim that is not understood gets nothing.
            target: target.unwrap_or(Target::Pool(String::new())),
            status: stored::decode("status", &claim.status).unwrap_or_default(),
        }
    }

    /// The pool that serves it, or the one it asks for; empty while any of several may.
    pub fn pool(&self) -> &str {
        match &self.target {
            Target::Pool(name) => name,
            Target::AnyWith(_) => &self.status.pool,
        }
    }

    /// The pool that it asks for by name.
    pub fn named_pool(&self) -> Option<Key> {
        match &self.target {
            Target::Pool(name) => Some(Key::new(self.key.namespace.clone(), name)),
            Target::AnyWith(_) => None,
        }
    }

    /// Whether `pool` will do.
    pub fn accepts(&self, pool: &Pool) -> bool {
        let will_do = match &self.target {
            Target::Pool(name) => pool.key.name == *name,
            Target::AnyWith(labels) => labels
                .iter()
                .all(|(key, value)| pool.labels.get(key) == Some(value)),
        };
        will_do && pool.key.namespace == self.key.namespace
    }

    /// Sandboxes wanted.
    pub fn wanted(&self) -> usize {
        let replicas = self.spec.as_ref().map_or(1, |s| s.replicas);
        usize::try_from(replicas).unwrap_or(1)
    }

    /// The terms of the claim. What a pool with these defaults says counts only until the claim is bound first, or ends: from
    /// then on what was said then does. One that is not understood loses nothing.
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

    /// When it fails with reason WaitTimeout unless it is bound. One that waits for a lost sandbox to be replaced has its
    /// time anew.
    pub fn deadline(&self, resolved_spec: &ResolvedClaimSpec) -> Option<Timestamp> {
        let start = self.waits_from(self.created);
        start.checked_add(resolved_spec.wait_timeout).ok()
    }

    /// Since when it waits: since it `came`, or since it lost a sandbox that is to be replaced.
    pub fn waits_from(&self, came: Timestamp) -> Timestamp {
        let was_bound = self.status.wait_seconds.is_some();
        let lost = conditions::find(&self.status.conditions, conditions::BOUND).filter(|_| was_bound);
        lost.map_or(came, |c| c.last_transition_time.0)
    }

    /// When its user wants it to end, bound or not: in whole seconds, as statuses tell times.
    pub fn shutdown(&self) -> Option<Timestamp> {
        let time = self.spec.as_ref().ok()?.shutdown_time.as_ref()?;
        Some(conditions::whole_seconds(time.0))
    }

    /// When it expires: at its `shutdownTime`, bound or not, or `lifetimeSeconds` after it was bound first. Where it leaves
    /// them out, the default of the pool counts as it was then.
    pub fn expiration(&self) -> Option<Timestamp> {
        self.expiration_with(&self.status)
    }

    /// The same once its status is this one.
    pub fn expiration_with(&self, status: &SandboxClaimStatus) -> Option<Timestamp> {
        let spec = self.spec.as_ref().ok()?;
        let default = || status.defaults.as_ref()?.lifetime_seconds;
        let lifetime = || spec.lifetime_seconds.or_else(default);
        let after_binding = || {
            let lifetime = SignedDuration::from_secs(lifetime()?.max(0).into());
            status.bound_time.as_ref()?.0.checked_add(lifetime).ok()
        };
        self.shutdown().or_else(after_binding)
    }

    /// Whether it may keep a sandbox that it holds. One that its status lists may have ended with success: that is its tenant's
    /// doing.
    pub fn keeps(&self, sandbox: &Sandbox) -> bool {
        let succeeded = sandbox.phase == PodPhase::Succeeded;
        !sandbox.terminating && (!sandbox.finished() || succeeded && self.lists(sandbox))
    }

    /// Whether its status lists the sandbox.
    pub fn lists(&self, sandbox: &Sandbox) -> bool {
        self.status.sandboxes.iter().any(|s| s.uid == sandbox.uid)
    }

    /// Neither bound, ended nor being deleted, as far as its status says.
    pub fn waiting(&self) -> bool {
        !self.terminating && matches!(self.status.phase, None | Some(Phase::Pending))
    }
}

/// What the schema refuses today but an object stored under a looser one may hold.
fn valid(spec: SandboxClaimSpec) -> Result<SandboxClaimSpec, String> {
    if !(1..=1000).contains(&spec.replicas) {
        return Err(format!("spec.replicas: {} is not from 1 to 1000", spec.replicas));
    }
    if let Some(seconds) = spec.wait_timeout_seconds.filter(|s| *s < 1) {
        return Err(format!("spec.waitTimeoutSeconds: {seconds} is not 1 or more"));
    }
    if let Some(seconds) = spec.lifetime_seconds.filter(|s| *s < 1) {
        return Err(format!("spec.lifetimeSeconds: {seconds} is not 1 or more"));
    }
    if spec.lifetime_seconds.is_some() && spec.shutdown_time.is_some() {
        return Err("spec: must hold at most one of lifetimeSeconds and shutdownTime".into());
    }
    Ok(spec)
}
