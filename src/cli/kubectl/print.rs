//! How objects and outcomes are printed.

use clap::ValueEnum;
use kube::Resource;
use kube::core::DynamicObject;
use serde::Serialize;
use std::io::Write;
use thiserror::Error;

/// The formats of kubectl's `-o` that the verbs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The whole object
    Json,
    /// The whole object
    Yaml,
    /// Its kind and name
    Name,
}

/// Why something could not be printed.
#[derive(Debug, Error)]
pub enum PrintError {
    /// Standard output does not take it.
    #[error("the output could not be written: {0}")]
    Write(#[from] std::io::Error),
    /// Not to be written as JSON.
    #[error("the object could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Not to be written as YAML.
    #[error("the object could not be written as YAML: {0}")]
    Yaml(#[from] serde_yaml_ng::Error),
}

/// Writes to standard output, so that a reader of a pipe sees it at once.
pub(super) fn out(text: &str) -> Result<(), PrintError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a line to standard error. A terminal that has gone away is no reason to stop: something may have to be
/// cleaned up yet.
pub(super) fn note(line: &str) {
    _ = writeln!(std::io::stderr(), "{line}");
}

/// A pool as kubectl names it in its answers.
pub(super) fn title(pool: &str) -> String {
    format!("pool.warmpool.dev/{pool}")
}

/// What has been done to a pool; with a format the pool itself.
pub(super) fn done(format: Option<Format>, pool: &DynamicObject, what: &str) -> Result<(), PrintError> {
    let title = title(super::pool::name(pool));
    match format {
        None => out(&format!("{title} {what}\n")),
        Some(format) => out(&document(format, pool, &title)?),
    }
}

/// An object in a format of the user's choice, without what only servers read.
pub(super) fn document<K: Resource + Clone + Serialize>(
    format: Format,
    object: &K,
    title: &str,
) -> Result<String, PrintError> {
    let mut object = object.clone();
    object.meta_mut().managed_fields = None;
    Ok(match format {
        Format::Json => serde_json::to_string_pretty(&object)? + "\n",
        Format::Yaml => serde_yaml_ng::to_string(&object)?,
        Format::Name => format!("{title}\n"),
    })
}
