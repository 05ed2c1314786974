//! Whether an operator works: one that does holds a lease.

use crate::cli::kubectl::cluster::Cluster;
use crate::controllers::leader_election::lease_name::LEASE;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;

/// Namespace of the lease, unless the operator was installed elsewhere.
const NAMESPACE: &str = "warmpool-system";

/// A sentence for the user where no operator holds a lease; `None` where one does, or where the user may not read
/// leases.
pub(super) async fn hint(cluster: &Cluster) -> Option<String> {
    hint_about(&leases(cluster).await?, Timestamp::now())
}

/// The leases with the name of the operator's: in every namespace where the user may list them, else where the chart
/// puts it.
async fn leases(cluster: &Cluster) -> Option<Vec<Lease>> {
    let all: Api<Lease> = Api::all(cluster.client.clone());
    let named = ListParams::default().fields(&format!("metadata.name={LEASE}"));
    if let Ok(list) = cluster.ask(all.list(&named)).await {
        return Some(list.items);
    }
    let usual: Api<Lease> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let lease = cluster.ask(usual.get_opt(LEASE)).await.ok()?;
    Some(lease.into_iter().collect())
}

/// The sentence about these leases at `now`. `None` without any lease: an operator with `--leader-elect=false`, or with
/// another name of its lease, may be at work.
pub fn hint_about(leases: &[Lease], now: Timestamp) -> Option<String> {
    let lease = leases.first()?;
    if leases.iter().any(|lease| is_held(lease, now)) {
        return None;
    }
    let namespace = lease.metadata.namespace.as_deref().unwrap_or_default();
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    let since = renewed.map_or(String::new(), |at| format!(" since {}", whole_seconds(at.0)));
    Some(format!(
        "No operator has held the lease {namespace}/{LEASE}{since}: nothing below happens until one does; see 'kubectl -n \
         {namespace} get pods'."
    ))
}

fn is_held(lease: &Lease, now: Timestamp) -> bool {
    let held = || {
        let spec = lease.spec.as_ref()?;
        let duration = SignedDuration::from_secs(spec.lease_duration_seconds?.into());
        let end = spec.renew_time.as_ref()?.0.checked_add(duration).ok()?;
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
