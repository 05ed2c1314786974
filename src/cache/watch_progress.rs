//! What the answers to own requests show, beside what the watches tell. An answer may come long after the request was
//! carried out: then the watch knows better.

use crate::api::claim::Phase;
use crate::cache::grouped::remove_from;
use crate::cache::index::{Index, ReconcileRequest, Written, newer, number};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::revision::Revision;
use crate::model::stored;
use crate::model::stored::{StoredPod, StoredRevision};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// How far the watch of one kind has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindProgress {
    /// The newest resource version that it has told of, the ends of objects among them. The versions of one kind grow
    /// (KEP-5504), and a watch tells of them in their order.
    version: u64,
    /// Complete lists so far. What is not in one may have come and gone before it, and is never told.
    lists: u64,
}

impl KindProgress {
    /// The watch has told of this object.
    pub(crate) fn up_to(&mut self, metadata: &ObjectMeta) {
        let version = metadata.resource_version.as_deref().and_then(number);
        self.version = self.version.max(version.unwrap_or(0));
    }

    /// The watch begins anew, with a complete list. After the data of the API server was restored, its versions are lower.
    pub(crate) fn by_list(&mut self) {
        *self = Self {
            version: 0,
            lists: self.lists + 1,
        };
    }

    /// Whether the watch tells more of an object than an answer that shows this version of it, to a request sent when the
    /// watch had told `before`.
    fn knows_better(self, version: &str, before: Self) -> bool {
        self.lists != before.lists || self.covers(version)
    }

    fn covers(self, version: &str) -> bool {
        number(version).is_some_and(|version| version <= self.version)
    }
}

/// How far the watches had told when a request was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchProgress {
    pub(crate) pods: KindProgress,
    pub(crate) revisions: KindProgress,
}

impl Index {
    /// How far the watches have told, to be noted before a request whose answer this index is to learn from.
    pub fn watch_progress(&self) -> WatchProgress {
        self.watch_progress
    }

    /// A read sent `before` has shown this pod.
    pub fn learn_pod(&mut self, stored: &StoredPod, before: WatchProgress) -> Vec<ReconcileRequest> {
        let version = stored::resource_version(&stored.metadata);
        if self.watch_progress.pods.knows_better(&version, before.pods) {
            return Vec::new();
        }
        self.take_over_pod(stored)
    }

    /// The answer to a request sent `before` has shown this revision.
    pub fn learn_revision(&mut self, stored: &StoredRevision, before: WatchProgress) {
        let version = stored::resource_version(&stored.metadata);
        if !self
            .watch_progress
            .revisions
            .knows_better(&version, before.revisions)
        {
            self.take_over_revision(stored);
        }
    }

    /// A deletion has been answered: the revision is gone.
    pub fn forget_revision(&mut self, revision: &Revision) {
        let pool = Key::new(revision.key.namespace.clone(), revision.pool.clone());
        remove_from(&mut self.revisions, &pool, |of_pool| {
            let known = of_pool.get(&revision.key.name);
            known.is_some_and(|known| known.uid == revision.uid)
                && of_pool.remove(&revision.key.name).is_some()
        });
    }

    /// A live read of the pod `key`, sent `before`, tells what became of an own write on it.
    pub fn confirm(
        &mut self,
        key: &Key,
        live: Option<&StoredPod>,
        before: WatchProgress,
    ) -> Vec<ReconcileRequest> {
        self.expectations.confirmed(key);
        let Some(known) = self.pod(key) else {
            let learnt = live.map(|pod| self.learn_pod(pod, before)).unwrap_or_default();
            let pools = self.pool_keys().into_iter();
            let here = pools.filter(|pool| pool.namespace == key.namespace);
            return learnt
                .into_iter()
                .chain(here.map(ReconcileRequest::Pool))
                .collect();
        };
        let known_before = self.watch_progress.pods.lists == before.pods.lists
            && before.pods.covers(&known.resource_version);
        match live {
            Some(pod) => self.learn_pod(pod, before),
            None if known_before => self.remove_pod(key),
            // It may have come after the read.
            None => Vec::new(),
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
        let confirmed = matches!(phase, Some(Phase::Bound | Phase::Failed | Phase::Expired));
        self.note_published(&claim.uid, resource_version, seen, confirmed);
    }

    /// The watch may be faster than the answer: what it has shown already, or shown gone, needs no note.
    fn note_published(&mut self, uid: &str, written: Option<&str>, seen: Option<String>, confirmed: bool) {
        if let (Some(written), Some(seen)) = (written, seen)
            && newer(written, &seen)
        {
            let version = written.to_string();
            self.published
                .insert(uid.to_string(), Written { version, confirmed });
        }
    }
}
