//! `kubectl warmpool why`: says in plain sentences why a claim, a pool or a sandbox is where it is. The planner of the
//! controllers is asked, so what is said here is what is done there.

pub mod claim;
mod outlook;
pub mod pod;
pub mod pool;
pub mod target;
mod words;

use crate::cache::index::Index;
use crate::cli::kubectl::Connection;
use crate::cli::kubectl::cluster::{Cluster, ClusterError, FROM_SERVER};
use crate::cli::kubectl::print;
use crate::cli::kubectl::print::PrintError;
use crate::model::Key;
use crate::model::stored::StoredPod;
use jiff::Timestamp;
use kube::Api;
use target::{KINDS, Kind, Target};
use thiserror::Error;

/// Arguments of `kubectl warmpool why`.
#[derive(clap::Args)]
#[command(after_help = "\
A name without a kind means a claim, or else a pool, or else a pod.

Examples:
  kubectl warmpool why run-42            what does the claim wait for?
  kubectl warmpool why pool/python       is it full, and what holds its rollout?
  kubectl warmpool why pod/python-7c9f-x2k4")]
pub(super) struct Arguments {
    /// What to ask about: NAME, claim/NAME, pool/NAME or pod/NAME
    #[arg(value_name = "NAME")]
    target: Target,
}

/// Why there is nothing to say.
#[derive(Debug, Error)]
pub enum WhyError {
    /// There is no such object; one line for each kind that was looked for.
    #[error("{}", not_found(.0))]
    NotFound(Target),
    /// The cluster could not be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The answer could not be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
    /// The runtime could not be set up.
    #[error("the runtime could not be set up: {0}")]
    Runtime(#[from] std::io::Error),
}

fn not_found(target: &Target) -> String {
    let line = |kind: &Kind| {
        format!(
            "{FROM_SERVER} (NotFound): {} {:?} not found",
            kind.resource(),
            target.name
        )
    };
    let looked_for = KINDS
        .iter()
        .filter(|kind| target.kind.is_none_or(|k| k == **kind));
    looked_for.map(line).collect::<Vec<_>>().join("\n")
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<(), WhyError> {
    crate::cli::block_on(async {
        let cluster = Cluster::open(connection).await?;
        let index = cluster.read().await?;
        let target = &arguments.target;
        let said = match explain(&index, target, &cluster.namespace, Timestamp::now()) {
            Some(said) => said,
            None => stranger(&cluster, target).await?,
        };
        Ok(print::out(&(said.join("\n") + "\n"))?)
    })?
}

/// What there is to say, a sentence a line; `None` when nothing of ours is meant.
pub fn explain(index: &Index, target: &Target, namespace: &str, now: Timestamp) -> Option<Vec<String>> {
    let key = Key::new(namespace, &target.name);
    let wanted = KINDS
        .iter()
        .filter(|kind| target.kind.is_none_or(|k| k == **kind));
    let mut found = wanted.filter_map(|kind| {
        let said = match kind {
            Kind::Claim => claim::explain(index, &key, now),
            Kind::Pool => pool::explain(index, &key, now),
            Kind::Pod => pod::explain(index, &key, now),
        };
        Some((kind, said?))
    });
    let (_, mut said) = found.next()?;
    let others = found.map(|(kind, _)| {
        let word = kind.word();
        format!(
            "There is also a {word} of that name: 'kubectl warmpool why {word}/{} -n {namespace}'.",
            target.name
        )
    });
    said.extend(others.collect::<Vec<_>>());
    Some(said)
}

/// A pod that is not ours, or nothing at all.
async fn stranger(cluster: &Cluster, target: &Target) -> Result<Vec<String>, WhyError> {
    let not_found = || WhyError::NotFound(target.clone());
    if target.kind.is_some_and(|kind| kind != Kind::Pod) {
        return Err(not_found());
    }
    let pods = Api::<StoredPod>::namespaced(cluster.client.clone(), &cluster.namespace);
    match cluster.ask(pods.get(&target.name)).await {
        Ok(_) => Ok(vec![format!(
            "Pod {} belongs to no pool: it lacks the label {}.",
            target.name,
            crate::api::labels::POOL
        )]),
        Err(ClusterError::Refused(status)) if status.code == 404 => Err(not_found()),
        Err(other) => Err(other.into()),
    }
}
