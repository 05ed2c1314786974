//! What the answers to own requests show, beside what the watches tell. An answer may come long after the request was
//! carried out: then the watch knows better.

use super::Key;
use super::claim::Claim;
use super::grouped::remove_from;
use super::index::{Index, Trigger, Written, newer};
use super::pool::Pool;
use super::revision::Revision;
use super::stored::StoredPod;
use crate::api::claim::Phase;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The newest resource version that a watch has told of, the ends of objects among it. The versions of one kind grow
/// (KEP-5504), and a watch tells of them in their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Version(u64);

impl Version {
    fn read(version: &str) -> Option<u64> {
        version.parse().ok()
    }

    /// The watch has told of this object.
    pub(super) fn up_to(&mut self, metadata: &ObjectMeta) {
        let version = metadata.resource_version.as_deref().and_then(Self::read);
        self.0 = self.0.max(version.unwrap_or(0));
    }

    /// The watch has told of this version of an object, or of a later one, or that it is gone.
    fn covers(self, metadata: &ObjectMeta) -> bool {
        let version = metadata.resource_version.as_deref();
        version.is_some_and(|version| self.covers_version(version))
    }

    fn covers_version(self, version: &str) -> bool {
        Self::read(version).is_some_and(|version| version <= self.0)
    }
}

/// How far the watches have told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Of pods.
    pub pods: Version,
    /// Of revisions.
    pub revisions: Version,
}

impl Index {
    /// How far the watches have told.
    pub fn told(&self) -> Told {
        self.told
    }

    /// A read has shown this pod.
    pub fn learn_pod(&mut self, stored: &StoredPod) -> Vec<Trigger> {
        if self.told.pods.covers(&stored.metadata) {
            return Vec::new();
        }
        self.take_over_pod(stored)
    }

    /// The answer to a write, or a read, has shown this revision.
    pub fn learn_revision(&mut self, stored: &ControllerRevision) {
        if !self.told.revisions.covers(&stored.metadata) {
            self.take_over_revision(stored);
        }
    }

    /// A request has found that this revision is not there: what was known of it last came after its end.
    pub fn forget_revision(&mut self, revision: &Revision) {
        let pool = Key::new(revision.key.namespace.clone(), revision.pool.clone());
        remove_from(&mut self.revisions, &pool, |of_pool| {
            let known = of_pool.get(&revision.key.name);
            known.is_some_and(|known| known.uid == revision.uid)
                && of_pool.remove(&revision.key.name).is_some()
        });
    }

    /// A live read of the pod `key`, asked for when the watch had told up to `asked`, tells what became of an own write on it.
    pub fn settle(&mut self, key: &Key, live: Option<&StoredPod>, asked: Version) -> Vec<Trigger> {
        self.pending.settled(key);
        match (live, self.pod(key)) {
            (Some(pod), _) if !self.told.pods.covers(&pod.metadata) => self.take_over_pod(pod),
            // It may have come after the read.
            (None, Some(known)) if asked.covers_version(&known.resource_version) => self.remove_pod(key),
            (_, Some(_)) => Vec::new(),
            (_, None) => self
                .pool_keys()
                .into_iter()
                .filter(|p| p.namespace == key.namespace)
                .map(Trigger::Pool)
                .collect(),
        }
    }

    /// The status of a pool was written; until the watch shows it, it is not written again.
    pub fn published_pool(&mut self, pool: &Pool, resource_version: Option<&str>) {
        let stored = self.pools.get(&pool.key).filter(|p| p.uid == pool.uid);
        let seen = stored.map(|p| p.resource_version.clone());
        self.note_published(&pool.uid, resource_version, seen, false);
    }

    /// The status of a claim was written, with this phase. Until the watch shows it, its status is not written
    /// again; a claim that still waits may be bound all the same, or younger ones would overtake it.
    pub fn published_claim(&mut self, claim: &Claim, phase: Option<Phase>, resource_version: Option<&str>) {
        let stored = self.claims.get(&claim.key).filter(|c| c.uid == claim.uid);
        let seen = stored.map(|c| c.resource_version.clone());
        let settled = matches!(phase, Some(Phase::Bound | Phase::Failed | Phase::Expired));
        self.note_published(&claim.uid, resource_version, seen, settled);
    }

    /// The watch may be faster than the answer: what it has shown already, or shown gone, needs no note.
    fn note_published(&mut self, uid: &str, written: Option<&str>, seen: Option<String>, settled: bool) {
        if let (Some(written), Some(seen)) = (written, seen)
            && newer(written, &seen)
        {
            let version = written.to_string();
            self.published
                .insert(uid.to_string(), Written { version, settled });
        }
    }
}
