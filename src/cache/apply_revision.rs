//! Applies an event of a stored revision to the cache, and returns what to reconcile.

use crate::cache::grouped::remove_from;
use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::model::Key;
use crate::model::revision::Revision;
use crate::model::stored::StoredRevision;
use std::collections::HashSet;
use std::sync::Arc;

impl Index {
    /// A ControllerRevision was created or changed.
    pub fn apply_revision(&mut self, stored: &StoredRevision) -> Vec<ReconcileRequest> {
        self.watch_progress.revisions.up_to(&stored.metadata);
        self.take_over_revision(stored)
    }

    /// Stores a revision that a watch or an answer showed.
    pub(crate) fn take_over_revision(&mut self, stored: &StoredRevision) -> Vec<ReconcileRequest> {
        let Some(revision) = Revision::read(stored) else {
            return Vec::new();
        };
        let pool = Key::new(revision.key.namespace.clone(), revision.pool.clone());
        let of_pool = self.revisions.entry(pool.clone()).or_default();
        let known = of_pool.get(&revision.key.name);
        // The number only grows: an event with a lower one is older than the operator's last write.
        if known.is_some_and(|k| k.uid == revision.uid && k.number > revision.number) {
            return Vec::new();
        }
        of_pool.insert(revision.key.name.clone(), Arc::new(revision));
        vec![ReconcileRequest::Pool(pool)]
    }

    /// A ControllerRevision is gone.
    pub fn delete_revision(&mut self, stored: &StoredRevision) -> Vec<ReconcileRequest> {
        self.watch_progress.revisions.up_to(&stored.metadata);
        let Some(revision) = Revision::read(stored) else {
            return Vec::new();
        };
        let pool = Key::new(revision.key.namespace.clone(), revision.pool.clone());
        remove_from(&mut self.revisions, &pool, |of_pool| {
            of_pool.remove(&revision.key.name).is_some()
        });
        vec![ReconcileRequest::Pool(pool)]
    }

    /// After a list: revisions missing from it are gone.
    pub fn retain_revisions(&mut self, listed: &HashSet<Key>) {
        self.watch_progress.revisions.by_list();
        self.revisions
            .values_mut()
            .for_each(|of_pool| of_pool.retain(|_, r| listed.contains(&r.key)));
        self.revisions.retain(|_, of_pool| !of_pool.is_empty());
    }
}
