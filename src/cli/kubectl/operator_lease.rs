//! Whether the operator of a pool works: one that does holds a lease.

use crate::api::labels;
use crate::cli::kubectl::cluster::Cluster;
use crate::model::shard_selector::ShardSelector;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;
use std::collections::BTreeMap;

/// Namespace of the leases, unless the operator was installed elsewhere.
const NAMESPACE: &str = "warmpool-system";

/// A sentence for the user where no operator that serves a pool with these labels holds its lease; `None` where one does,
/// or where the user may not read leases. Without labels, any operator counts.
pub(super) async fn hint(
    cluster: &Cluster,
    pool_labels: Option<&BTreeMap<String, String>>,
) -> Option<String> {
    hint_about(&leases(cluster).await?, pool_labels, Timestamp::now())
}

/// The leases of operators: in every namespace where the user may list them, else where the chart puts them.
async fn leases(cluster: &Cluster) -> Option<Vec<Lease>> {
    let of_operators = ListParams::default().labels(&format!("{}={}", labels::APP_NAME, labels::OPERATOR));
    let all: Api<Lease> = Api::all(cluster.client.clone());
    if let Ok(list) = cluster.ask(all.list(&of_operators)).await {
        return Some(list.items);
    }
    let usual: Api<Lease> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    Some(cluster.ask(usual.list(&of_operators)).await.ok()?.items)
}

/// The sentence about these leases at `now`. `None` without any lease: an operator with `--leader-elect=false` may be at
/// work.
pub fn hint_about(
    leases: &[Lease],
    pool_labels: Option<&BTreeMap<String, String>>,
    now: Timestamp,
) -> Option<String> {
    let serving: Vec<_> = leases.iter().filter(|lease| serves(lease, pool_labels)).collect();
    if serving.iter().any(|lease| is_held(lease, now)) {
        return None;
    }
    let lease = serving.into_iter().max_by_key(|lease| renewed(lease))?;
    let namespace = lease.metadata.namespace.as_deref().unwrap_or_default();
    let name = lease.metadata.name.as_deref().unwrap_or_default();
    let since = renewed(lease).map_or(String::new(), |at| format!(" since {}", whole_seconds(at)));
    Some(format!(
        "No operator has held the lease {namespace}/{name}{since}: nothing below happens until one does; see 'kubectl -n \
         {namespace} get pods'."
    ))
}

/// Whether the lease is that of an operator that serves a pool with these labels. A selector that this version does not
/// understand selects every pool.
fn serves(lease: &Lease, pool_labels: Option<&BTreeMap<String, String>>) -> bool {
    let annotations = lease.metadata.annotations.as_ref();
    let written = annotations.and_then(|annotations| annotations.get(labels::POOL_SELECTOR));
    let shard = written.and_then(|written| written.parse::<ShardSelector>().ok());
    shard
        .zip(pool_labels)
        .is_none_or(|(shard, labels)| shard.selects(labels))
}

fn renewed(lease: &Lease) -> Option<Timestamp> {
    Some(lease.spec.as_ref()?.renew_time.as_ref()?.0)
}

fn is_held(lease: &Lease, now: Timestamp) -> bool {
    let held = || {
        let spec = lease.spec.as_ref()?;
        let duration = SignedDuration::from_secs(spec.lease_duration_seconds?.into());
        let end = renewed(lease)?.checked_add(duration).ok()?;
        let has_holder = spec
            .holder_identity
            .as_ref()
            .is_some_and(|holder| !holder.is_empty());
        Some(has_holder && end > now)
    };
    held().unwrap_or(false)
}

fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
