//! What roles allow, and accounts that have them.

use crate::api::ACCOUNTS;
use crate::cluster::repository;
use crate::lab::Lab;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// The rules of a role of `config/rbac`.
pub fn granted(file: &str) -> Result<Vec<Value>, String> {
    let path = repository().join("config/rbac").join(file);
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let role: Value = serde_yaml_ng::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let rules = role["rules"].as_array().cloned();
    rules.ok_or_else(|| format!("{} has no rules", path.display()))
}

/// A new account without any right, and a kubeconfig of it.
pub fn account(lab: &Lab, namespace: &str, name: &str) -> Result<PathBuf, String> {
    lab.api
        .create(ACCOUNTS, namespace, &json!({"metadata": {"name": name}}))?;
    let path = lab.cluster.dir.join(format!("{name}.kubeconfig"));
    lab.cluster
        .tool(&["token", namespace, name, "--out", &path.to_string_lossy()])?;
    Ok(path)
}
