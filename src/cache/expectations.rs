//! Expectations: the operator's writes that the watch has not shown, so that no plan repeats them.

use crate::api::labels;
use crate::cache::snapshot::{CreationInFlight, ExpectedWrite};
use crate::model::Key;
use crate::model::sandbox::{Owner, Sandbox};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// How long after its answer a write may stay unseen before a live read confirms whether it happened.
pub const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a write may stay unanswered before a live read: far longer than any queue or retry. A read during the request
/// proves nothing, because the write may happen right after it.
const IN_FLIGHT_TIMEOUT: Duration = Duration::from_secs(600);

/// How far a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The request is queued or in flight.
    InFlight,
    /// The API server answered.
    Answered,
    /// A live read is due or in flight.
    Reading,
}

/// How far a write is, and since when.
#[derive(Clone, Copy, Debug)]
struct WriteProgress {
    stage: Stage,
    since: Instant,
}

impl WriteProgress {
    fn at(stage: Stage) -> Self {
        Self {
            stage,
            since: Instant::now(),
        }
    }

    /// Whether a live read is due at `now`. If so, the read counts as begun.
    fn is_due(&mut self, now: Instant) -> bool {
        let patience = match self.stage {
            Stage::InFlight => IN_FLIGHT_TIMEOUT,
            Stage::Answered | Stage::Reading => EXPECTATION_TIMEOUT,
        };
        let due = now.duration_since(self.since) >= patience;
        if due {
            (self.stage, self.since) = (Stage::Reading, now);
        }
        due
    }
}

/// A write on an existing pod.
#[derive(Clone, Debug)]
struct Write {
    what: ExpectedWrite,
    /// Resource version of the pod when it was written.
    resource_version: String,
    /// UID of the claim, of a binding.
    claim: String,
    progress: WriteProgress,
}

/// A creation.
#[derive(Clone, Debug)]
struct ExpectedCreation {
    pool: Key,
    revision: String,
    progress: WriteProgress,
}

/// The writes that the watch has not shown. Each is noted before its request is sent.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    creations: HashMap<Key, ExpectedCreation>,
    writes: HashMap<String, (Key, Write)>,
    /// UIDs of claims that a request binds or ends.
    claims_in_flight: HashMap<String, usize>,
    /// UIDs of claims in flight that only wait for a retry.
    pausing: HashSet<String>,
    /// UIDs of pools whose stored revisions are being written.
    revising: HashSet<String>,
}

impl Expectations {
    /// Notes a create of pod `pod` for `pool`.
    pub fn creating(&mut self, pod: Key, pool: Key, revision: String) {
        self.creations.insert(
            pod,
            ExpectedCreation {
                pool,
                revision,
                progress: WriteProgress::at(Stage::InFlight),
            },
        );
    }

    /// The creation was rejected, or the watch has shown the pod.
    pub fn created(&mut self, pod: &Key) {
        self.creations.remove(pod);
    }

    /// The creation of `pod` is expected and not seen.
    pub fn is_creating(&self, pod: &Key) -> bool {
        self.creations.contains_key(pod)
    }

    /// The creation of `pod` has its answer, or will have none. Returns whether the watch has not shown the pod.
    pub fn create_answered(&mut self, pod: &Key) -> bool {
        let Some(creation) = self.creations.get_mut(pod) else {
            return false;
        };
        creation.progress = WriteProgress::at(Stage::Answered);
        true
    }

    /// Notes the binding of `sandbox` to the claim with UID `claim`, which is noted as in flight.
    pub fn binding(&mut self, sandbox: &Sandbox, claim: &str) {
        self.note(sandbox, ExpectedWrite::Bind, claim);
    }

    /// Notes that a request binds or ends the claim with UID `claim`.
    pub fn in_flight(&mut self, claim: &str) {
        *self.claims_in_flight.entry(claim.to_string()).or_default() += 1;
    }

    /// The request that binds or ends the claim with UID `claim` is done, whatever its outcome.
    pub fn end_in_flight(&mut self, claim: &str) {
        if let Some(count) = self.claims_in_flight.get_mut(claim) {
            *count -= 1;
            if *count == 0 {
                self.claims_in_flight.remove(claim);
            }
        }
    }

    /// Notes that the claim with UID `claim` waits for a retry.
    pub fn pausing(&mut self, claim: &str) {
        self.pausing.insert(claim.to_string());
    }

