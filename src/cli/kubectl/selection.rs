//! Which pools a verb shows, as in `kubectl get`: those of one namespace or of all, and those with given labels.

use crate::api;
use crate::cache::index::Index;
use crate::cli::kubectl::cluster::{Cluster, ClusterError};
use crate::cli::kubectl::print;
use crate::model::Key;
use std::collections::BTreeSet;

/// The flags that select the pools to show.
#[derive(clap::Args)]
pub(crate) struct Selection {
    /// Show the pools of all namespaces, whatever -n says
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Show only the pools with these labels, as in lang=python,size!=small
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
}

/// The selected pools, and every object that the planner needs for them.
pub(crate) struct Selected {
    /// The objects.
    pub(crate) index: Index,
    /// The pools, in the order of their names.
    pub(crate) pools: Vec<Key>,
}

impl Selection {
    /// The namespace that is read; `None`: all.
    pub(super) fn namespace<'a>(&self, cluster: &'a Cluster) -> Option<&'a str> {
        (!self.all_namespaces).then_some(cluster.namespace.as_str())
    }

    /// Reads the pools of `namespace`, or of all namespaces for `None`, and selects those with the labels.
    pub(crate) async fn read(
        &self,
        cluster: &Cluster,
        namespace: Option<&str>,
    ) -> Result<Selected, ClusterError> {
        let index = cluster.read_of(namespace).await?;
        let mut pools = index.pool_keys();
        if let Some(selector) = &self.selector {
            let named = cluster.named_with::<api::Pool>(namespace, selector).await?;
            let named: BTreeSet<Key> = named.into_iter().collect();
            pools.retain(|pool| named.contains(pool));
        }
        Ok(Selected { index, pools })
    }
}

/// Says on standard error that no object was selected, as kubectl does.
pub(super) fn note_none(objects: &str, namespace: Option<&str>) {
    match namespace {
        Some(namespace) => print::note(&format!("No {objects} found in {namespace} namespace.")),
        None => print::note(&format!("No {objects} found.")),
    }
}
