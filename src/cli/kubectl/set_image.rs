//! `kubectl warmpool set image`: changes images in the template of a pool, which rolls out.

use crate::cli::kubectl::cluster::ClusterError;
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::dry_run::DryRun;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::pool_client::PoolClient;
use crate::cli::kubectl::pool_name::PoolArgument;
use crate::cli::kubectl::print::{self, Format, PrintError};
use crate::cli::runtime::block_on;
use kube::api::Patch;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use std::str::FromStr;
use thiserror::Error;

/// Every container, in place of a name.
const ALL: &str = "*";
/// The lists of containers in a pod's spec.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Arguments of `kubectl warmpool set`.
#[derive(clap::Args)]
pub(super) struct Set {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Change images in the template of a pool
    Image(Arguments),
}

/// Arguments of `kubectl warmpool set image`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit code 0: the images are changed, or were so already. Exit code 1: they are not. Exit code 2: the arguments are wrong.

Examples:
  kubectl warmpool set image python main=python:3.14
  kubectl warmpool set image python '*=python:3.14' --dry-run=server")]
struct Arguments {
    #[command(flatten)]
    pool: PoolArgument,
    /// Container and image; * names every container
    #[arg(value_name = "CONTAINER=IMAGE", required = true)]
    images: Vec<Change>,
    /// Write nothing: client prints the outcome, server has the API server validate the write
    #[arg(long, value_enum, default_value_t = DryRun::None)]
    dry_run: DryRun,
    /// Print the pool in this format [default: one line that says what changed]
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// A container and its new image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Name of the container, or `*`.
    pub container: String,
    /// The image.
    pub image: String,
}

impl FromStr for Change {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        match written.split_once('=') {
            Some((container, image)) if !container.is_empty() && !image.is_empty() => Ok(Self {
                container: container.into(),
                image: image.into(),
            }),
            _ => Err("write CONTAINER=IMAGE, as in main=python:3.14".into()),
        }
    }
}

/// The images were not changed.
#[derive(Debug, Error)]
pub enum SetImageError {
    /// No container has this name.
    #[error("unable to find container named {container:?}; the template of pool {pool:?} has {}", .has.join(", "))]
    NoContainer {
        /// The name.
        container: String,
        /// Name of the pool.
        pool: String,
        /// The containers that there are.
        has: Vec<String>,
    },
    /// The pool has no inline template.
    #[error(
        "pool {pool:?} takes its template from the PodTemplate {template:?} (spec.templateRef); change the image there"
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
    /// The runtime could not be set up.
    #[error("cannot set up the runtime: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, set: &Set) -> Result<(), SetImageError> {
    let Verb::Image(arguments) = &set.verb;
    block_on(async {
        let client = PoolClient::open(connection, &arguments.pool.pool).await?;
        let pool = client.pool().await?;
        let operations = patch(&pool, &arguments.images)?;
        let outcome = format!("image updated{}", arguments.dry_run.suffix());
        if operations.is_empty() || arguments.dry_run == DryRun::Client {
            let outcome = if operations.is_empty() {
                "image unchanged"
            } else {
                outcome.as_str()
            };
            return Ok(print::done(arguments.output, &pool, outcome)?);
        }
        let operations = serde_json::from_value(operations.into()).map_err(PrintError::from)?;
        let is_server = arguments.dry_run == DryRun::Server;
        let now = client.patch(&Patch::Json(operations), is_server).await?;
        Ok(print::done(arguments.output, &now, &outcome)?)
    })?
}

/// The operations of a JSON Patch that set the images. Each image is set only while its container stands where it was read.
///
/// # Errors
/// [`SetImageError::TemplateRef`] and [`SetImageError::NoContainer`].
pub fn patch(pool: &DynamicObject, changes: &[Change]) -> Result<Vec<Value>, SetImageError> {
    if let Some(template) = pool::template_ref(pool) {
        return Err(SetImageError::TemplateRef {
            pool: pool::name(pool).into(),
            template: template.into(),
        });
    }
    let mut containers = Vec::new();
    for list in LISTS {
        let path = format!("/spec/template/spec/{list}");
        let all = pool::at(pool, &path).and_then(Value::as_array);
        for (index, container) in all.into_iter().flatten().enumerate() {
            let text = |field: &str| container.get(field).and_then(Value::as_str).unwrap_or_default();
            containers.push((format!("{path}/{index}"), text("name"), text("image")));
        }
    }
    let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": pool::uid(pool)})];
    for change in changes {
        let named = |name: &str| change.container == ALL || change.container == name;
        let mut found = containers.iter().filter(|(_, name, _)| named(name)).peekable();
        if found.peek().is_none() {
            return Err(SetImageError::NoContainer {
                container: change.container.clone(),
                pool: pool::name(pool).into(),
                has: containers
                    .iter()
                    .map(|(_, name, _)| (*name).to_string())
                    .collect(),
            });
        }
        for (path, name, _) in found.filter(|(_, _, image)| *image != change.image) {
            operations.push(json!({"op": "test", "path": format!("{path}/name"), "value": name}));
            operations.push(json!({"op": "add", "path": format!("{path}/image"), "value": change.image}));
        }
    }
    if operations.len() == 1 {
        operations.clear();
    }
    Ok(operations)
}
