//! Prints objects, outcomes and notes as kubectl does.

use crate::cli::kubectl::cluster::FROM_SERVER;
use clap::ValueEnum;
use kube::Resource;
use kube::core::DynamicObject;
use serde::Serialize;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// An output format, as in kubectl's `-o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The whole object as JSON
    Json,
    /// The whole object as YAML
    Yaml,
    /// Kind and name
    Name,
}

/// An output format of a verb that shows something, as in `kubectl get -o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// The table with more rows or columns
    Wide,
    /// Kind and name of each object
    Name,
}

/// An output format for programs alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Data {
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// The output format of a verb that deletes objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NameOnly {
    /// Kind and name of each object
    Name,
}

/// Whether a YAML document was printed: another begins with a separator.
static HAS_YAML: AtomicBool = AtomicBool::new(false);

/// The output could not be printed.
#[derive(Debug, Error)]
pub enum PrintError {
    /// Standard output is closed or full.
    #[error("cannot write the output: {0}")]
    Write(#[from] std::io::Error),
    /// The object has no JSON form.
    #[error("cannot write the object as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The object has no YAML form.
    #[error("cannot write the object as YAML: {0}")]
    Yaml(#[from] serde_yaml_ng::Error),
}

/// Writes to standard output and flushes, so that a program that reads the pipe sees each line at once.
pub(crate) fn out(text: &str) -> Result<(), PrintError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a line to standard error. Ignores a closed terminal, because the caller may still have to delete a claim.
pub(super) fn note(line: &str) {
    _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes an error to standard error. Like kubectl, one of the API server without a prefix.
pub(super) fn error(message: &str) {
    let prefix = if message.starts_with(FROM_SERVER) {
        ""
    } else {
        "error: "
    };
    note(&format!("{prefix}{message}"));
}

/// A document for programs.
pub(crate) fn data(format: Data, value: &impl Serialize) -> Result<String, PrintError> {
    Ok(match format {
        Data::Json => serde_json::to_string_pretty(value)? + "\n",
        Data::Yaml => {
            let is_first = !HAS_YAML.swap(true, Ordering::Relaxed);
            let separator = if is_first { "" } else { "---\n" };
            format!("{separator}{}", serde_yaml_ng::to_string(value)?)
        }
    })
}

/// What a verb shows: `report` for programs, `names` alone, or `text`, which takes whether the output is wide.
pub(super) fn view(
    format: Option<View>,
    report: &impl Serialize,
    names: impl Iterator<Item = String>,
    text: impl FnOnce(bool) -> String,
) -> Result<String, PrintError> {
    Ok(match format {
        None => text(false),
        Some(View::Wide) => text(true),
        Some(View::Json) => data(Data::Json, report)?,
        Some(View::Yaml) => data(Data::Yaml, report)?,
        Some(View::Name) => names.map(|name| name + "\n").collect(),
    })
}

/// Resource and name of a claim, as kubectl prints them.
pub(super) fn claim_title(claim: &str) -> String {
    format!("sandboxclaim.warmpool.dev/{claim}")
}

/// Resource and name of a pool, as kubectl prints them.
pub(crate) fn title(pool: &str) -> String {
    format!("pool.warmpool.dev/{pool}")
}

/// Prints what was done to a pool, or the pool in the given format.
pub(super) fn done(format: Option<Format>, pool: &DynamicObject, outcome: &str) -> Result<(), PrintError> {
    let title = title(super::pool::name(pool));
    match format {
        None => out(&format!("{title} {outcome}\n")),
        Some(format) => out(&document(format, pool, &title)?),
    }
}

/// The object in the given format, without `metadata.managedFields`.
pub(super) fn document<K: Resource + Clone + Serialize>(
    format: Format,
    object: &K,
    title: &str,
) -> Result<String, PrintError> {
    let mut object = object.clone();
    object.meta_mut().managed_fields = None;
    Ok(match format {
        Format::Json => data(Data::Json, &object)?,
        Format::Yaml => data(Data::Yaml, &object)?,
        Format::Name => format!("{title}\n"),
    })
}
