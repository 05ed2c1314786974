//! When a claim fails for want of sandboxes, and when it expires.

use crate::api::{SandboxClaimStatus, conditions};
use crate::model::claim::Claim;
use crate::model::resolved_claim_spec::ResolvedClaimSpec;
use jiff::{SignedDuration, Timestamp};

impl Claim {
    /// When the claim fails with reason WaitTimeout unless it is bound. A claim that waits for the replacement of a lost
    /// sandbox has its full time again.
    pub fn deadline(&self, resolved_spec: &ResolvedClaimSpec) -> Option<Timestamp> {
        let start = self.waits_from(self.created);
        start.checked_add(resolved_spec.wait_timeout).ok()
    }

    /// Since when the claim waits: since it `came`, or since it lost a sandbox that is being replaced.
    pub fn waits_from(&self, came: Timestamp) -> Timestamp {
        let was_bound = self.status.wait_seconds.is_some();
        let lost = conditions::find(&self.status.conditions, conditions::BOUND).filter(|_| was_bound);
        lost.map_or(came, |c| c.last_transition_time.0)
    }

    /// `shutdownTime`, in whole seconds as every time in a status.
    pub fn shutdown(&self) -> Option<Timestamp> {
        let time = self.spec.as_ref().ok()?.shutdown_time.as_ref()?;
        Some(conditions::whole_seconds(time.0))
    }

    /// When the claim expires: at its `shutdownTime`, bound or not, or `lifetimeSeconds` after it was bound for the first time.
    /// Where the claim sets neither, the pool's default at that time counts.
    pub fn expiration(&self) -> Option<Timestamp> {
        self.expiration_with(&self.status)
    }

    /// [`expiration`](Self::expiration) of a claim with this status.
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
}
