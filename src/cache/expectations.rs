//! Expectations: the operator's writes on pods that the watch has not shown, so that no plan repeats them.

use crate::api::labels;
use crate::cache::expected_creations::{ExpectedCreation, ExpectedCreations};
use crate::cache::snapshot::{CreationInFlight, ExpectedWrite};
use crate::cache::write_stage::{Progress, Stage};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::failure::Failure;
use crate::model::request::{PodChange, PodCreation, PodWrite};
use crate::model::retry::Tries;
use crate::model::sandbox::{Owner, Sandbox};
use jiff::Timestamp;
use smol_str::SmolStr;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after its answer a write may stay unseen before a live read confirms whether it happened.
pub const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(30);

/// A write on an existing pod.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The write as it was decided.
    pub write: Arc<PodWrite>,
    /// What is expected of it by now.
    pub what: ExpectedWrite,
    /// How far it is.
    pub progress: Progress,
}

impl Expectation {
    /// The claim of a binding.
    fn bound_claim(&self) -> Option<&Arc<Claim>> {
        match &self.write.change {
            PodChange::Bind { claim, .. } if self.what == ExpectedWrite::Bind => Some(claim),
            _ => None,
        }
    }

    /// UID of the claim, of a binding.
    fn claim(&self) -> Option<&SmolStr> {
        self.bound_claim().map(|claim| &claim.uid)
    }

    /// Whether `sandbox`, a later state of the pod, shows the write.
    fn is_shown_by(&self, sandbox: &Sandbox) -> bool {
        match self.what {
            ExpectedWrite::Bind => {
                let claim = self.claim();
                sandbox.terminating
                    || matches!(&sandbox.owner, Owner::Claim { uid, .. } if Some(uid) == claim)
            }
            ExpectedWrite::Delete | ExpectedWrite::Deleted => sandbox.terminating,
            ExpectedWrite::Drain => sandbox.terminating || sandbox.state == labels::DRAINING,
            ExpectedWrite::Restore => sandbox.terminating || sandbox.state == labels::WARM,
            ExpectedWrite::MarkDisruption => {
                let mark = sandbox.disruption_mark();
                sandbox.terminating
                    || matches!(&self.write.change, PodChange::MarkDisruption(written) if *written == mark)
            }
            ExpectedWrite::ChooseReplacement => {
                sandbox.terminating
                    || matches!(&self.write.change, PodChange::ChooseReplacement(claim) if claim.has_chosen(sandbox))
            }
            ExpectedWrite::Conflicted => sandbox.resource_version != self.write.sandbox.resource_version,
        }
    }
}

/// The writes on pods that the watch has not shown. Each is noted before its request is sent.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    creations: ExpectedCreations,
    /// By UID of the pod.
    writes: HashMap<SmolStr, Expectation>,
    /// How many pods are being bound to each claim, by UID.
    bindings: HashMap<SmolStr, usize>,
}

impl Expectations {
    /// Notes a creation, decided at `now`.
    pub fn create(&mut self, creation: Arc<PodCreation>, now: Timestamp) {
        self.creations.insert(ExpectedCreation {
            creation,
            decided: now,
            progress: Progress::new(),
        });
    }

    /// Notes a write on a pod, in place of an earlier one.
    pub fn write(&mut self, write: Arc<PodWrite>) {
        let what = match &write.change {
            PodChange::Bind { .. } => ExpectedWrite::Bind,
            PodChange::Delete => ExpectedWrite::Delete,
            PodChange::Drain => ExpectedWrite::Drain,
            PodChange::Restore(_) => ExpectedWrite::Restore,
            PodChange::MarkDisruption(_) => ExpectedWrite::MarkDisruption,
            PodChange::ChooseReplacement(_) => ExpectedWrite::ChooseReplacement,
        };
        let uid = write.sandbox.uid.clone();
        self.remove(&uid);
        let expected = Expectation {
            write,
            what,
            progress: Progress::new(),
        };
        if let Some(claim) = expected.claim() {
            *self.bindings.entry(claim.clone()).or_default() += 1;
        }
        self.writes.insert(uid, expected);
    }

    /// What is known of this very write. The watch may have shown it, and another write may have followed.
    pub fn of(&mut self, write: &PodWrite) -> Option<&mut Expectation> {
        let version = &write.sandbox.resource_version;
        self.writes
            .get_mut(&write.sandbox.uid)
            .filter(|known| known.write.sandbox.resource_version == *version)
    }

    /// The creation of pod `pod`, if it is expected and not seen.
    pub fn creation(&mut self, pod: &Key) -> Option<&mut ExpectedCreation> {
        self.creations.get_mut(pod)
    }

    /// The API server answered the write.
    pub fn answered(&mut self, write: &PodWrite) {
        if let Some(known) = self.of(write) {
            known.progress.enter(Stage::Answered);
        }
    }

