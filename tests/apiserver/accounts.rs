//! Creates service accounts without any rights.

use crate::api::ACCOUNTS;
use crate::lab::Lab;
use serde_json::json;
use std::path::PathBuf;

/// A new account without any right, and a kubeconfig of it.
pub fn account(lab: &Lab, namespace: &str, name: &str) -> Result<PathBuf, String> {
    lab.api
        .create(ACCOUNTS, namespace, &json!({"metadata": {"name": name}}))?;
    let path = lab.cluster.dir.join(format!("{name}.kubeconfig"));
    lab.cluster
        .tool(&["token", namespace, name, "--out", &path.to_string_lossy()])?;
    Ok(path)
}
