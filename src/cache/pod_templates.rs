//! The PodTemplates of the cluster, which of them pools use, and what makes one unusable.

use crate::api::labels;
use crate::model::Key;
use crate::model::pool::Pool;
use crate::model::pool_error::PoolError;
use crate::model::revision::Template;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A template to make sandboxes from, or why there is none.
type Found = Result<Arc<Template>, PoolError>;

/// PodTemplates and the pools that use them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    /// Every PodTemplate, as compact JSON of what reaches a pod: most of them may be nobody's.
    pub(crate) stored: HashMap<Key, Box<str>>,
    /// Those that pools name, there or not.
    used: HashMap<Key, Use>,
    /// The PodTemplate that a pool names, by pool.
    named: HashMap<Key, Key>,
    /// They have been listed: one that is not here does not exist.
    pub(crate) listed: bool,
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
    pub(crate) fn put(&mut self, key: &Key, content: Option<Box<str>>) -> Option<(BTreeSet<Key>, Found)> {
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
