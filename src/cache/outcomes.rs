//! What the answers to the operator's requests show. An answer may arrive late: then the watch knows better.

use crate::api::claim::Phase;
use crate::cache::grouped::remove_from;
use crate::cache::index::Index;
use crate::cache::memory::WrittenStatus;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::watch_progress::{WatchProgress, newer};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::revision::Revision;
use crate::model::sandbox::Sandbox;
use crate::model::stored::{self, StoredPod, StoredRevision};
use std::collections::HashSet;
use std::sync::Arc;

impl Index {
    /// How far the watches have got. Take it before a request whose answer the index learns from.
    pub fn watch_progress(&self) -> WatchProgress {
        self.watch_progress
    }

    /// A read sent at `before` showed this pod.
    pub fn learn_pod(&mut self, stored: &StoredPod, before: WatchProgress) -> Vec<ReconcileRequest> {
        let version = stored::resource_version(&stored.metadata);
        if self.watch_progress.pods.knows_better(&version, before.pods) {
            return Vec::new();
        }
        self.take_over_pod(stored)
    }

    /// The answer to a request sent at `before` showed this revision.
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

    /// The API server deleted the revision.
    pub fn forget_revision(&mut self, revision: &Revision) {
        let pool = Key::new(revision.key.namespace.clone(), revision.pool.clone());
        remove_from(&mut self.revisions, &pool, |of_pool| {
            let known = of_pool.get(&revision.key.name);
            known.is_some_and(|known| known.uid == revision.uid)
                && of_pool.remove(&revision.key.name).is_some()
        });
    }

    /// A live read of pod `key`, sent at `before`, shows whether a write on the pod happened.
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
            // The pod may have been created after the read.
            None => Vec::new(),
        }
    }

    /// The status of a pool was written. It is not written again before the watch shows it.
    pub fn published_pool(&mut self, pool: &Pool, resource_version: Option<&str>) {
        let stored = self.pools.get(&pool.key).filter(|p| p.uid == pool.uid);
        let seen = stored.map(|p| p.resource_version.clone());
        if let Some(written) = news(resource_version, seen, false) {
            self.memory.pool_mut(&pool.uid).written_status = Some(written);
        }
    }

    /// The status of a claim was written, with this phase. It is not written again before the watch shows it. A claim that
    /// still waits may be bound all the same, or younger claims would overtake it.
    pub fn published_claim(&mut self, claim: &Claim, phase: Option<Phase>, resource_version: Option<&str>) {
        let stored = self.claims.get(&claim.key).filter(|c| c.uid == claim.uid);
        let seen = stored.map(|c| c.resource_version.clone());
        let is_decided = matches!(phase, Some(Phase::Bound | Phase::Failed | Phase::Expired));
        if let Some(written) = news(resource_version, seen, is_decided) {
            self.memory.claim_mut(&claim.uid).written_status = Some(written);
        }
    }

    /// The API server did not bind `sandbox` to `claim`. Once every sandbox that exists has been tried, the claim tries them
    /// again.
    pub fn note_rejected_sandbox(&mut self, claim: &Claim, sandbox: &Sandbox) {
        if !self.exists(claim) {
            return;
        }
        let known = self.rejected_sandboxes(claim);
        let again = known.contains(&sandbox.uid);
        let pools = self.accepted_by(claim);
        let sandboxes = pools.flat_map(|pool| self.sandboxes_of(&pool.key));
        // A sandbox that is gone is not remembered.
        let present = sandboxes.filter(|s| !again && known.contains(&s.uid));
        let mut rejected: HashSet<_> = present.map(|s| s.uid.clone()).collect();
        rejected.insert(sandbox.uid.clone());
        self.memory.claim_mut(&claim.uid).rejected_sandboxes = Arc::new(rejected);
    }
}

/// What to remember of a status written at resource version `written` of an object last `seen` at another. The watch may be
/// faster than the answer: a status that it has shown, or shown gone, needs no note.
fn news(written: Option<&str>, seen: Option<String>, is_decided: bool) -> Option<WrittenStatus> {
    let (written, seen) = (written?, seen?);
    newer(written, &seen).then(|| WrittenStatus {
        version: written.to_string(),
        is_decided,
    })
}
