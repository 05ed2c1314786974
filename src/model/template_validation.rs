//! Which PodTemplates a pool can use, and what makes one unusable.

use crate::api::labels;
use crate::model::Key;
use crate::model::pool_error::PoolError;
use crate::model::revision::Template;
use serde_json::Value;
use std::sync::Arc;

/// The template of a PodTemplate, or why a pool cannot use it.
pub(crate) type Found = Result<Arc<Template>, PoolError>;

/// The template of PodTemplate `key`, of which `content` is the JSON; `None`: it does not exist.
pub(crate) fn template_of(key: &Key, content: Option<&str>) -> Found {
    let content = content.ok_or_else(|| PoolError::not_found(key))?;
    let template: Value = serde_json::from_str(content)
        .map_err(|error| PoolError::invalid(key, &format!("it cannot be read: {error}")))?;
    usable(&template).map_err(|problem| PoolError::invalid(key, &problem))?;
    Ok(Arc::new(Template::new(template)))
}

/// Checks what the schema of a Pool requires of `spec.template` and the API server does not require of a PodTemplate.
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
