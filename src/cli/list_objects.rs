//! Reads the objects that the planner needs from a live cluster.

use crate::cache::index::Index;
use crate::cache::watch::{Indexed, take_over_list};
use crate::client::call::call_within;
use crate::client::request_errors::CallError;
use crate::model::failure::Class;
use crate::model::stored::eviction_request::StoredEvictionRequest;
use crate::model::stored::{
    StoredClaim, StoredDisruptionBudget, StoredNode, StoredPod, StoredPodTemplate, StoredPool, StoredRevision,
};
use kube::Client;
use kube::api::ListParams;
use std::time::Duration;

/// Lists the objects of `namespace`, or of all namespaces for `None`, and the nodes, into an index. Each list may take
/// as long as `deadline`. A user without the right to list nodes, PodDisruptionBudgets or EvictionRequests gets the
/// index without them.
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
        denied: Vec::new(),
    };
    reading.list::<StoredPool>().await?;
    reading.list::<StoredClaim>().await?;
    reading.list::<StoredRevision>().await?;
    reading.list::<StoredPodTemplate>().await?;
    reading.list::<StoredPod>().await?;
    if !reading.denied.is_empty() {
        return Err(reading.denied);
    }
    // Of kinds that the operator can do without, a list that is denied is left out.
    reading.list::<StoredNode>().await?;
    reading.list::<StoredDisruptionBudget>().await?;
    reading.list_if_served::<StoredEvictionRequest>().await?;
    Ok(reading.index)
}

struct Reading<'a> {
    client: &'a Client,
    namespace: Option<&'a str>,
    deadline: Duration,
    index: Index,
    denied: Vec<CallError>,
}

impl Reading<'_> {
    /// Lists a kind that the API server may lack.
    async fn list_if_served<K: Indexed>(&mut self) -> Result<(), Vec<CallError>> {
        let listed = self.list::<K>().await;
        let lacks = |errors: &Vec<CallError>| errors.iter().all(|error| error.failure().class == Class::Gone);
        if listed.as_ref().is_err_and(lacks) {
            Ok(())
        } else {
            listed
        }
    }

    /// Lists one kind. A list that is not allowed is noted, so that the user learns of every missing right at once.
    async fn list<K: Indexed>(&mut self) -> Result<(), Vec<CallError>> {
        let parameters = K::selector().map_or_else(ListParams::default, |s| ListParams::default().labels(s));
        let objects = K::api(self.client.clone(), self.namespace);
        match call_within(self.deadline, objects.list(&parameters)).await {
            Ok(list) => take_over_list(&mut self.index, list.items),
            Err(error) if error.failure().class == Class::Denied => self.denied.push(error),
            Err(error) => return Err(vec![error]),
        }
        Ok(())
    }
}
