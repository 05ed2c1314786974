//! Reads the objects that the planner needs from a live cluster.

use crate::cache::index::Index;
use crate::cache::watch::{Indexed, take_over_list};
use crate::client::call::call;
use crate::client::request_errors::CallError;
use crate::model::stored::{StoredClaim, StoredPod, StoredPodTemplate, StoredPool, StoredRevision};
use k8s_openapi::NamespaceResourceScope;
use kube::api::ListParams;
use kube::{Api, Client, Resource};

/// Lists the objects of `namespace`, or of all namespaces for `None`, into an index.
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
    Ok(index)
}

async fn list<K>(client: &Client, namespace: Option<&str>, index: &mut Index) -> Result<(), CallError>
where
    K: Indexed + Resource<Scope = NamespaceResourceScope>,
{
    let parameters = K::selector().map_or_else(ListParams::default, |s| ListParams::default().labels(s));
    let objects: Api<K> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    take_over_list(index, call(objects.list(&parameters)).await?.items);
    Ok(())
}
