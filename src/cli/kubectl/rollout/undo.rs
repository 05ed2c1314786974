//! `rollout undo`: writes the template of an earlier revision into the pool.

use crate::api::labels;
use crate::cli::kubectl::cluster::ClusterError;
use crate::cli::kubectl::dry_run::DryRun;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::pool_client::PoolClient;
use crate::cli::kubectl::pool_target::PoolTarget;
use crate::cli::kubectl::print::{self, Format, PrintError};
use crate::cli::kubectl::rollout::history::{self, History};
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use crate::model::revision::Template;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::Patch;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use thiserror::Error;

/// How many times the patch is sent when it conflicts with a write of the pool's status.
const MAX_ATTEMPTS: usize = 5;

/// Arguments of `kubectl warmpool rollout undo`.
#[derive(clap::Args)]
#[command(after_help = "\
Writes only the template and the change-cause of the pool. Replicas, strategy and all other fields stay unchanged.

Examples:
  kubectl warmpool rollout undo python
  kubectl warmpool rollout undo python --to-revision=3
  kubectl warmpool rollout undo python --dry-run=client")]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) pools: PoolTarget,
    /// Revision to roll back to; 0 is the revision before the current template
    #[arg(long, value_name = "N", default_value_t = 0)]
    to_revision: i64,
    /// Write nothing: client prints the template, server has the API server validate the write
    #[arg(long, value_enum, default_value_t = DryRun::None)]
    dry_run: DryRun,
    /// Print the pool in this format [default: one line that says what changed]
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// The pool was not rolled back.
#[derive(Debug, Error)]
pub enum UndoError {
    /// No revision has this number.
    #[error("unable to find specified revision {0} in history")]
    NotFound(i64),
    /// Every stored revision has the current template. Holds the name of the pool.
    #[error("no rollout history found for pool {0:?}")]
    NoHistory(String),
    /// The pool is paused. Holds the command that resumes it.
    #[error("you cannot rollback a paused pool; resume it first with '{0}' and try again")]
    Paused(String),
    /// The pool has no inline template.
    #[error(
        "pool {pool:?} takes its template from the PodTemplate {template:?} (spec.templateRef); \
         write the earlier template back into that PodTemplate instead"
    )]
    TemplateRef {
        /// Name of the pool.
        pool: String,
        /// Name of the PodTemplate.
        template: String,
    },
    /// Another client changed the spec, or replaced the pool. Holds the name of the pool.
    #[error("pool {0:?} was changed at the same time; check its spec and try again")]
    Changed(String),
    /// As for every verb.
    #[error(transparent)]
    Verb(VerbError),
}

wraps_verb_error!(UndoError);

/// The revision to roll back to. `to_revision` is its number; 0 selects the newest revision with another template.
///
/// # Errors
/// [`UndoError::NotFound`] and [`UndoError::NoHistory`].
pub fn choose<'a>(
    pool: &DynamicObject,
    history: &'a History,
    to_revision: i64,
) -> Result<&'a ControllerRevision, UndoError> {
    if to_revision == 0 {
        // A template that was just written is not stored as a revision yet, so the last but one may be the wrong
        // revision.
        let mut newest_first = history.iter().rev();
        newest_first
            .find(|revision| !is_current(pool, revision))
            .ok_or_else(|| UndoError::NoHistory(pool::name(pool).into()))
    } else {
        history.find(to_revision).ok_or(UndoError::NotFound(to_revision))
    }
}

/// Whether the revision has the current template of the pool, in canonical form.
pub fn is_current(pool: &DynamicObject, revision: &ControllerRevision) -> bool {
    let canonical = |template: Option<&Value>| Template::new(template.cloned().unwrap_or_default()).canonical;
    canonical(pool::at(pool, "/spec/template")) == canonical(history::template(revision))
}

