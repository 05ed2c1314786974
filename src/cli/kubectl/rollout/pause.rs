//! `rollout pause`: sets `spec.updateStrategy.paused` to true.

use crate::cli::kubectl::pool;
use crate::cli::kubectl::pool_client::PoolClient;
use crate::cli::kubectl::rollout::edit::{self, Arguments, EditError};
use kube::core::DynamicObject;
use serde_json::{Value, json};

/// The merge patch that pauses `pool`.
///
/// # Errors
/// [`EditError::Paused`].
pub fn patch(pool: &DynamicObject) -> Result<Value, EditError> {
    if pool::is_paused(pool) {
        return Err(EditError::Paused(pool::name(pool).into()));
    }
    Ok(edit::spec_patch(
        pool,
        &json!({"updateStrategy": {"paused": true}}),
    ))
}

/// Pauses the rollout.
pub(super) async fn run(client: &PoolClient, arguments: &Arguments) -> Result<(), EditError> {
    edit::run(client, arguments, patch, "paused").await
}
