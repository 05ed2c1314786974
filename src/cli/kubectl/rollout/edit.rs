//! Sends the merge patch of `rollout pause`, `resume` and `restart`.

use crate::api::labels;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::pool_client::PoolClient;
use crate::cli::kubectl::pool_target::PoolTarget;
use crate::cli::kubectl::print::{self, Format};
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use kube::api::Patch;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use thiserror::Error;

/// Arguments of `kubectl warmpool rollout pause`, `resume` and `restart`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) pools: PoolTarget,
    /// Print the pool in this format [default: one line that says what changed]
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// The pool was not changed.
#[derive(Debug, Error)]
pub enum EditError {
    /// The pool to pause is paused.
    #[error("pools.warmpool.dev {0:?} is already paused")]
    Paused(String),
    /// The pool to resume is not paused.
    #[error("pools.warmpool.dev {0:?} is not paused")]
    NotPaused(String),
    /// The pool to restart is paused, so the restart would not begin.
    #[error("pools.warmpool.dev {pool:?} can't restart paused pool (run '{command}' first)")]
    RestartPaused {
        /// Name of the pool.
        pool: String,
        /// The command that resumes the pool.
        command: String,
    },
    /// The pool was restarted within the same second, so the template would not change.
    #[error(
        "failed to create patch for {0}: if restart has already been triggered within the past second, \
         please wait before attempting to trigger another"
    )]
    TooSoon(String),
    /// The pool to restart has no inline template.
    #[error(
        "pool {pool:?} takes its template from the PodTemplate {template:?} (spec.templateRef); to restart \
         it, set the annotation {} of that PodTemplate's template",
        labels::RESTARTED_AT
    )]
    TemplateRef {
        /// Name of the pool.
        pool: String,
        /// Name of the PodTemplate.
        template: String,
    },
    /// As for every verb.
    #[error(transparent)]
    Verb(VerbError),
}

wraps_verb_error!(EditError);

/// The merge patch that writes `spec` into `pool`. The API server rejects it when another pool has taken the name,
/// because `metadata.uid` is immutable.
pub(super) fn spec_patch(pool: &DynamicObject, spec: &Value) -> Value {
    json!({"metadata": {"uid": pool::uid(pool)}, "spec": spec})
}

/// Reads the pool, sends the patch that `patch` makes of it, and prints `done`, the participle of the verb.
pub(super) async fn run(
    client: &PoolClient,
    arguments: &Arguments,
    patch: impl FnOnce(&DynamicObject) -> Result<Value, EditError>,
    done: &str,
) -> Result<(), EditError> {
    let patch = patch(&client.pool().await?)?;
    let now = client.patch(&Patch::Merge(patch), false).await?;
    Ok(print::done(arguments.output, &now, done)?)
}
