//! Applies an event of a PodTemplate to the cache, and returns what to reconcile.

use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::model::Key;
use crate::model::pool::Pool;
use crate::model::stored::{self, StoredPodTemplate};
use std::collections::HashSet;
use std::sync::Arc;

impl Index {
    /// A PodTemplate was created or changed.
    pub fn apply_template(&mut self, stored: &StoredPodTemplate) -> Vec<ReconcileRequest> {
        let content = stored.template.to_string();
        self.put_template(&stored::key(&stored.metadata), Some(content.into()))
    }

    /// A PodTemplate is gone.
    pub fn delete_template(&mut self, stored: &StoredPodTemplate) -> Vec<ReconcileRequest> {
        self.put_template(&stored::key(&stored.metadata), None)
    }

    /// After a list: PodTemplates missing from it are gone.
    pub fn retain_templates(&mut self, listed: &HashSet<Key>) {
        let gone: Vec<_> = self
            .templates
            .stored
            .keys()
            .filter(|key| !listed.contains(key))
            .cloned()
            .collect();
        for key in gone {
            self.put_template(&key, None);
        }
        if !std::mem::replace(&mut self.templates.listed, true) {
            let missing = |pool: &&Arc<Pool>| {
                pool.template_ref
                    .as_ref()
                    .is_some_and(|name| !listed.contains(name))
            };
            self.pools
                .values()
                .filter(missing)
                .for_each(|pool| self.log_error_of(pool));
        }
    }

    fn put_template(&mut self, key: &Key, content: Option<Box<str>>) -> Vec<ReconcileRequest> {
        let Some((users, found)) = self.templates.put(key, content) else {
            return Vec::new();
        };
        for user in &users {
            if let Some(pool) = self.pools.get_mut(user) {
                *pool = Arc::new(Pool::clone(pool).with_template(found.clone()));
                let pool = Arc::clone(pool);
                self.log_error_of(&pool);
            }
        }
        users.into_iter().map(ReconcileRequest::Pool).collect()
    }
}
