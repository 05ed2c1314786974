//! Own writes that the watch has not shown yet. A plan made from a lagging view would repeat them; with
//! these, nothing is created, bound or deleted twice.

use super::Key;
use super::sandbox::{Owner, Sandbox};
use super::view::{Creating, OwnWrite};
use crate::api::labels;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// How long an own write may stay unseen before a live read settles whether it happened.
pub const SETTLE_AFTER: Duration = Duration::from_secs(30);

/// A write on an existing pod.
#[derive(Clone, Debug)]
struct Write {
    what: OwnWrite,
    /// Resource version of the pod when it was written.
    resource_version: String,
    /// UID of the claim, of a binding.
    claim: String,
    since: Instant,
}

/// A pod on its way.
#[derive(Clone, Debug)]
struct Creation {
    pool: Key,
    revision: String,
    since: Instant,
}

/// The own writes not yet seen. Every entry is noted before its request is sent.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    creations: HashMap<Key, Creation>,
    writes: HashMap<String, (Key, Write)>,
    /// UIDs of claims that a task is binding or ending.
    serving: HashMap<String, usize>,
    /// UIDs of pools whose stored revisions are being written.
    revising: HashSet<String>,
}

impl Pending {
    /// Notes a create of pod `pod` for `pool`.
    pub fn creating(&mut self, pod: Key, pool: Key, revision: String) {
        self.creations.insert(
            pod,
            Creation {
                pool,
                revision,
                since: Instant::now(),
            },
        );
    }

    /// The create was refused, or the pod has been seen.
    pub fn created(&mut self, pod: &Key) {
        self.creations.remove(pod);
    }

    /// Notes the binding of `sandbox` to the claim with UID `claim`, by a task that is noted as serving it.
    pub fn binding(&mut self, sandbox: &Sandbox, claim: &str) {
        self.note(sandbox, OwnWrite::Bind, claim);
    }

    /// Notes that a task binds or ends the claim with UID `claim`.
    pub fn serving(&mut self, claim: &str) {
        *self.serving.entry(claim.to_string()).or_default() += 1;
    }

    /// The task that binds or ends the claim with UID `claim` is done, whatever came of it.
    pub fn end_serving(&mut self, claim: &str) {
        if let Some(count) = self.serving.get_mut(claim) {
            *count -= 1;
            if *count == 0 {
                self.serving.remove(claim);
            }
        }
    }

    /// Notes that the stored revisions of the pool with UID `pool` are being written; false when they are already.
    #[must_use]
    pub fn start_revising(&mut self, pool: &str) -> bool {
        self.revising.insert(pool.to_string())
    }

    /// The stored revisions of the pool with UID `pool` are written, or could not be.
    pub fn end_revising(&mut self, pool: &str) {
        self.revising.remove(pool);
    }

    /// Notes the deletion of `sandbox`.
    pub fn deleting(&mut self, sandbox: &Sandbox) {
        self.note(sandbox, OwnWrite::Delete, "");
    }

    /// Notes that `sandbox` is being marked as draining.
    pub fn draining(&mut self, sandbox: &Sandbox) {
        self.note(sandbox, OwnWrite::Drain, "");
    }

    /// Notes that the draining `sandbox` is being marked as warm.
    pub fn restoring(&mut self, sandbox: &Sandbox) {
        self.note(sandbox, OwnWrite::Restore, "");
    }

    /// The API server has accepted the deletion of the pod with UID `uid`.
    pub fn deleted(&mut self, uid: &str) {
        if let Some((_, write)) = self.writes.get_mut(uid) {
            write.what = OwnWrite::Deleted;
        }
    }

    /// The API server has refused the last write on `sandbox`: the pod is not what it was taken for.
    pub fn refused(&mut self, sandbox: &Sandbox) {
        self.note(sandbox, OwnWrite::Refused, "");
    }

    /// The last write on the pod with UID `uid` did not happen, and the pod may be tried again.
    pub fn forget(&mut self, uid: &str) {
        self.writes.remove(uid);
    }

    fn note(&mut self, sandbox: &Sandbox, what: OwnWrite, claim: &str) {
        let resource_version = sandbox.resource_version.clone();
        let write = Write {
            what,
            resource_version,
            claim: claim.to_string(),
            since: Instant::now(),
        };
        self.writes
            .insert(sandbox.uid.clone(), (sandbox.key.clone(), write));
    }

