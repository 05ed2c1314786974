//! `kubectl warmpool why`: explains the state of a claim, a pool or a sandbox.
//!
//! The explanation comes from the planner of the controllers, so it matches what the operator does.

mod claim;
pub(super) mod format;
mod pod;
mod pool;
pub mod target;
mod warming;

pub(super) use pool::explain as explain_pool;

use crate::cache::index::Index;
use crate::cli::kubectl::cluster::{Cluster, ClusterError, FROM_SERVER};
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::operator_lease;
use crate::cli::kubectl::print;
use crate::cli::kubectl::terminal::{width, wrapped};
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use crate::cli::runtime::block_on;
use crate::model::Key;
use crate::model::claim::Target as ClaimTarget;
use crate::model::pool::Pool;
use crate::model::stored::StoredPod;
use jiff::Timestamp;
use kube::Api;
use std::sync::Arc;
use target::{KINDS, Kind, Target};
use thiserror::Error;

/// Arguments of `kubectl warmpool why`.
#[derive(clap::Args)]
#[command(after_help = "\
A name without a kind is looked up as a claim, then as a pool, then as a pod. The first line says so when no operator holds \
its lease. Exit code 0: the object is explained. Exit code 1: it does not exist, or the call failed. Exit code 2: the \
arguments are wrong.

Examples:
  kubectl warmpool why run-42            why does the claim wait?
  kubectl warmpool why pool/python       is it full, and why does its rollout not go on?
  kubectl warmpool why pod/python-7c9f-x2k4")]
pub(super) struct Arguments {
    /// The object to explain: NAME, claim/NAME, pool/NAME or pod/NAME
    #[arg(value_name = "NAME")]
    target: Target,
}

/// Nothing was explained.
#[derive(Debug, Error)]
pub enum WhyError {
    /// The object does not exist. The message has a line for each kind that was looked up.
    #[error("{}", not_found(.0))]
    NotFound(Target),
    /// As for every verb.
    #[error(transparent)]
    Verb(VerbError),
}

wraps_verb_error!(WhyError);

fn not_found(target: &Target) -> String {
    let line = |kind: &Kind| {
        format!(
            "{FROM_SERVER} (NotFound): {} {:?} not found",
            kind.resource(),
            target.name
        )
    };
    kinds(target).map(line).collect::<Vec<_>>().join("\n")
}

/// The kinds that `target` may mean.
fn kinds(target: &Target) -> impl Iterator<Item = &'static Kind> {
    KINDS
        .iter()
        .filter(|kind| target.kind.is_none_or(|k| k == **kind))
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<(), WhyError> {
    block_on(async {
        let cluster = Cluster::open(connection).await?;
        let index = cluster.read().await?;
        let target = &arguments.target;
        let sentences = match explain(&index, target, &cluster.namespace, Timestamp::now()) {
            Some(sentences) => sentences,
            None => explain_other_pod(&cluster, target).await?,
        };
        let pool = pool_of(&index, target, &cluster.namespace);
        let hint = operator_lease::hint(&cluster, pool.as_ref().map(|pool| &pool.labels)).await;
        let width = width();
        let lines = hint.iter().chain(&sentences).map(|line| wrapped(line, width));
        Ok(print::out(&(lines.collect::<Vec<_>>().join("\n") + "\n"))?)
    })?
}

/// The pool that the object is, or belongs to.
fn pool_of(index: &Index, target: &Target, namespace: &str) -> Option<Arc<Pool>> {
    let key = Key::new(namespace, &target.name);
    let of = |pool: &str| index.pool(&Key::new(namespace, pool));
    kinds(target).find_map(|kind| match kind {
        Kind::Claim => {
            let claim = index.claim(&key)?;
            match &claim.target {
                ClaimTarget::Pool(pool) => of(pool),
                ClaimTarget::AnyWith(_) => of(&claim.status.pool),
            }
        }
        Kind::Pool => index.pool(&key),
        Kind::Pod => of(&index.pod(&key)?.pool),
    })
}

/// Explains the object, a sentence per line; `None` when `index` does not have it.
pub fn explain(index: &Index, target: &Target, namespace: &str, now: Timestamp) -> Option<Vec<String>> {
    let key = Key::new(namespace, &target.name);
    let mut found = kinds(target).filter_map(|kind| {
        let sentences = match kind {
            Kind::Claim => claim::explain(index, &key, now),
            Kind::Pool => pool::explain(index, &key, now),
            Kind::Pod => pod::explain(index, &key, now),
        };
        Some((kind, sentences?))
    });
    let (_, mut sentences) = found.next()?;
    let others = found.map(|(kind, _)| {
        let prefix = kind.prefix();
        format!(
            "There is also a {prefix} with this name: 'kubectl warmpool why {prefix}/{} -n {namespace}'.",
            target.name
        )
    });
    sentences.extend(others.collect::<Vec<_>>());
    Some(sentences)
}

/// Explains a pod without the label of a pool, which `index` does not hold.
async fn explain_other_pod(cluster: &Cluster, target: &Target) -> Result<Vec<String>, WhyError> {
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
        Err(ClusterError::Rejected(status)) if status.code == 404 => Err(not_found()),
        Err(other) => Err(other.into()),
    }
}
