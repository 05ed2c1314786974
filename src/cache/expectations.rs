//! Own writes that the watch has not shown yet. A plan made from a lagging view would repeat them; with
//! these, nothing is created, bound or deleted twice.

use crate::api::labels;
use crate::cache::snapshot::{CreationInFlight, ExpectedWrite};
use crate::model::Key;
use crate::model::sandbox::{Owner, Sandbox};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// How long an own write that is answered may stay unseen before a live read settles whether it happened.
pub const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The same for one that is not answered: far longer than a task waits for its turn or pauses before its next try. While it
/// is under way a read tells nothing, since the write may be carried out right after it.
const IN_FLIGHT_TIMEOUT: Duration = Duration::from_secs(600);

/// How far an own write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A task has it.
    UnderWay,
    /// The API server has answered it.
    Answered,
    /// A live read is to tell what became of it.
    Asked,
}

/// How far an own write is, and since when.
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

    /// Whether a live read is due at `now`; then it is taken for asked.
    fn is_due(&mut self, now: Instant) -> bool {
        let patience = match self.stage {
            Stage::UnderWay => IN_FLIGHT_TIMEOUT,
            Stage::Answered | Stage::Asked => EXPECTATION_TIMEOUT,
        };
        let due = now.duration_since(self.since) >= patience;
        if due {
            (self.stage, self.since) = (Stage::Asked, now);
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

/// A pod on its way.
#[derive(Clone, Debug)]
struct ExpectedCreation {
    pool: Key,
    revision: String,
    progress: WriteProgress,
}

/// The own writes not yet seen. Every entry is noted before its request is sent.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    creations: HashMap<Key, ExpectedCreation>,
    writes: HashMap<String, (Key, Write)>,
    /// UIDs of claims that a task is binding or ending.
    claims_in_flight: HashMap<String, usize>,
    /// UIDs of claims that are noted as being served and only wait to be served again.
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
                progress: WriteProgress::at(Stage::UnderWay),
            },
        );
    }

    /// The create was refused, or the pod has been seen.
    pub fn created(&mut self, pod: &Key) {
        self.creations.remove(pod);
    }

    /// The create of pod `pod` is on its way, and the pod was not seen yet.
    pub fn is_creating(&self, pod: &Key) -> bool {
        self.creations.contains_key(pod)
    }

    /// The create of pod `pod` has its answer, or will have none. Tells whether the pod was not seen yet.
    pub fn create_answered(&mut self, pod: &Key) -> bool {
        let Some(creation) = self.creations.get_mut(pod) else {
            return false;
        };
        creation.progress = WriteProgress::at(Stage::Answered);
        true
    }

    /// Notes the binding of `sandbox` to the claim with UID `claim`, by a task that is noted as serving it.
    pub fn binding(&mut self, sandbox: &Sandbox, claim: &str) {
        self.note(sandbox, ExpectedWrite::Bind, claim);
    }

    /// Notes that a task binds or ends the claim with UID `claim`.
    pub fn in_flight(&mut self, claim: &str) {
        *self.claims_in_flight.entry(claim.to_string()).or_default() += 1;
    }

    /// The task that binds or ends the claim with UID `claim` is done, whatever came of it.
    pub fn end_in_flight(&mut self, claim: &str) {
        if let Some(count) = self.claims_in_flight.get_mut(claim) {
            *count -= 1;
            if *count == 0 {
                self.claims_in_flight.remove(claim);
            }
        }
    }

    /// Notes that the task that has the claim with UID `claim` waits before it tries again.
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

    /// Notes that `sandbox` is being marked as draining.
    pub fn draining(&mut self, sandbox: &Sandbox) {
        self.note(sandbox, ExpectedWrite::Drain, "");
    }

    /// Notes that the draining `sandbox` is being marked as warm.
    pub fn restoring(&mut self, sandbox: &Sandbox) {
        self.note(sandbox, ExpectedWrite::Restore, "");
    }

    /// The API server has answered the write on `sandbox`.
    pub fn answered(&mut self, sandbox: &Sandbox) {
        if let Some(write) = self.write_on(sandbox) {
            write.progress = WriteProgress::at(Stage::Answered);
        }
    }

    /// The task that has the write on `sandbox` is still at it.
    pub fn goes_on(&mut self, sandbox: &Sandbox) {
        if let Some(write) = self.write_on(sandbox) {
            write.progress = WriteProgress::at(Stage::UnderWay);
        }
    }

    /// The API server has accepted the deletion of `sandbox`, or answered a write on it that it is gone.
    pub fn deleted(&mut self, sandbox: &Sandbox) {
        if let Some(write) = self.write_on(sandbox) {
            write.what = ExpectedWrite::Deleted;
        }
        self.answered(sandbox);
    }

    /// The API server has refused the write on `sandbox`, which is not what it was taken for.
    pub fn refused(&mut self, sandbox: &Sandbox) {
        if self.on(&sandbox.uid).is_none() || self.write_on(sandbox).is_some() {
            self.note(sandbox, ExpectedWrite::Conflicted, "");
            self.answered(sandbox);
        }
    }

    /// The last write on `sandbox` was refused, and nothing newer of it was seen since.
    pub fn is_refused(&mut self, sandbox: &Sandbox) -> bool {
        let write = self.write_on(sandbox);
        write.is_some_and(|write| write.what == ExpectedWrite::Conflicted)
    }

    /// The write on `sandbox` as it was decided on. It may have been shown by now, and another decided on since.
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
            progress: WriteProgress::at(Stage::UnderWay),
        };
        self.writes
            .insert(sandbox.uid.clone(), (sandbox.key.clone(), write));
    }

    /// The watch has shown `sandbox`. Tells whether that ends an own write on it.
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

    /// The watch has shown that the pod is gone.
    pub fn gone(&mut self, key: &Key, uid: &str) {
        self.creations.remove(key);
        self.writes.remove(uid);
    }

    /// A live read of the pod `key` has told what became of the writes on it that it was to tell of.
    pub fn confirmed(&mut self, key: &Key) {
        let asked = |progress: &WriteProgress| progress.stage == Stage::Asked;
        self.creations
            .retain(|pod, creation| pod != key || !asked(&creation.progress));
        self.writes
            .retain(|_, (pod, write)| pod != key || !asked(&write.progress));
    }

    /// The own write on the pod with UID `uid` that is not seen yet.
    pub fn on(&self, uid: &str) -> Option<ExpectedWrite> {
        self.writes.get(uid).map(|(_, write)| write.what)
    }

    /// The pod with UID `uid` is being deleted, or was and is not seen so yet.
    pub fn is_deleting(&self, uid: &str) -> bool {
        matches!(self.on(uid), Some(ExpectedWrite::Delete | ExpectedWrite::Deleted))
    }

    /// The pod with UID `uid` is being bound or deleted, or was and is not seen so yet: no claim can have it any more.
    pub fn is_assigned(&self, uid: &str) -> bool {
        self.on(uid) == Some(ExpectedWrite::Bind) || self.is_deleting(uid)
    }

    /// The pod that is being bound to the claim with UID `claim`, or was and is not seen so yet; of several any.
    pub fn binding_of(&self, claim: &str) -> Option<&Key> {
        let binds = |write: &Write| write.what == ExpectedWrite::Bind && write.claim == claim;
        let mut writes = self.writes.values();
        writes.find(|(_, write)| binds(write)).map(|(pod, _)| pod)
    }

    /// UIDs of claims that a pod is being bound to or was bound to and is not seen so yet, once for each pod.
    pub fn bound_to(&self) -> impl Iterator<Item = &str> {
        self.writes
            .values()
            .filter(|(_, w)| w.what == ExpectedWrite::Bind)
            .map(|(_, w)| w.claim.as_str())
    }

    /// Whether a task is binding or ending the claim with UID `claim`.
    pub fn is_in_flight(&self, claim: &str) -> bool {
        self.claims_in_flight.contains_key(claim)
    }

    /// Whether the claim with UID `claim` waits to be served again.
    pub(crate) fn is_pausing(&self, claim: &str) -> bool {
        self.pausing.contains(claim)
    }

    /// Creations on their way for `pool`.
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

    /// Pods whose own write has been unseen for too long at `now`, each to be settled by a live read, sorted. The clock of
    /// each starts anew.
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

    /// The entries in words, sorted, without their age: for tests.
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

    /// Nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
