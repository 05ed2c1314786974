//! Reads the rights that the roles in `config/rbac` grant.

use crate::cluster::repository;
use serde_json::Value;
use std::fs;

/// A verb, and the resource with its API group.
pub type Right = (String, String);

/// The rules of a role of `config/rbac`.
pub fn granted(file: &str) -> Result<Vec<Value>, String> {
    let path = repository().join("config/rbac").join(file);
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let role: Value = serde_yaml_ng::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let rules = role["rules"].as_array().cloned();
    rules.ok_or_else(|| format!("{} has no rules", path.display()))
}

/// The rights that a rule grants.
pub fn rights(rule: &Value) -> Vec<Right> {
    let words = |field: &str| -> Vec<String> {
        let words = rule[field].as_array().into_iter().flatten();
        words.filter_map(|word| word.as_str().map(Into::into)).collect()
    };
    let mut all = Vec::new();
    for group in words("apiGroups") {
        for resource in words("resources") {
            for verb in words("verbs") {
                all.push((verb, format!("{resource}.{group}")));
            }
        }
    }
    all
}
