//! `rollout undo`: writes the template of an earlier revision back into the pool.

use crate::api::labels;
use crate::cli::kubectl::cluster::ClusterError;
use crate::cli::kubectl::history;
use crate::cli::kubectl::history::History;
use crate::cli::kubectl::print;
use crate::cli::kubectl::print::{Format, PrintError};
use crate::cli::kubectl::session::Session;
use crate::cli::kubectl::{pool, rollout};
use crate::model::revision::Template;
use clap::ValueEnum;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::Patch;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use thiserror::Error;

/// How often the write is tried while only the pool's status moves under it.
const TRIES: usize = 5;

/// Arguments of `kubectl warmpool rollout undo`.
#[derive(clap::Args)]
#[command(after_help = "\
Only the template and its change-cause are written back; replicas, strategy and all else stay as they are.

Examples:
  kubectl warmpool rollout undo python
  kubectl warmpool rollout undo python --to-revision=3
  kubectl warmpool rollout undo python --dry-run=client")]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) target: rollout::Target,
    /// The revision to go back to; 0 is the one before the present template
    #[arg(long, value_name = "N", default_value_t = 0)]
    to_revision: i64,
    /// Say what would be done: client asks for no write, server has the API server check it without storing it
    #[arg(long, value_enum, default_value_t = DryRun::None)]
    dry_run: DryRun,
    /// Print the pool instead of a line
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// Whether an undo is only tried, as in kubectl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Write
    None,
    /// Only print what would be written
    Client,
    /// Have it checked, not stored
    Server,
}

impl DryRun {
    /// What is said after the outcome.
    fn mark(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}

/// Why nothing is rolled back.
#[derive(Debug, Error)]
pub enum UndoError {
    /// There is no revision with this number.
    #[error("unable to find specified revision {0} in history")]
    NotFound(i64),
    /// The pool has had no other template.
    #[error("no rollout history found for pool {0:?}")]
    NoHistory(String),
    /// The pool is paused.
    #[error("you cannot rollback a paused pool; resume it first with '{0}' and try again")]
    Paused(String),
    /// The pool has no template of its own.
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
    /// The pool's spec was changed at the same time.
    #[error("pool {0:?} was changed at the same time; look at it and try again")]
    Changed(String),
    /// A request failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The outcome could not be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
}

/// The revision to go back to.
///
/// # Errors
/// [`UndoError::NotFound`] and [`UndoError::NoHistory`].
pub fn choose<'a>(
    pool: &DynamicObject,
    history: &'a History,
    to_revision: i64,
) -> Result<&'a ControllerRevision, UndoError> {
    if to_revision == 0 {
        // Not simply the last but one: a template written a moment ago is not stored as a revision yet.
        let mut newest_first = history.iter().rev();
        newest_first
            .find(|r| !is_present(pool, r))
            .ok_or_else(|| UndoError::NoHistory(pool::name(pool).into()))
    } else {
        history.find(to_revision).ok_or(UndoError::NotFound(to_revision))
    }
}

/// Whether the pool's present template means the same pod as that of the revision.
pub fn is_present(pool: &DynamicObject, revision: &ControllerRevision) -> bool {
    let canonical = |template: Option<&Value>| Template::new(template.cloned().unwrap_or_default()).canonical;
    canonical(pool::at(pool, "/spec/template")) == canonical(history::template(revision))
}

/// The JSON Patch that brings the template of `revision` back, with why it came to be. It tests that the pool
/// is still the one that was read.
pub fn patch(pool: &DynamicObject, revision: &ControllerRevision) -> Value {
    let metadata = &pool.metadata;
    let cause = history::change_cause(revision);
    let annotations = metadata.annotations.as_ref().filter(|a| !a.is_empty());
    let has_cause = annotations.is_some_and(|a| a.contains_key(labels::CHANGE_CAUSE));
    let at = format!(
        "/metadata/annotations/{}",
        labels::CHANGE_CAUSE.replace('/', "~1")
    );
    let note = match (cause, annotations) {
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
    operations.extend(note);
    Value::Array(operations)
}

/// What to do about an undo.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Nothing is written; what to say.
    Say(String),
    /// This JSON Patch is sent.
    Write(Value),
}

/// Decides, from the pool and its history, what an undo comes to.
///
/// # Errors
/// As [`UndoError`] says, requests left aside.
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
        let template = history::readable(history::template(revision))?;
        let what = format!("will roll back to revision {number} (dry run)\n{template}");
        Ok(Decision::Say(what.trim_end().into()))
    } else if pool::is_paused(pool) {
        Err(UndoError::Paused(pool::command("resume", pool)))
    } else if is_present(pool, revision) {
        let what = format!("skipped rollback (current template already matches revision {number})");
        Ok(Decision::Say(what + dry_run.mark()))
    } else {
        Ok(Decision::Write(patch(pool, revision)))
    }
}

/// Rolls back.
pub(super) async fn run(session: &Session, arguments: &Arguments) -> Result<(), UndoError> {
    let mut pool = session.pool().await?;
    warn_of_apply(&pool);
    for _ in 0..TRIES {
        let history = History::of(&pool, session.revisions().await?);
        let operations = match decide(&pool, &history, arguments.to_revision, arguments.dry_run)? {
            Decision::Say(what) => return Ok(print::done(arguments.output, &pool, &what)?),
            Decision::Write(operations) => operations,
        };
        let patch = Patch::Json(serde_json::from_value(operations).map_err(PrintError::from)?);
        match session.patch(&patch, arguments.dry_run == DryRun::Server).await {
            Ok(now) => {
                let what = format!("rolled back{}", arguments.dry_run.mark());
                return Ok(print::done(arguments.output, &now, &what)?);
            }
            Err(rejection) => pool = read_again(session, &pool, rejection).await?,
        }
    }
    Err(UndoError::Changed(session.name.clone()))
}

/// What has become of a pool since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// It is the same.
    Same,
    /// Its spec is the same; its status, say, is not.
    Touched,
    /// Its spec is another, or it is another pool.
    Changed,
}

/// Compares a pool with what it was.
pub fn since(before: &DynamicObject, now: &DynamicObject) -> Since {
    let (was, is) = (&before.metadata, &now.metadata);
    if was.uid != is.uid || was.generation != is.generation {
        Since::Changed
    } else if was.resource_version != is.resource_version {
        Since::Touched
    } else {
        Since::Same
    }
}

/// The pool to try again with after a refusal. A refusal of the same pool was not for its tests.
async fn read_again(
    session: &Session,
    before: &DynamicObject,
    rejection: ClusterError,
) -> Result<DynamicObject, UndoError> {
    let now = session.pool().await?;
    match since(before, &now) {
        Since::Same => Err(rejection.into()),
        Since::Touched => Ok(now),
        Since::Changed => Err(UndoError::Changed(session.name.clone())),
    }
}

fn warn_of_apply(pool: &DynamicObject) {
    let annotations = pool.metadata.annotations.as_ref();
    if annotations.is_some_and(|a| a.contains_key(labels::LAST_APPLIED)) {
        eprintln!(
            "Warning: pool {} was written with 'kubectl apply'. Rolling back does not change its annotation \
             {}, nor your file: the next 'kubectl apply' may bring the template back that is rolled back now.",
            pool::name(pool),
            labels::LAST_APPLIED
        );
    }
}
