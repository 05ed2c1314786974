//! `kubectl warmpool set image`: changes images in the template of a pool, which rolls out.

use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::dry_run::DryRun;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::pool_client::PoolClient;
use crate::cli::kubectl::pool_name::{PoolName, PoolNameError};
use crate::cli::kubectl::pool_target::PoolTarget;
use crate::cli::kubectl::print::{self, Format, PrintError};
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use crate::cli::runtime::block_on;
use kube::api::Patch;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use std::process::ExitCode;
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
  kubectl warmpool set image python '*=python:3.14' --dry-run=server
  kubectl warmpool set image -l lang=python main=python:3.14")]
struct Arguments {
    /// The pool, unless -l selects pools; then each container and its image, where * names every container
    #[arg(value_names = ["POOL", "CONTAINER=IMAGE"], num_args = 1.., required = true)]
    words: Vec<Word>,
    /// Act on every pool of the namespace with these labels, as in lang=python
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
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

/// A word of the command line. Only a change has an equals sign.
#[derive(Clone, Debug)]
enum Word {
    Pool(PoolName),
    Change(Change),
}

impl FromStr for Word {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        if written.contains('=') {
            written.parse().map(Self::Change)
        } else {
            written
                .parse()
                .map(Self::Pool)
                .map_err(|e: PoolNameError| e.to_string())
        }
    }
}

impl Arguments {
    /// The pools and their new images.
    fn parse(&self) -> Result<(PoolTarget, Vec<Change>), SetImageError> {
        let (mut pools, mut changes) = (Vec::new(), Vec::new());
        for word in &self.words {
            match word {
                Word::Pool(pool) => pools.push(pool.clone()),
                Word::Change(change) => changes.push(change.clone()),
            }
        }
        let pool = pools.pop();
        if !pools.is_empty() || pool.is_some() == self.selector.is_some() || changes.is_empty() {
            return Err(SetImageError::Words);
        }
        Ok((PoolTarget::new(pool, self.selector.clone()), changes))
    }
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
    /// The command line names no pool, several, or no image.
    #[error(
        "write CONTAINER=IMAGE after the name of one pool or -l LABELS, as in \
         'kubectl warmpool set image python main=python:3.14'"
    )]
    Words,
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
    /// As for every verb.
    #[error(transparent)]
    Verb(VerbError),
}

impl SetImageError {
    /// 2 for wrong arguments, 1 for every other error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Words => 2,
            _ => 1,
        }
    }
}

wraps_verb_error!(SetImageError);

/// Runs the verb.
pub(super) fn run(connection: &Connection, set: &Set) -> Result<ExitCode, SetImageError> {
    let Verb::Image(arguments) = &set.verb;
    let (pools, changes) = arguments.parse()?;
    let set = async |client: &PoolClient| {
        let pool = client.pool().await?;
        let operations = patch(&pool, &changes)?;
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
    };
    block_on(pools.each(connection, set))?
}

/// The operations of a JSON Patch that set the images. Each image is set only while its container stands where it was
/// read.
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