/// The JSON Patch that writes the template and the change-cause of `revision` into `pool`. It tests the UID and the
/// resourceVersion, so it fails when the pool has changed.
pub fn patch(pool: &DynamicObject, revision: &ControllerRevision) -> Value {
    let metadata = &pool.metadata;
    let cause = history::change_cause(revision);
    let annotations = metadata.annotations.as_ref().filter(|a| !a.is_empty());
    let has_cause = annotations.is_some_and(|a| a.contains_key(labels::CHANGE_CAUSE));
    let at = format!(
        "/metadata/annotations/{}",
        labels::CHANGE_CAUSE.replace('/', "~1")
    );
    let annotation = match (cause, annotations) {
        (Some(cause), Some(_)) => Some(json!({"op": "add", "path": at, "value": cause})),
        (Some(cause), None) => {
            let all = json!({(labels::CHANGE_CAUSE): cause});
            Some(json!({"op": "add", "path": "/metadata/annotations", "value": all}))
        }
        (None, _) => has_cause.then(|| json!({"op": "remove", "path": at})),
    };
    let mut operations = vec![
        json!({"op": "test", "path": "/metadata/uid", "value": metadata.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": metadata.resource_version}),
        json!({"op": "replace", "path": "/spec/template", "value": history::template(revision)}),
    ];
    operations.extend(annotation);
    Value::Array(operations)
}

/// What an undo does.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Writes nothing and prints this.
    Print(String),
    /// Sends this JSON Patch.
    Write(Value),
}

/// Decides from the pool and its history what the undo does.
///
/// # Errors
/// [`UndoError::TemplateRef`], [`UndoError::NotFound`], [`UndoError::NoHistory`] and [`UndoError::Paused`]; `Print`
/// when the template has no YAML form.
pub fn decide(
    pool: &DynamicObject,
    history: &History,
    to_revision: i64,
    dry_run: DryRun,
) -> Result<Decision, UndoError> {
    if let Some(template) = pool::template_ref(pool) {
        return Err(UndoError::TemplateRef {
            pool: pool::name(pool).into(),
            template: template.into(),
        });
    }
    let revision = choose(pool, history, to_revision)?;
    let number = revision.revision;
    if dry_run == DryRun::Client {
        let template = history::template_block(history::template(revision))?;
        let outcome = format!("will roll back to revision {number} (dry run)\n{template}");
        Ok(Decision::Print(outcome.trim_end().into()))
    } else if pool::is_paused(pool) {
        Err(UndoError::Paused(pool::rollout_command("resume", pool)))
    } else if is_current(pool, revision) {
        let outcome = format!("skipped rollback (current template already matches revision {number})");
        Ok(Decision::Print(outcome + dry_run.suffix()))
    } else {
        Ok(Decision::Write(patch(pool, revision)))
    }
}

/// Rolls the pool back.
pub(super) async fn run(client: &PoolClient, arguments: &Arguments) -> Result<(), UndoError> {
    let mut pool = client.pool().await?;
    warn_about_apply(&pool);
    for _ in 0..MAX_ATTEMPTS {
        let history = History::of(&pool, client.revisions().await?);
        let operations = match decide(&pool, &history, arguments.to_revision, arguments.dry_run)? {
            Decision::Print(outcome) => return Ok(print::done(arguments.output, &pool, &outcome)?),
            Decision::Write(operations) => operations,
        };
        let patch = Patch::Json(serde_json::from_value(operations).map_err(PrintError::from)?);
        match client.patch(&patch, arguments.dry_run == DryRun::Server).await {
            Ok(now) => {
                let outcome = format!("rolled back{}", arguments.dry_run.suffix());
                return Ok(print::done(arguments.output, &now, &outcome)?);
            }
            Err(rejection) => pool = read_for_retry(client, &pool, rejection).await?,
        }
    }
    Err(UndoError::Changed(client.name.clone()))
}

/// How a pool differs from an earlier version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The resourceVersion is the same.
    None,
    /// The status or the metadata changed.
    OutsideSpec,
    /// The spec changed, or it is another pool of the same name.
    Spec,
}

/// Compares a pool with an earlier version.
pub fn difference(before: &DynamicObject, now: &DynamicObject) -> Difference {
    let (was, is) = (&before.metadata, &now.metadata);
    if was.uid != is.uid || was.generation != is.generation {
        Difference::Spec
    } else if was.resource_version != is.resource_version {
        Difference::OutsideSpec
    } else {
        Difference::None
    }
}

/// Reads the pool again after the API server rejected the patch. Returns `rejection` when the pool is unchanged,
/// because then the tests of the patch were not the cause.
async fn read_for_retry(
    client: &PoolClient,
    before: &DynamicObject,
    rejection: ClusterError,
) -> Result<DynamicObject, UndoError> {
    let now = client.pool().await?;
    match difference(before, &now) {
        Difference::None => Err(rejection.into()),
        Difference::OutsideSpec => Ok(now),
        Difference::Spec => Err(UndoError::Changed(client.name.clone())),
    }
}

fn warn_about_apply(pool: &DynamicObject) {
    let annotations = pool.metadata.annotations.as_ref();
    if annotations.is_some_and(|a| a.contains_key(labels::LAST_APPLIED)) {
        eprintln!(
            "Warning: pool {} was written with 'kubectl apply'. The rollback changes neither its annotation {} nor \
             your file, so the next 'kubectl apply' may restore the newer template; update the file.",
            pool::name(pool),
            labels::LAST_APPLIED
        );
    }
}