    /// The pause of the claim with UID `claim` is over.
    pub fn end_pause(&mut self, claim: &str) {
        self.pausing.remove(claim);
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
        self.note(sandbox, ExpectedWrite::Delete, "");
    }

    /// Notes the change of the state of `sandbox` to draining.
    pub fn draining(&mut self, sandbox: &Sandbox) {
        self.note(sandbox, ExpectedWrite::Drain, "");
    }

    /// Notes the change of the state of `sandbox` back to warm.
    pub fn restoring(&mut self, sandbox: &Sandbox) {
        self.note(sandbox, ExpectedWrite::Restore, "");
    }

    /// The API server answered the write on `sandbox`.
    pub fn answered(&mut self, sandbox: &Sandbox) {
        if let Some(write) = self.write_on(sandbox) {
            write.progress = WriteProgress::at(Stage::Answered);
        }
    }

    /// The write on `sandbox` is sent again.
    pub fn goes_on(&mut self, sandbox: &Sandbox) {
        if let Some(write) = self.write_on(sandbox) {
            write.progress = WriteProgress::at(Stage::InFlight);
        }
    }

    /// The API server accepted the deletion of `sandbox`, or answered that `sandbox` is gone.
    pub fn deleted(&mut self, sandbox: &Sandbox) {
        if let Some(write) = self.write_on(sandbox) {
            write.what = ExpectedWrite::Deleted;
        }
        self.answered(sandbox);
    }

    /// The write on `sandbox` met a version conflict.
    pub fn conflicted(&mut self, sandbox: &Sandbox) {
        if self.on(&sandbox.uid).is_none() || self.write_on(sandbox).is_some() {
            self.note(sandbox, ExpectedWrite::Conflicted, "");
            self.answered(sandbox);
        }
    }

    /// The last write on `sandbox` met a version conflict, and the watch has shown nothing newer since.
    pub fn is_conflicted(&mut self, sandbox: &Sandbox) -> bool {
        let write = self.write_on(sandbox);
        write.is_some_and(|write| write.what == ExpectedWrite::Conflicted)
    }

    /// The write on `sandbox` at this version. The watch may have shown it, and another write may have followed.
    fn write_on(&mut self, sandbox: &Sandbox) -> Option<&mut Write> {
        let write = self.writes.get_mut(&sandbox.uid).map(|(_, write)| write);
        write.filter(|write| write.resource_version == sandbox.resource_version)
    }

    /// The write on `sandbox` did not happen, and it may be tried again.
    pub fn forget(&mut self, sandbox: &Sandbox) {
        if self.write_on(sandbox).is_some() {
            self.writes.remove(&sandbox.uid);
        }
    }

    fn note(&mut self, sandbox: &Sandbox, what: ExpectedWrite, claim: &str) {
        let resource_version = sandbox.resource_version.clone();
        let write = Write {
            what,
            resource_version,
            claim: claim.to_string(),
            progress: WriteProgress::at(Stage::InFlight),
        };
        self.writes
            .insert(sandbox.uid.clone(), (sandbox.key.clone(), write));
    }

    /// The watch showed `sandbox`. Returns whether that confirms a write on it.
    pub fn seen(&mut self, sandbox: &Sandbox) -> bool {
        self.creations.remove(&sandbox.key);
        let Some((_, write)) = self.writes.get(&sandbox.uid) else {
            return false;
        };
        let shown = match write.what {
            ExpectedWrite::Bind => {
                sandbox.terminating
                    || matches!(&sandbox.owner, Owner::Claim { uid, .. } if *uid == write.claim)
            }
            ExpectedWrite::Delete | ExpectedWrite::Deleted => sandbox.terminating,
            ExpectedWrite::Drain => sandbox.terminating || sandbox.state == labels::DRAINING,
            ExpectedWrite::Restore => sandbox.terminating || sandbox.state == labels::WARM,
            ExpectedWrite::Conflicted => sandbox.resource_version != write.resource_version,
        };
        if shown {
            self.writes.remove(&sandbox.uid);
        }
        shown
    }

    /// The watch showed that the pod is gone.
    pub fn gone(&mut self, key: &Key, uid: &str) {
        self.creations.remove(key);
        self.writes.remove(uid);
    }

