//! `rollout pause`, `resume` and `restart`: one small change of the pool each.

use crate::api::conditions::whole_seconds;
use crate::api::labels;
use crate::cli::kubectl::cluster::ClusterError;
use crate::cli::kubectl::print;
use crate::cli::kubectl::print::{Format, PrintError};
use crate::cli::kubectl::session::Session;
use crate::cli::kubectl::{pool, rollout};
use jiff::Timestamp;
use kube::api::Patch;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use thiserror::Error;

/// Arguments of `kubectl warmpool rollout pause`, `resume` and `restart`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) target: rollout::Target,
    /// Print the pool instead of a line
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// One of the small changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Stop the rollout.
    Pause,
    /// Let it go on.
    Resume,
    /// Roll the template out anew, with this moment written in it.
    Restart(Timestamp),
}

/// Why the pool is not changed.
#[derive(Debug, Error)]
pub enum EditError {
    /// A pause of a paused pool.
    #[error("pools.warmpool.dev {0:?} is already paused")]
    Paused(String),
    /// A resume of a pool that is not paused.
    #[error("pools.warmpool.dev {0:?} is not paused")]
    NotPaused(String),
    /// A restart of a paused pool would not begin.
    #[error("pools.warmpool.dev {pool:?} can't restart paused pool (run '{command}' first)")]
    RestartPaused {
        /// Name of the pool.
        pool: String,
        /// The command to type.
        command: String,
    },
    /// The template says already that it was restarted in this second.
    #[error(
        "failed to create patch for {0}: if restart has already been triggered within the past second, \
         please wait before attempting to trigger another"
    )]
    TooSoon(String),
    /// The pool has no template of its own.
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
    /// A request failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The outcome could not be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
}

/// The merge patch of a change.
///
/// # Errors
/// As [`EditError`] says, requests left aside.
pub fn patch(edit: Edit, pool: &DynamicObject) -> Result<Value, EditError> {
    let (name, paused) = (pool::name(pool).to_string(), pool::is_paused(pool));
    let spec = match edit {
        Edit::Pause if paused => return Err(EditError::Paused(name)),
        Edit::Resume if !paused => return Err(EditError::NotPaused(name)),
        Edit::Pause | Edit::Resume => json!({"updateStrategy": {"paused": !paused}}),
        Edit::Restart(now) => json!({"template": restarted(pool, now)?}),
    };
    // The UID makes the server refuse a change of another pool that took the name meanwhile.
    Ok(json!({"metadata": {"uid": pool::uid(pool)}, "spec": spec}))
}

fn restarted(pool: &DynamicObject, now: Timestamp) -> Result<Value, EditError> {
    let name = pool::name(pool).to_string();
    if let Some(template) = pool::template_ref(pool) {
        let template = template.into();
        return Err(EditError::TemplateRef { pool: name, template });
    }
    if pool::is_paused(pool) {
        let command = pool::command("resume", pool);
        return Err(EditError::RestartPaused { pool: name, command });
    }
    let moment = whole_seconds(now).to_string();
    let before =
        pool::at(pool, "/spec/template/metadata/annotations").and_then(|a| a.get(labels::RESTARTED_AT));
    if before.is_some_and(|b| *b == moment) {
        return Err(EditError::TooSoon(name));
    }
    Ok(json!({"metadata": {"annotations": {(labels::RESTARTED_AT): moment}}}))
}

/// Changes the pool.
pub(super) async fn run(session: &Session, arguments: &Arguments, edit: Edit) -> Result<(), EditError> {
    let patch = patch(edit, &session.pool().await?)?;
    let now = session.patch(&Patch::Merge(patch), false).await?;
    let done = match edit {
        Edit::Pause => "paused",
        Edit::Resume => "resumed",
        Edit::Restart(_) => "restarted",
    };
    Ok(print::done(arguments.output, &now, done)?)
}
