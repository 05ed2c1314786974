//! The PodTemplates of the cluster and the pools that use them.

use crate::model::Key;
use crate::model::pool::Pool;
use crate::model::template_validation::{Found, template_of};
use std::collections::{BTreeSet, HashMap};

/// PodTemplates and the pools that use them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    /// Every PodTemplate, as compact JSON of what reaches a pod, because no pool may use most of them.
    pub(crate) stored: HashMap<Key, Box<str>>,
    /// The PodTemplates that pools name, whether they exist or not.
    used: HashMap<Key, Use>,
    /// The PodTemplate that a pool names, by pool.
    named: HashMap<Key, Key>,
    /// PodTemplates have been listed: a missing one does not exist.
    pub(crate) listed: bool,
}

/// A PodTemplate that pools name.
#[derive(Clone, Debug)]
struct Use {
    pools: BTreeSet<Key>,
    found: Found,
}

impl Templates {
    /// Adds the template that `pool` names, and notes the pool as its user.
    pub(crate) fn attach(&mut self, pool: Pool) -> Pool {
        if self.named.get(&pool.key) != pool.template_ref.as_ref() {
            self.detach(&pool.key);
        }
        let Some(name) = pool.template_ref.clone() else {
            return pool;
        };
        self.named.insert(pool.key.clone(), name.clone());
        let user = self.used.entry(name).or_insert_with_key(|name| Use {
            pools: BTreeSet::new(),
            found: template_of(name, self.stored.get(name).map(Box::as_ref)),
        });
        user.pools.insert(pool.key.clone());
        pool.with_template(user.found.clone())
    }

    /// Whether the template or error of `pool` is final, and not only unknown before the first list.
    pub(crate) fn knows_that_of(&self, pool: &Pool) -> bool {
        self.listed || pool.template_ref.is_none()
    }

    /// `pool` no longer uses a PodTemplate.
    pub(crate) fn detach(&mut self, pool: &Key) {
        let Some(name) = self.named.remove(pool) else {
            return;
        };
        if let Some(user) = self.used.get_mut(&name) {
            user.pools.remove(pool);
            if user.pools.is_empty() {
                self.used.remove(&name);
            }
        }
    }

    /// Stores PodTemplate `key`, or that it is gone. Returns the pools that use it and the new template when it
    /// changed.
    pub(crate) fn put(&mut self, key: &Key, content: Option<Box<str>>) -> Option<(BTreeSet<Key>, Found)> {
        if self.stored.get(key) == content.as_ref() {
            return None;
        }
        let user = self.used.get_mut(key).map(|user| {
            user.found = template_of(key, content.as_deref());
            (user.pools.clone(), user.found.clone())
        });
        match content {
            Some(content) => self.stored.insert(key.clone(), content),
            None => self.stored.remove(key),
        };
        user
    }
}
