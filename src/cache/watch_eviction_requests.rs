//! Watches EvictionRequests while the API server has them: the API is alpha in Kubernetes 1.37, and off by default.

use crate::cache::watch::{self, WatchContext};
use crate::model::stored::eviction_request::{API_VERSION, RESOURCE, StoredEvictionRequest};
use kube::Client;
use std::time::Duration;

/// Pause before the operator looks again whether the API server has EvictionRequests.
const PAUSE: Duration = Duration::from_secs(300);

/// Watches EvictionRequests from the moment on that the API server has them, at most five minutes later.
pub async fn run(context: WatchContext) {
    loop {
        if is_served(&context.client).await {
            tracing::info!("watching EvictionRequests");
            watch::run::<StoredEvictionRequest>(context.clone(), |_| {}).await;
            tracing::info!("the API server no longer serves EvictionRequests");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether discovery lists EvictionRequests. An API server that cannot say so now is asked again later.
async fn is_served(client: &Client) -> bool {
    let resources = client.list_api_group_resources(API_VERSION).await;
    resources.is_ok_and(|list| list.resources.iter().any(|resource| resource.name == RESOURCE))
}
