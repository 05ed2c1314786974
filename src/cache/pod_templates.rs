//! The PodTemplates of the cluster, which of them pools use, and what makes one unusable.

use crate::api::labels;
use crate::cache::index::{Index, ReconcileRequest};
use crate::model::Key;
use crate::model::pool::Pool;
use crate::model::pool_error::PoolError;
use crate::model::revision::Template;
use crate::model::stored;
use crate::model::stored::StoredPodTemplate;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A template to make sandboxes from, or why there is none.
type Found = Result<Arc<Template>, PoolError>;

/// PodTemplates and the pools that use them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    /// Every PodTemplate, as compact JSON of what reaches a pod: most of them may be nobody's.
    stored: HashMap<Key, Box<str>>,
    /// Those that pools name, there or not.
    used: HashMap<Key, Use>,
    /// The PodTemplate that a pool names, by pool.
    named: HashMap<Key, Key>,
    /// They have been listed: one that is not here does not exist.
    listed: bool,
}

/// A PodTemplate that pools name.
#[derive(Clone, Debug)]
struct Use {
    pools: BTreeSet<Key>,
    found: Found,
}

impl Templates {
    /// `pool` with the template that it names, and noted as a user of it.
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
            found: find(name, self.stored.get(name).map(Box::as_ref)),
        });
        user.pools.insert(pool.key.clone());
        pool.with_template(user.found.clone())
    }

    /// Whether what `pool` has for a template is what there is.
    pub(crate) fn knows_that_of(&self, pool: &Pool) -> bool {
        self.listed || pool.template_ref.is_none()
    }

    /// The pool `pool` uses no PodTemplate any more.
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

    /// Takes over the PodTemplate `key`, or that there is none. Answers the pools that use it when that changes
    /// anything for them, with what they have to use now.
    fn put(&mut self, key: &Key, content: Option<Box<str>>) -> Option<(BTreeSet<Key>, Found)> {
        if self.stored.get(key) == content.as_ref() {
            return None;
        }
        let user = self.used.get_mut(key).map(|user| {
            user.found = find(key, content.as_deref());
            (user.pools.clone(), user.found.clone())
        });
        match content {
            Some(content) => self.stored.insert(key.clone(), content),
            None => self.stored.remove(key),
        };
        user
    }
}

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

    /// After a list: PodTemplates that are not in it are gone.
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
                .for_each(|pool| pool.warn_of_fault());
        }
    }

    fn put_template(&mut self, key: &Key, content: Option<Box<str>>) -> Vec<ReconcileRequest> {
        let Some((users, found)) = self.templates.put(key, content) else {
            return Vec::new();
        };
        for user in &users {
            if let Some(pool) = self.pools.get_mut(user) {
                *pool = Arc::new(Pool::clone(pool).with_template(found.clone()));
                pool.warn_of_fault();
            }
        }
        users.into_iter().map(ReconcileRequest::Pool).collect()
    }
}

fn find(key: &Key, content: Option<&str>) -> Found {
    let content = content.ok_or_else(|| PoolError::not_found(key))?;
    let template: Value = serde_json::from_str(content)
        .map_err(|error| PoolError::invalid(key, &format!("it cannot be read: {error}")))?;
    usable(&template).map_err(|problem| PoolError::invalid(key, &problem))?;
    Ok(Arc::new(Template::new(template)))
}

/// What the schema of a Pool asks of `spec.template` and the API server does not ask of a PodTemplate.
fn usable(template: &Value) -> Result<(), String> {
    for field in ["labels", "annotations"] {
        let map = template
            .pointer(&format!("/metadata/{field}"))
            .and_then(Value::as_object);
        let ours = map.and_then(|map| map.keys().find(|key| key.starts_with(labels::PREFIX)));
        if let Some(key) = ours {
            return Err(format!(
                "template.metadata.{field} holds {key}, and keys under {} belong to the operator; remove it there",
                labels::PREFIX
            ));
        }
    }
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    if containers.is_none_or(Vec::is_empty) {
        return Err("template.spec.containers is empty; add at least one container".into());
    }
    Ok(())
}
