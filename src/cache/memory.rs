//! What the operator remembers of each pool and each claim: one record by UID, forgotten in one place.

use crate::cache::creation_backoff::CreationBackoff;
use crate::cache::recent_claims::RecentClaims;
use crate::cache::snapshot::{WaitReason, WarmUpFailures};
use crate::cache::watch_progress::newer;
use crate::model::Key;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Least time between two writes of one pool's status. Claims and rollouts change the status many times a second;
/// nobody reads it as fast, and each write takes the API server as long as a binding.
const STATUS_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// A status that the operator has written and that the watch has not shown.
#[derive(Clone, Debug)]
pub(crate) struct WrittenStatus {
    /// Resource version of the object after the write.
    pub(crate) version: String,
    /// The claim is bound or has ended: it waits no more, whatever the watch still says.
    pub(crate) is_decided: bool,
}

/// What the operator remembers of one pool. A restart loses it.
#[derive(Clone, Debug, Default)]
pub struct PoolMemory {
    /// The last status written, until the watch shows it.
    pub(crate) written_status: Option<WrittenStatus>,
    /// When the status was written last.
    status_written_at: Option<Timestamp>,
    /// Failures in a row to bring up a sandbox, by revision.
    pub warm_up_failures: BTreeMap<String, WarmUpFailures>,
    /// When claims took sandboxes of the pool.
    pub recent_claims: RecentClaims,
    /// Whether the API server rejects the pool's pods.
    pub creation_backoff: CreationBackoff,
}

impl PoolMemory {
    /// When the status may be written next; `None` when it may be written at `now`. A clock that was set back does not
    /// silence the status.
    pub fn status_due(&self, now: Timestamp) -> Option<Timestamp> {
        let due = self.status_written_at?.checked_add(STATUS_INTERVAL).ok()?;
        (due > now && due.duration_since(now) <= STATUS_INTERVAL).then_some(due)
    }

    /// Notes that the status is being written at `now`.
    pub fn note_status_write(&mut self, now: Timestamp) {
        self.status_written_at = Some(now);
    }
}

/// What the operator remembers of one claim. A restart loses it.
#[derive(Clone, Debug, Default)]
pub struct ClaimMemory {
    /// The last status written, until the watch shows it.
    pub(crate) written_status: Option<WrittenStatus>,
    /// Why the claim waits, as the last plan of its pool had it.
    pub(crate) wait_reason: Option<WaitReason>,
    /// The API server rejected the claim's last binding, or failed to make it.
    pub(crate) is_rejected: bool,
    /// The pool that serves a selector claim, as decided last.
    pub(crate) assigned_pool: Option<Key>,
    /// UIDs of the sandboxes that the API server did not bind to the claim. Nobody says whether the claim or the sandbox is
    /// at fault: the claim tries another one, and other claims may still take these.
    pub(crate) rejected_sandboxes: Arc<HashSet<String>>,
}

impl ClaimMemory {
    /// The claim waits no more: only a status that the watch has not shown still matters.
    pub(crate) fn stop_waiting(&mut self) {
        *self = Self {
            written_status: self.written_status.take(),
            ..Self::default()
        };
    }
}

/// The records of all pools and claims, by UID.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pools: HashMap<String, PoolMemory>,
    claims: HashMap<String, ClaimMemory>,
}

impl Memory {
    /// The record of the pool with UID `uid`.
    pub(crate) fn pool(&self, uid: &str) -> Option<&PoolMemory> {
        self.pools.get(uid)
    }

    /// The record of a pool that exists, to be changed.
    pub(crate) fn pool_mut(&mut self, uid: &str) -> &mut PoolMemory {
        self.pools.entry(uid.to_string()).or_default()
    }

    /// The record of the claim with UID `uid`.
    pub(crate) fn claim(&self, uid: &str) -> Option<&ClaimMemory> {
        self.claims.get(uid)
    }

    /// The record of a claim that exists, to be changed.
    pub(crate) fn claim_mut(&mut self, uid: &str) -> &mut ClaimMemory {
        self.claims.entry(uid.to_string()).or_default()
    }

    /// The status written for the object with UID `uid`, until the watch shows it.
    pub(crate) fn written_status(&self, uid: &str) -> Option<&WrittenStatus> {
        let of_pool = self.pools.get(uid).and_then(|pool| pool.written_status.as_ref());
        let of_claim = || {
            self.claims
                .get(uid)
                .and_then(|claim| claim.written_status.as_ref())
        };
        of_pool.or_else(of_claim)
    }

    /// The watch shows the object with UID `uid` at this version: a status written before is no news any more.
    pub(crate) fn confirm_status(&mut self, uid: &str, resource_version: &str) {
        let of_pool = self.pools.get_mut(uid).map(|pool| &mut pool.written_status);
        let of_claim = self.claims.get_mut(uid).map(|claim| &mut claim.written_status);
        for written in of_pool.into_iter().chain(of_claim) {
            written.take_if(|written| !newer(&written.version, resource_version));
        }
    }

    /// The claim with UID `uid` waits no more.
    pub(crate) fn stop_waiting(&mut self, uid: &str) {
        if let Some(claim) = self.claims.get_mut(uid) {
            claim.stop_waiting();
        }
    }

    /// The object with UID `uid` is gone.
    pub(crate) fn forget(&mut self, uid: &str) {
        self.pools.remove(uid);
        self.claims.remove(uid);
    }

    /// Drops every remembered moment. After the clock was set back they lie in the future, and would be waited for.
    pub(crate) fn forget_moments(&mut self) {
        for pool in self.pools.values_mut() {
            pool.warm_up_failures.clear();
            pool.recent_claims = RecentClaims::default();
            pool.creation_backoff = CreationBackoff::default();
        }
    }
}
