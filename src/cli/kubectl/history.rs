//! `rollout history`: the templates that a pool has had, out of its ControllerRevisions.

use crate::api::labels;
use crate::cli::kubectl::cluster::ClusterError;
use crate::cli::kubectl::print;
use crate::cli::kubectl::print::{Format, PrintError};
use crate::cli::kubectl::session::Session;
use crate::cli::kubectl::{pool, rollout};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::core::DynamicObject;
use serde_json::Value;
use std::io::Write as _;
use thiserror::Error;

/// Arguments of `kubectl warmpool rollout history`.
#[derive(clap::Args)]
#[command(after_help = "\
The change-cause of a revision is the annotation kubernetes.io/change-cause of the pool while it was the newest.

Examples:
  kubectl warmpool rollout history python
  kubectl annotate pool python kubernetes.io/change-cause='Python 3.14'
  kubectl warmpool rollout history python --revision=2
  kubectl warmpool rollout history python --revision=2 -o yaml")]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) target: rollout::Target,
    /// Show this revision with its template
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    revision: i64,
    /// Print the ControllerRevisions themselves
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// Why there is no history to show.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// There is no such revision.
    #[error("unable to find the specified revision")]
    NotFound,
    /// The history could not be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// It could not be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
}

/// The stored revisions of one pool, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct History(Vec<ControllerRevision>);

impl History {
    /// Those of `revisions` that `pool` controls; another pool may have had its name before.
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

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &ControllerRevision> {
        self.0.iter()
    }

    /// The revision with that number.
    pub fn find(&self, number: i64) -> Option<&ControllerRevision> {
        self.iter().rev().find(|r| r.revision == number)
    }

    /// The number of the newest revision, if that is the one with this short hash.
    pub(super) fn newest(&self, hash: &str) -> Option<i64> {
        let newest = self.0.last()?;
        let own = newest.metadata.labels.as_ref()?;
        (own.get(labels::REVISION)? == hash).then_some(newest.revision)
    }

    /// The table of numbers and change-causes, with a sentence in its place when there is none.
    pub fn table(&self) -> String {
        if self.0.is_empty() {
            return "No rollout history found.\n".into();
        }
        let mut rows = tabwriter::TabWriter::new(Vec::new()).padding(2);
        // A Vec takes everything.
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

/// Why a revision came to be, in the user's words.
pub fn change_cause(revision: &ControllerRevision) -> Option<&str> {
    let annotations = revision.metadata.annotations.as_ref()?;
    let cause = annotations.get(labels::CHANGE_CAUSE)?;
    Some(cause.as_str()).filter(|c| !c.trim().is_empty())
}

/// The pod template of a revision.
pub fn template(revision: &ControllerRevision) -> Option<&Value> {
    revision.data.as_ref()?.0.pointer("/spec/template")
}

/// A template as people read it.
pub(super) fn readable(template: Option<&Value>) -> Result<String, PrintError> {
    let yaml = serde_yaml_ng::to_string(&template.unwrap_or(&Value::Null))?;
    let lines: String = yaml.lines().map(|line| format!("  {line}\n")).collect();
    Ok(format!("Pod Template:\n{lines}"))
}

/// Prints the history, or one revision of it.
pub(super) async fn run(session: &Session, arguments: &Arguments) -> Result<(), HistoryError> {
    let pool = session.pool().await?;
    let history = History::of(&pool, session.revisions().await?);
    let selected_pools = match arguments.revision {
        0 => None,
        number => Some(history.find(number).ok_or(HistoryError::NotFound)?),
    };
    if let Some(format) = arguments.output {
        let all: Vec<_> = selected_pools.map_or_else(|| history.iter().collect(), |one| vec![one]);
        for (n, revision) in all.into_iter().enumerate() {
            let name = revision.metadata.name.as_deref().unwrap_or_default();
            let title = format!("controllerrevision.apps/{name}");
            let between = if n > 0 && format == Format::Yaml {
                "---\n"
            } else {
                ""
            };
            print::out(&format!(
                "{between}{}",
                print::document(format, revision, &title)?
            ))?;
        }
        return Ok(());
    }
    let title = print::title(&session.name);
    let text = match selected_pools {
        None => format!("{title}\n{}", history.table()),
        Some(revision) => details(&title, revision)?,
    };
    Ok(print::out(&text)?)
}

fn details(title: &str, revision: &ControllerRevision) -> Result<String, PrintError> {
    let cause = change_cause(revision).map_or_else(String::new, |c| format!("Change-Cause: {c}\n"));
    let (number, template) = (revision.revision, readable(template(revision))?);
    Ok(format!("{title} with revision #{number}\n{cause}{template}"))
}
