//! When a claim fails because no sandbox became available, when it expires, and when it is deleted.
//!
//! Each deadline lasts at least the promised seconds. The API stores the start in whole seconds, so the real start may
//! be almost a second later: the deadline counts from the end of that second, also after a restart. A process that saw
//! the start even later counts from then, because a status may take a while to be written.

use crate::api::claim::{Phase, ReleasePolicy};
use crate::api::{SandboxClaimStatus, conditions};
use crate::model::claim::Claim;
use crate::model::resolved_claim_spec::ResolvedClaimSpec;
use jiff::{SignedDuration, Timestamp};

/// The resolution of stored times.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// When `promised` has passed since the `stored` time, and also since this process saw the change, if it did; `None`:
/// never.
fn end_of(promised: SignedDuration, stored: Timestamp, seen: Option<Timestamp>) -> Option<Timestamp> {
    if promised.is_zero() {
        return Some(stored);
    }
    let happened = stored.checked_add(SECOND).ok()?;
    let start = seen.map_or(happened, |seen| seen.max(happened));
    start.checked_add(promised).ok()
}

impl Claim {
    /// When the claim fails with reason WaitTimeout unless it is bound. A claim that waits for the replacement of a
    /// lost sandbox has its full time again.
    pub fn deadline(&self, resolved_spec: &ResolvedClaimSpec) -> Option<Timestamp> {
        let (stored, seen) = match self.lost() {
            Some(lost) => (lost, self.phase_seen),
            None => (self.created, Some(self.arrived)),
        };
        end_of(resolved_spec.wait_timeout, stored, seen)
    }

    /// Since when the claim waits: since it `came`, or since it lost a sandbox that is being replaced.
    pub fn waits_from(&self, came: Timestamp) -> Timestamp {
        self.lost().unwrap_or(came)
    }

    /// When a claim that waits lost a sandbox, in whole seconds.
    fn lost(&self) -> Option<Timestamp> {
        let lost = conditions::find(&self.status.conditions, conditions::BOUND);
        let lost = lost.filter(|_| self.was_bound())?;
        Some(lost.last_transition_time.0)
    }

    /// `shutdownTime`, rounded up to whole seconds as every time in a status.
    pub fn shutdown(&self) -> Option<Timestamp> {
        let time = self.spec.as_ref().ok()?.shutdown_time.as_ref()?.0;
        let second = conditions::whole_seconds(time);
        if second < time {
            second.checked_add(SECOND).ok()
        } else {
            Some(second)
        }
    }

    /// When the claim expires, as its status says: at its `shutdownTime`, bound or not, or `lifetimeSeconds` after it
    /// was bound for the first time. Where the claim sets neither, the pool's default at that time counts.
    pub fn expiration(&self) -> Option<Timestamp> {
        self.expiration_with(&self.status)
    }

    /// [`expiration`](Self::expiration) of a claim with this status. It depends on stored values alone, so that every
    /// operator writes the same.
    pub fn expiration_with(&self, status: &SandboxClaimStatus) -> Option<Timestamp> {
        self.shutdown().or_else(|| self.end_of_life(status, None))
    }

    /// When this process expires the claim: at its expiration, or a moment later if the claim was seen bound so late
    /// that its lifetime would be cut short.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.shutdown()
            .or_else(|| self.end_of_life(&self.status, self.binding_seen))
    }

    fn end_of_life(&self, status: &SandboxClaimStatus, seen: Option<Timestamp>) -> Option<Timestamp> {
        let own = self.spec.as_ref().ok()?.lifetime_seconds;
        let lifetime = own.or_else(|| status.defaults.as_ref()?.lifetime_seconds)?;
        let lifetime = SignedDuration::from_secs(lifetime.max(0).into());
        end_of(lifetime, status.bound_time.as_ref()?.0, seen)
    }

    /// When the claim releases its sandboxes although no user deletes it, in words that follow "the claim": it expires,
    /// or is deleted some time after its end. `None`: a user has to delete the claim.
    pub fn lets_go(&self, resolved_spec: &ResolvedClaimSpec) -> Option<String> {
        match self.status.phase {
            Some(Phase::Failed | Phase::Expired) => {
                let end = self.deletion(resolved_spec)?;
                Some(format!("is deleted at {end}"))
            }
            _ if resolved_spec.release_policy == ReleasePolicy::Retain => None,
            _ => Some(format!("expires at {}", self.expiration()?)),
        }
    }

    /// When a claim that has ended is deleted: `ttlSecondsAfterFinished` after its end.
    pub fn deletion(&self, resolved_spec: &ResolvedClaimSpec) -> Option<Timestamp> {
        let finished = self.status.finish_time.as_ref()?.0;
        end_of(resolved_spec.ttl?, finished, self.phase_seen)
    }
}