    /// The watch has shown `sandbox`.
    pub fn seen(&mut self, sandbox: &Sandbox) {
        self.creations.remove(&sandbox.key);
        let Some((_, write)) = self.writes.get(&sandbox.uid) else {
            return;
        };
        let shown = match write.what {
            OwnWrite::Bind => {
                sandbox.terminating
                    || matches!(&sandbox.owner, Owner::Claim { uid, .. } if *uid == write.claim)
            }
            OwnWrite::Delete | OwnWrite::Deleted => sandbox.terminating,
            OwnWrite::Drain => sandbox.terminating || sandbox.state == labels::DRAINING,
            OwnWrite::Restore => sandbox.terminating || sandbox.state == labels::WARM,
            OwnWrite::Refused => sandbox.resource_version != write.resource_version,
        };
        if shown {
            self.writes.remove(&sandbox.uid);
        }
    }

    /// The watch has shown that the pod is gone.
    pub fn gone(&mut self, key: &Key, uid: &str) {
        self.creations.remove(key);
        self.writes.remove(uid);
    }

    /// A live read of the pod `key` has told what became of the writes on it.
    pub fn settled(&mut self, key: &Key) {
        self.creations.remove(key);
        self.writes.retain(|_, (pod, _)| pod != key);
    }

    /// The own write on the pod with UID `uid` that is not seen yet.
    pub fn on(&self, uid: &str) -> Option<OwnWrite> {
        self.writes.get(uid).map(|(_, write)| write.what)
    }

    /// UIDs of claims that a pod is being bound to or was bound to and is not seen so yet, once for each pod.
    pub fn bound_to(&self) -> impl Iterator<Item = &str> {
        self.writes
            .values()
            .filter(|(_, w)| w.what == OwnWrite::Bind)
            .map(|(_, w)| w.claim.as_str())
    }

    /// Whether a task is binding or ending the claim with UID `claim`.
    pub fn is_serving(&self, claim: &str) -> bool {
        self.serving.contains_key(claim)
    }

    /// Creations on their way for `pool`.
    pub fn creations_of(&self, pool: &Key) -> Vec<Creating> {
        let of_pool = self.creations.iter().filter(|(_, c)| c.pool == *pool);
        let mut creating: Vec<_> = of_pool
            .map(|(key, c)| Creating {
                name: key.name.clone(),
                revision: c.revision.clone(),
            })
            .collect();
        creating.sort_by(|a, b| a.name.cmp(&b.name));
        creating
    }

    /// Pods whose own write has been unseen for too long at `now`, each to be settled by a live read. The clock of
    /// each starts anew.
    pub fn overdue(&mut self, now: Instant) -> Vec<Key> {
        let late = |since: &mut Instant| {
            let late = now.duration_since(*since) >= SETTLE_AFTER;
            if late {
                *since = now;
            }
            late
        };
        let creations = self
            .creations
            .iter_mut()
            .filter_map(|(key, c)| late(&mut c.since).then(|| key.clone()));
        let mut keys: Vec<Key> = creations.collect();
        keys.extend(
            self.writes
                .values_mut()
                .filter_map(|(key, w)| late(&mut w.since).then(|| key.clone())),
        );
        keys
    }

    /// The entries in words, sorted, without their age: for tests.
    pub fn told(&self) -> Vec<String> {
        let creations = self
            .creations
            .iter()
            .map(|(key, c)| format!("create {key} of {}", c.revision));
        let writes = self
            .writes
            .iter()
            .map(|(uid, (_, w))| format!("{:?} {uid} at {} for {:?}", w.what, w.resource_version, w.claim));
        let serving = self
            .serving
            .iter()
            .map(|(uid, count)| format!("serve {uid} {count}"));
        let revising = self.revising.iter().map(|uid| format!("revise {uid}"));
        let mut told: Vec<_> = creations.chain(writes).chain(serving).chain(revising).collect();
        told.sort();
        told
    }

    /// Number of entries, for tests and gauges: it is zero at rest.
    pub fn len(&self) -> usize {
        self.creations.len() + self.writes.len() + self.serving.len() + self.revising.len()
    }

    /// Nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
