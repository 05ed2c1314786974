//! `rollout restart`: makes a new revision by writing the time into the template.

use crate::api::conditions::whole_seconds;
use crate::api::labels;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::pool_client::PoolClient;
use crate::cli::kubectl::rollout::edit::{self, Arguments, EditError};
use jiff::Timestamp;
use kube::core::DynamicObject;
use serde_json::{Value, json};

/// The merge patch that restarts `pool` at `now`.
///
/// # Errors
/// [`EditError::TemplateRef`], [`EditError::RestartPaused`] and [`EditError::TooSoon`].
pub fn patch(pool: &DynamicObject, now: Timestamp) -> Result<Value, EditError> {
    let name = pool::name(pool).to_string();
    if let Some(template) = pool::template_ref(pool) {
        let template = template.into();
        return Err(EditError::TemplateRef { pool: name, template });
    }
    if pool::is_paused(pool) {
        let command = pool::rollout_command("resume", pool);
        return Err(EditError::RestartPaused { pool: name, command });
    }
    let time = whole_seconds(now).to_string();
    let annotations = pool::at(pool, "/spec/template/metadata/annotations");
    let previous = annotations.and_then(|a| a.get(labels::RESTARTED_AT));
    if previous.is_some_and(|previous| *previous == time) {
        return Err(EditError::TooSoon(name));
    }
    let template = json!({"metadata": {"annotations": {(labels::RESTARTED_AT): time}}});
    Ok(edit::spec_patch(pool, &json!({"template": template})))
}

/// Restarts the pool.
pub(super) async fn run(client: &PoolClient, arguments: &Arguments) -> Result<(), EditError> {
    let patch = |pool: &DynamicObject| patch(pool, Timestamp::now());
    edit::run(client, arguments, patch, "restarted").await
}