    /// The API server accepted a deletion, or answered that the pod is gone.
    pub fn deleted(&mut self, write: &PodWrite) {
        self.turn_into(write, ExpectedWrite::Deleted);
        self.answered(write);
    }

    /// The pod has changed, or the API server rejects the write: none follows before the watch shows a change.
    pub fn conflicted(&mut self, write: &PodWrite) {
        self.turn_into(write, ExpectedWrite::Conflicted);
    }

    fn turn_into(&mut self, write: &PodWrite, what: ExpectedWrite) {
        let Some(known) = self.of(write) else {
            return;
        };
        let claim = known.claim().cloned();
        known.what = what;
        self.end_binding(claim);
    }

    fn end_binding(&mut self, claim: Option<SmolStr>) {
        let Some(claim) = claim else {
            return;
        };
        let left = self
            .bindings
            .get(&claim)
            .map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            self.bindings.remove(&claim);
        } else {
            self.bindings.insert(claim, left);
        }
    }

    /// The request of the write failed.
    pub fn failed(&mut self, write: &PodWrite, failure: Failure, now: Timestamp) {
        if let Some(known) = self.of(write) {
            known.progress.fail(failure, now);
        }
    }

    /// The request of the creation failed.
    pub fn creation_failed(&mut self, pod: &Key, failure: Failure, now: Timestamp) {
        if let Some(known) = self.creations.get_mut(pod) {
            known.progress.fail(failure, now);
        }
    }

    /// The write did not happen.
    pub fn forget(&mut self, write: &PodWrite) {
        if self.of(write).is_some() {
            self.remove(&write.sandbox.uid);
        }
    }

    fn remove(&mut self, uid: &str) {
        let known = self.writes.remove(uid);
        let claim = known.as_ref().and_then(Expectation::claim);
        self.end_binding(claim.cloned());
    }

    /// The creation did not happen.
    pub fn forget_creation(&mut self, pod: &Key) {
        self.creations.remove(pod);
    }

    /// The watch showed `sandbox`. Returns whether that confirms a write on it.
    pub fn seen(&mut self, sandbox: &Sandbox) -> bool {
        self.creations.remove(&sandbox.key);
        let known = self.writes.get(&sandbox.uid);
        let is_shown = known.is_some_and(|known| known.is_shown_by(sandbox));
        if is_shown {
            self.remove(&sandbox.uid);
        }
        is_shown
    }

    /// The watch showed that the pod is gone.
    pub fn gone(&mut self, key: &Key, uid: &str) {
        self.creations.remove(key);
        self.remove(uid);
    }

    /// A live read of pod `key` found `sandbox`, or no pod. This shows whether each write that waited for the read
    /// happened. Returns the creation that the read proves.
    pub fn read(&mut self, key: &Key, sandbox: Option<&Sandbox>) -> Option<Arc<PodCreation>> {
        let of_pod = self
            .writes
            .iter_mut()
            .filter(|(_, known)| known.write.sandbox.key == *key && known.progress.stage == Stage::Reading);
        let is_over = |(uid, known): (&SmolStr, &mut Expectation)| {
            let found = sandbox.filter(|sandbox| sandbox.uid == *uid);
            let happened = found.is_none_or(|sandbox| known.is_shown_by(sandbox));
            (happened || known.progress.miss()).then(|| uid.clone())
        };
        let over: Vec<_> = of_pod.filter_map(is_over).collect();
        over.iter().for_each(|uid| self.remove(uid));
        let known = self.creations.get_mut(key)?;
        if known.progress.stage != Stage::Reading {
            return None;
        }
        let is_proven = sandbox.is_some_and(|sandbox| known.is_shown_by(sandbox));
        if is_proven || known.progress.miss() {
            let known = self.creations.remove(key)?;
            return is_proven.then_some(known.creation);
        }
        None
    }

    /// The live read of pod `key` failed.
    pub fn read_failed(&mut self, key: &Key, now: Timestamp) {
        let writes = self.writes.values_mut();
        let of_pod = writes.filter(|known| known.write.sandbox.key == *key);
        let of_pod = of_pod.map(|known| &mut known.progress);
        let creation = self.creations.get_mut(key).map(|known| &mut known.progress);
        of_pod
            .chain(creation)
            .for_each(|progress| progress.read_failed(now));
    }

    /// The write on the pod with UID `uid` that the watch has not shown.
    pub fn on(&self, uid: &str) -> Option<ExpectedWrite> {
        self.writes.get(uid).map(|known| known.what)
    }

    /// Whether a deletion of the pod with UID `uid` is expected: under way or done, and not yet shown by the watch.
    pub fn is_deleting(&self, uid: &str) -> bool {
        matches!(self.on(uid), Some(ExpectedWrite::Delete | ExpectedWrite::Deleted))
    }

    /// Whether a binding or deletion of the pod with UID `uid` is expected, so that no other claim can have the pod.
    pub fn is_assigned(&self, uid: &str) -> bool {
        self.on(uid) == Some(ExpectedWrite::Bind) || self.is_deleting(uid)
    }

    /// A pod whose binding to the claim with UID `claim` is expected.
    pub fn binding_of(&self, claim: &str) -> Option<&Key> {
        if self.bound_to(claim) == 0 {
            return None;
        }
        let mut writes = self.writes.values();
        writes
            .find(|known| known.claim().is_some_and(|bound| bound == claim))
            .map(|known| &known.write.sandbox.key)
    }

    /// The claim of the expected binding of the pod with UID `uid`.
    pub(crate) fn claim_of(&self, uid: &str) -> Option<&Arc<Claim>> {
        self.writes.get(uid)?.bound_claim()
    }

    /// The claims of the expected bindings of pods with key `key`. A pod may be created again under its name.
    pub(crate) fn claims_of(&self, key: &Key) -> impl Iterator<Item = &Arc<Claim>> {
        let writes = self.writes.values();
        writes
            .filter(|known| known.write.sandbox.key == *key)
            .filter_map(Expectation::bound_claim)
    }

    /// How many bindings to the claim with UID `claim` are expected.
    pub fn bound_to(&self, claim: &str) -> usize {
        self.bindings.get(claim).copied().unwrap_or_default()
    }

    /// Expected creations of `pool`, by name.
    pub fn creations_of(&self, pool: &Key) -> Vec<CreationInFlight> {
        let in_flight = |known: &ExpectedCreation| CreationInFlight {
            name: known.creation.pod.name.clone(),
            revision: known.creation.revision.clone(),
            is_answered: known.progress.stage == Stage::Answered,
        };
        self.creations.of_pool(pool).map(in_flight).collect()
    }

    /// The writes on existing pods that failed or that a live read showed not to have happened, in order of their pods.
    pub fn failed_writes(&self) -> Vec<&Expectation> {
        let writes = self.writes.values();
        let mut failed: Vec<_> = writes.filter(|known| known.progress.is_failed()).collect();
        failed.sort_by(|a, b| a.write.sandbox.key.cmp(&b.write.sandbox.key));
        failed
    }

    /// The creations that failed or that a live read showed not to have happened, in order of their pods.
    pub fn failed_creations(&self) -> Vec<&ExpectedCreation> {
        let creations = self.creations.iter();
        let mut failed: Vec<_> = creations.filter(|known| known.progress.is_failed()).collect();
        failed.sort_by(|a, b| a.creation.pod.cmp(&b.creation.pod));
        failed
    }

    /// Pods with a write answered and unseen for too long at `now`, sorted. A live read is due for each, and counts as
    /// begun.
    pub fn overdue(&mut self, now: Instant) -> Vec<Key> {
        let creations = self.creations.iter_mut();
        let creations = creations.map(|known| (&known.creation.pod, &mut known.progress));
        let writes = self
            .writes
            .values_mut()
            .map(|known| (&known.write.sandbox.key, &mut known.progress));
        let due = creations
            .chain(writes)
            .filter_map(|(key, progress)| read_if_due(progress, now).then_some(key));
        let mut keys: Vec<Key> = due.cloned().collect();
        keys.sort();
        keys
    }

    /// Forgets when requests failed. After the clock was set back these moments lie in the future.
    pub(crate) fn forget_moments(&mut self) {
        for known in self.creations.iter_mut() {
            known.decided = Timestamp::UNIX_EPOCH;
            known.progress.tries.iter_mut().for_each(Tries::forget_moments);
        }
        for known in self.writes.values_mut() {
            known.progress.tries.iter_mut().for_each(Tries::forget_moments);
        }
    }

    /// The entries as text, sorted, without their age: for tests.
    pub fn describe(&self) -> Vec<String> {
        let creations = self.creations.iter().map(|known| {
            let (creation, progress) = (&known.creation, &known.progress);
            let (pod, revision) = (&creation.pod, &creation.revision);
            format!(
                "create {pod} of {revision} {:?} {:?}",
                progress.stage, progress.tries
            )
        });
        let writes = self.writes.values().map(|known| {
            let (sandbox, progress) = (&known.write.sandbox, &known.progress);
            format!(
                "{:?} {} at {} for {:?} {:?} {:?}",
                known.what,
                sandbox.uid,
                sandbox.resource_version,
                known.claim(),
                progress.stage,
                progress.tries
            )
        });
        let mut described: Vec<_> = creations.chain(writes).collect();
        described.sort();
        described
    }

    /// Number of entries, for tests and gauges: it is zero at rest.
    pub fn len(&self) -> usize {
        self.creations.len() + self.writes.len()
    }

    /// No write is expected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether a live read is due at `now`. If so, the read counts as begun.
fn read_if_due(progress: &mut Progress, now: Instant) -> bool {
    let is_due = progress.stage == Stage::Answered && progress.age(now) >= EXPECTATION_TIMEOUT;
    if is_due {
        progress.begin_read(now);
    }
    is_due
}
