//! Reads the objects that the planner needs from a live cluster.

use crate::cache::index::Index;
use crate::cache::watch::{Indexed, take_over_list};
use crate::client::call::call;
use crate::client::request_errors::CallError;
use crate::model::failure::Class;
use crate::model::stored::{
    StoredClaim, StoredDisruptionBudget, StoredNode, StoredPod, StoredPodTemplate, StoredPool, StoredRevision,
};
use kube::Client;
use kube::api::ListParams;

/// Lists the objects of `namespace`, or of all namespaces for `None`, and the nodes, into an index. A user without the right to list
/// nodes or PodDisruptionBudgets gets the index without them.
///
/// # Errors
/// The error of the first list that failed.
pub(super) async fn read(client: &Client, namespace: Option<&str>) -> Result<Index, CallError> {
    let mut index = Index::default();
    list::<StoredPool>(client, namespace, &mut index).await?;
    list::<StoredClaim>(client, namespace, &mut index).await?;
    list::<StoredRevision>(client, namespace, &mut index).await?;
    list::<StoredPodTemplate>(client, namespace, &mut index).await?;
    list::<StoredPod>(client, namespace, &mut index).await?;
    optional(list::<StoredNode>(client, None, &mut index).await)?;
    optional(list::<StoredDisruptionBudget>(client, namespace, &mut index).await)?;
    Ok(index)
}

/// A user may lack the right to list a kind that the operator can do without.
fn optional(listed: Result<(), CallError>) -> Result<(), CallError> {
    match listed {
        Err(error) if error.failure().class == Class::Denied => Ok(()),
        outcome => outcome,
    }
}

async fn list<K: Indexed>(
    client: &Client,
    namespace: Option<&str>,
    index: &mut Index,
) -> Result<(), CallError> {
    let parameters = K::selector().map_or_else(ListParams::default, |s| ListParams::default().labels(s));
    let objects = K::api(client.clone(), namespace);
    take_over_list(index, call(objects.list(&parameters)).await?.items);
    Ok(())
}
