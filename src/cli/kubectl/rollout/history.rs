//! `rollout history`: lists a pool's revisions from its ControllerRevisions.

use crate::api::labels;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::pool_client::PoolClient;
use crate::cli::kubectl::pool_target::PoolTarget;
use crate::cli::kubectl::print::{self, Format, PrintError};
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::core::DynamicObject;
use serde_json::Value;
use std::io::Write as _;
use thiserror::Error;

/// Arguments of `kubectl warmpool rollout history`.
#[derive(clap::Args)]
#[command(after_help = "\
The change-cause of a revision is the annotation kubernetes.io/change-cause that the pool had while the revision was \
the newest.

Examples:
  kubectl warmpool rollout history python
  kubectl annotate pool python kubernetes.io/change-cause='Python 3.14'
  kubectl warmpool rollout history python --revision=2
  kubectl warmpool rollout history python --revision=2 -o yaml")]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) pools: PoolTarget,
    /// Show the template of this revision; 0 lists all revisions
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    revision: i64,
    /// Print the ControllerRevisions in this format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// The history was not printed.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// No revision has the number in `--revision`.
    #[error("unable to find the specified revision")]
    NotFound,
    /// As for every verb.
    #[error(transparent)]
    Verb(VerbError),
}

wraps_verb_error!(HistoryError);

/// The stored revisions of one pool, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct History(Vec<ControllerRevision>);

impl History {
    /// Keeps the revisions that `pool` controls. Others may belong to a deleted pool of the same name.
    pub fn of(pool: &DynamicObject, revisions: Vec<ControllerRevision>) -> Self {
        let controls = |revision: &&ControllerRevision| {
            let owners = revision.metadata.owner_references.iter().flatten();
            let mut controllers = owners.filter(|o| o.controller == Some(true));
            controllers.any(|o| o.uid == pool::uid(pool))
        };
        let mut own: Vec<_> = revisions.iter().filter(controls).cloned().collect();
        own.sort_by_key(|r| r.revision);
        Self(own)
    }

    /// The revisions, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &ControllerRevision> {
        self.0.iter()
    }

    /// The revision with that number.
    pub fn find(&self, number: i64) -> Option<&ControllerRevision> {
        self.iter().rev().find(|r| r.revision == number)
    }

    /// The number of the newest revision; `None` when its hash is not `hash`.
    pub(super) fn newest(&self, hash: &str) -> Option<i64> {
        let newest = self.0.last()?;
        let labels = newest.metadata.labels.as_ref()?;
        (labels.get(labels::REVISION)? == hash).then_some(newest.revision)
    }

    /// A table of numbers and change-causes; a sentence when the history is empty.
    pub fn table(&self) -> String {
        if self.0.is_empty() {
            return "No rollout history found.\n".into();
        }
        let mut rows = tabwriter::TabWriter::new(Vec::new()).padding(2);
        // Writing to a Vec cannot fail.
        _ = writeln!(rows, "REVISION\tCHANGE-CAUSE");
        for revision in self.iter() {
            let words: Vec<_> = change_cause(revision)
                .unwrap_or("<none>")
                .split_whitespace()
                .collect();
            _ = writeln!(rows, "{}\t{}", revision.revision, words.join(" "));
        }
        String::from_utf8_lossy(&rows.into_inner().unwrap_or_default()).into_owned()
    }
}

/// The change-cause that the user wrote; `None` when it is blank.
pub fn change_cause(revision: &ControllerRevision) -> Option<&str> {
    let annotations = revision.metadata.annotations.as_ref()?;
    let cause = annotations.get(labels::CHANGE_CAUSE)?;
    Some(cause.as_str()).filter(|c| !c.trim().is_empty())
}

/// The pod template of a revision.
pub fn template(revision: &ControllerRevision) -> Option<&Value> {
    revision.data.as_ref()?.0.pointer("/spec/template")
}

/// The template as an indented YAML block.
pub(super) fn template_block(template: Option<&Value>) -> Result<String, PrintError> {
    let yaml = serde_yaml_ng::to_string(&template.unwrap_or(&Value::Null))?;
    let lines: String = yaml.lines().map(|line| format!("  {line}\n")).collect();
    Ok(format!("Pod Template:\n{lines}"))
}

/// Prints the history, or one revision.
pub(super) async fn run(client: &PoolClient, arguments: &Arguments) -> Result<(), HistoryError> {
    let pool = client.pool().await?;
    let history = History::of(&pool, client.revisions().await?);
    let selected = match arguments.revision {
        0 => None,
        number => Some(history.find(number).ok_or(HistoryError::NotFound)?),
    };
    if let Some(format) = arguments.output {
        let all: Vec<_> = selected.map_or_else(|| history.iter().collect(), |revision| vec![revision]);
        for revision in all {
            let name = revision.metadata.name.as_deref().unwrap_or_default();
            let title = format!("controllerrevision.apps/{name}");
            print::out(&print::document(format, revision, &title)?)?;
        }
        return Ok(());
    }
    let title = print::title(&client.name);
    let text = match selected {
        None => format!("{title}\n{}", history.table()),
        Some(revision) => details(&title, revision)?,
    };
    Ok(print::out(&text)?)
}

fn details(title: &str, revision: &ControllerRevision) -> Result<String, PrintError> {
    let cause = change_cause(revision).map_or_else(String::new, |c| format!("Change-Cause: {c}\n"));
    let (number, template) = (revision.revision, template_block(template(revision))?);
    Ok(format!("{title} with revision #{number}\n{cause}{template}"))
}
