//! What a claim's spec comes to: its own fields, then the pool's `claimDefaults`, then API defaults.

use crate::api::claim::{Disruption, OnEmpty, OnSandboxLost, PodMetadata, ReleasePolicy, RevisionPolicy};
use crate::api::claim_defaults::BoundDefaults;
use crate::api::{ClaimDefaults, SandboxClaimSpec};
use jiff::SignedDuration;

/// Default of `waitTimeoutSeconds`.
const WAIT_TIMEOUT: i32 = 300;

/// Default of `disruptionGracePeriodSeconds`: as long as a pod stays on a node that is not ready, unless it says
/// otherwise.
const DISRUPTION_GRACE: i32 = 300;

/// The spec of a claim with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedClaimSpec {
    /// What happens when no sandbox is available.
    pub on_empty: OnEmpty,
    /// Which revisions the claim takes.
    pub revision_policy: RevisionPolicy,
    /// The claim or the pool's `claimDefaults` set `revisionPolicy`. Without it the pool's strategy may have claims
    /// take old sandboxes first.
    pub has_revision_policy: bool,
    /// Higher first.
    pub priority: i32,
    /// Longest wait before the claim fails.
    pub wait_timeout: SignedDuration,
    /// How long after its end the claim is deleted; `None`: never.
    pub ttl: Option<SignedDuration>,
    /// What happens to the sandboxes when the claim expires.
    pub release_policy: ReleasePolicy,
    /// What happens when a bound sandbox is to be evicted.
    pub disruption: Disruption,
    /// With [`Disruption::Notify`], how long after the first sign that its node has to go a sandbox may be evicted.
    pub disruption_grace: SignedDuration,
    /// What happens when a bound sandbox is lost.
    pub on_sandbox_lost: OnSandboxLost,
    /// The pool's defaults, as they are or as they were when the claim was first bound or ended.
    pub defaults: BoundDefaults,
}

impl ResolvedClaimSpec {
    /// Fills `defaults` into `spec`.
    pub fn of(spec: &SandboxClaimSpec, defaults: BoundDefaults) -> Self {
        let seconds = |own: Option<i32>, default: Option<i32>| {
            let seconds = own.or(default)?;
            Some(SignedDuration::from_secs(seconds.max(0).into()))
        };
        Self {
            on_empty: spec.on_empty.or(defaults.on_empty).unwrap_or_default(),
            revision_policy: spec
                .revision_policy
                .or(defaults.revision_policy)
                .unwrap_or_default(),
            has_revision_policy: spec.revision_policy.or(defaults.revision_policy).is_some(),
            priority: spec.priority.or(defaults.priority).unwrap_or_default(),
            wait_timeout: seconds(spec.wait_timeout_seconds, defaults.wait_timeout_seconds)
                .unwrap_or(SignedDuration::from_secs(WAIT_TIMEOUT.into())),
            ttl: seconds(
                spec.ttl_seconds_after_finished,
                defaults.ttl_seconds_after_finished,
            ),
            release_policy: spec
                .release_policy
                .or(defaults.release_policy)
                .unwrap_or_default(),
            disruption: spec.disruption.or(defaults.disruption).unwrap_or_default(),
            disruption_grace: seconds(
                spec.disruption_grace_period_seconds,
                defaults.disruption_grace_period_seconds,
            )
            .unwrap_or(SignedDuration::from_secs(DISRUPTION_GRACE.into())),
            on_sandbox_lost: spec
                .on_sandbox_lost
                .or(defaults.on_sandbox_lost)
                .unwrap_or_default(),
            defaults,
        }
    }
}

impl Default for ResolvedClaimSpec {
    fn default() -> Self {
        Self::of(&SandboxClaimSpec::default(), BoundDefaults::default())
    }
}

/// Labels and annotations for the sandboxes of a claim with this spec on a pool with these defaults.
pub fn pod_metadata(spec: &SandboxClaimSpec, defaults: &ClaimDefaults) -> PodMetadata {
    let mut metadata = defaults.pod_metadata.clone().unwrap_or_default();
    let own = spec.pod_metadata.clone().unwrap_or_default();
    metadata.labels.extend(own.labels);
    metadata.annotations.extend(own.annotations);
    metadata
}