    /// A live read of pod `key` confirmed whether the writes that it was for happened.
    pub fn confirmed(&mut self, key: &Key) {
        let read = |progress: &WriteProgress| progress.stage == Stage::Reading;
        self.creations
            .retain(|pod, creation| pod != key || !read(&creation.progress));
        self.writes
            .retain(|_, (pod, write)| pod != key || !read(&write.progress));
    }

    /// The write on the pod with UID `uid` that the watch has not shown.
    pub fn on(&self, uid: &str) -> Option<ExpectedWrite> {
        self.writes.get(uid).map(|(_, write)| write.what)
    }

    /// The pod with UID `uid` is being deleted, or was, and the watch has not shown it.
    pub fn is_deleting(&self, uid: &str) -> bool {
        matches!(self.on(uid), Some(ExpectedWrite::Delete | ExpectedWrite::Deleted))
    }

    /// The pod with UID `uid` is being bound or deleted, or was, and the watch has not shown it: no other claim can have it.
    pub fn is_assigned(&self, uid: &str) -> bool {
        self.on(uid) == Some(ExpectedWrite::Bind) || self.is_deleting(uid)
    }

    /// A pod that is being bound to the claim with UID `claim`, or was, and the watch has not shown it.
    pub fn binding_of(&self, claim: &str) -> Option<&Key> {
        let binds = |write: &Write| write.what == ExpectedWrite::Bind && write.claim == claim;
        let mut writes = self.writes.values();
        writes.find(|(_, write)| binds(write)).map(|(pod, _)| pod)
    }

    /// UIDs of the claims of all expected bindings, once for each pod.
    pub fn bound_to(&self) -> impl Iterator<Item = &str> {
        self.writes
            .values()
            .filter(|(_, w)| w.what == ExpectedWrite::Bind)
            .map(|(_, w)| w.claim.as_str())
    }

    /// Whether a request binds or ends the claim with UID `claim`.
    pub fn is_in_flight(&self, claim: &str) -> bool {
        self.claims_in_flight.contains_key(claim)
    }

    /// Whether the claim with UID `claim` waits for a retry.
    pub(crate) fn is_pausing(&self, claim: &str) -> bool {
        self.pausing.contains(claim)
    }

    /// Expected creations of `pool`.
    pub fn creations_of(&self, pool: &Key) -> Vec<CreationInFlight> {
        let of_pool = self.creations.iter().filter(|(_, c)| c.pool == *pool);
        let mut creating: Vec<_> = of_pool
            .map(|(key, c)| CreationInFlight {
                name: key.name.clone(),
                revision: c.revision.clone(),
            })
            .collect();
        creating.sort_by(|a, b| a.name.cmp(&b.name));
        creating
    }

    /// Pods with a write unseen for too long at `now`, sorted. A live read is due for each, and counts as begun.
    pub fn overdue(&mut self, now: Instant) -> Vec<Key> {
        let creations = self.creations.iter_mut().map(|(key, c)| (key, &mut c.progress));
        let writes = self.writes.values_mut().map(|(key, w)| (&*key, &mut w.progress));
        let due = creations
            .chain(writes)
            .filter_map(|(key, progress)| progress.is_due(now).then_some(key));
        let mut keys: Vec<Key> = due.cloned().collect();
        keys.sort();
        keys
    }

    /// The entries as text, sorted, without their age: for tests.
    pub fn describe(&self) -> Vec<String> {
        let creations = self
            .creations
            .iter()
            .map(|(key, c)| format!("create {key} of {} {:?}", c.revision, c.progress.stage));
        let write = |(uid, (_, w)): (&String, &(Key, Write))| {
            let stage = w.progress.stage;
            format!(
                "{:?} {uid} at {} for {:?} {stage:?}",
                w.what, w.resource_version, w.claim
            )
        };
        let writes = self.writes.iter().map(write);
        let serving = self
            .claims_in_flight
            .iter()
            .map(|(uid, count)| format!("serve {uid} {count}"));
        let revising = self.revising.iter().map(|uid| format!("revise {uid}"));
        let mut described: Vec<_> = creations.chain(writes).chain(serving).chain(revising).collect();
        described.sort();
        described
    }

    /// Number of entries, for tests and gauges: it is zero at rest.
    pub fn len(&self) -> usize {
        self.creations.len() + self.writes.len() + self.claims_in_flight.len() + self.revising.len()
    }

    /// No write is expected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
