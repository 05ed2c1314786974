//! Reads the objects that the planner needs from a live cluster.

use crate::cache::index::Index;
use crate::cache::watch::{Indexed, take_over_list};
use crate::client::call::call_within;
use crate::client::request_errors::CallError;
use crate::model::stored::{StoredClaim, StoredPod, StoredPodTemplate, StoredPool, StoredRevision};
use k8s_openapi::NamespaceResourceScope;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use std::time::Duration;

/// Status code of a request that the user may not send.
const FORBIDDEN: u16 = 403;

/// Lists the objects of `namespace`, or of all namespaces for `None`, into an index. Each list may take as long as `deadline`.
///
/// # Errors
/// The error of the first list that failed, or of every list that the user may not send.
pub(super) async fn read(
    client: &Client,
    namespace: Option<&str>,
    deadline: Duration,
) -> Result<Index, Vec<CallError>> {
    let mut reading = Reading {
        client,
        namespace,
        deadline,
        index: Index::default(),
        forbidden: Vec::new(),
    };
    reading.list::<StoredPool>().await?;
    reading.list::<StoredClaim>().await?;
    reading.list::<StoredRevision>().await?;
    reading.list::<StoredPodTemplate>().await?;
    reading.list::<StoredPod>().await?;
    if reading.forbidden.is_empty() {
        Ok(reading.index)
    } else {
        Err(reading.forbidden)
    }
}

struct Reading<'a> {
    client: &'a Client,
    namespace: Option<&'a str>,
    deadline: Duration,
    index: Index,
    forbidden: Vec<CallError>,
}

impl Reading<'_> {
    /// Lists one kind. A list that is not allowed is noted, so that the user learns of every missing right at once.
    async fn list<K>(&mut self) -> Result<(), Vec<CallError>>
    where
        K: Indexed + Resource<Scope = NamespaceResourceScope>,
    {
        let parameters = K::selector().map_or_else(ListParams::default, |s| ListParams::default().labels(s));
        let objects: Api<K> = match self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        match call_within(self.deadline, objects.list(&parameters)).await {
            Ok(list) => take_over_list(&mut self.index, list.items),
            Err(CallError::Kube(kube::Error::Api(status))) if status.code == FORBIDDEN => {
                self.forbidden.push(kube::Error::Api(status).into());
            }
            Err(error) => return Err(vec![error]),
        }
        Ok(())
    }
}
