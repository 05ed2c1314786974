//! Counts and times requests to the API server.

use axum::http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The metrics of requests. Cheap to clone; the clones count together.
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    requests: Family<AnswerLabels, Counter>,
    duration: Family<RequestLabels, Histogram, fn() -> Histogram>,
    /// When a list or watch of each resource was answered last.
    listed: Arc<Mutex<BTreeMap<String, Instant>>>,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            duration: Family::new_with_constructor(milliseconds_up),
            listed: Arc::default(),
        }
    }
}

/// The label of a request for no resource. An empty label is none to Prometheus.
const NO_RESOURCE: &str = "<none>";

/// Buckets of durations with I/O: 1 ms to 33 s, each twice as wide as the last.
pub(crate) fn milliseconds_up() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}

impl RequestMetrics {
    /// Adds the metrics to `registry`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "api_requests",
            "Requests to the API server, by verb, resource and status code; code \"error\": there was no answer",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "api_request_duration",
            "Time until the API server began to answer a request",
            Unit::Seconds,
            self.duration.clone(),
        );
    }

    /// How long ago the API server answered a list or watch of `resource`; `None`: never.
    pub fn listed_ago(&self, resource: &str) -> Option<Duration> {
        self.listed().get(resource).map(Instant::elapsed)
    }

    fn listed(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that ended `after` it was sent, with this status code or without an answer.
    pub(crate) fn observe(&self, request: &RequestLabels, code: Option<u16>, after: Duration) {
        let is_success = code.is_some_and(|code| (200..300).contains(&code));
        if is_success && matches!(request.verb, "list" | "watch") {
            self.listed().insert(request.resource.clone(), Instant::now());
        }
        self.requests.get_or_create(&request.with(code)).inc();
        self.duration.get_or_create(request).observe(after.as_secs_f64());
    }
}

/// Verb and resource of a request: the labels of its duration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// Kubernetes' word: get, list, watch, create, patch, update or delete.
    pub verb: &'static str,
    /// Resource and, where there is one, subresource: `pods`, `pools/status`.
    pub resource: String,
}

/// Verb, resource and status code of a request: the labels of its counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    verb: &'static str,
    resource: String,
    code: String,
}

impl RequestLabels {
    /// Reads method, path and query of a request.
    pub fn read(method: &Method, path: &str, query: Option<&str>) -> Self {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        // api/VERSION or apis/GROUP/VERSION, then namespaces/NAME where the resource is namespaced. Other paths have no resource.
        let skipped = match parts.next() {
            Some("api") => 1,
            Some("apis") => 2,
            _ => usize::MAX,
        };
        let rest: Vec<&str> = parts.skip(skipped).collect();
        let named = match rest.as_slice() {
            ["namespaces", _, of_namespace @ ..] if !of_namespace.is_empty() => of_namespace,
            all => all,
        };
        let (resource, single) = match named {
            // Of no resource, such as /version.
            [] => (NO_RESOURCE.to_string(), true),
            [resource] => ((*resource).to_string(), false),
            [resource, _] => ((*resource).to_string(), true),
            [resource, _, subresource, ..] => (format!("{resource}/{subresource}"), true),
        };
        let watches = query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("watch=")));
        let verb = match *method {
            Method::GET if watches => "watch",
            Method::GET if single => "get",
            Method::GET => "list",
            Method::POST => "create",
            Method::PATCH => "patch",
            Method::PUT => "update",
            Method::DELETE => "delete",
            _ => "other",
        };
        Self { verb, resource }
    }

    fn with(&self, code: Option<u16>) -> AnswerLabels {
        AnswerLabels {
            verb: self.verb,
            resource: self.resource.clone(),
            code: code.map_or_else(|| "error".to_string(), |code| code.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::telemetry::metrics::requests::RequestLabels;
    use axum::http::Method;

    fn read(method: Method, path_and_query: &str) -> String {
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        let labels = RequestLabels::read(&method, path, query);
        format!("{} {}", labels.verb, labels.resource)
    }

    #[test]
    fn a_request_counts_under_its_verb_and_resource() {
        let cases = [
            (Method::GET, "/api/v1/pods?labelSelector=a&limit=500", "list pods"),
            (
                Method::GET,
                "/api/v1/pods?&watch=true&resourceVersion=7",
                "watch pods",
            ),
            (Method::GET, "/api/v1/namespaces/ns/pods/a", "get pods"),
            (Method::POST, "/api/v1/namespaces/ns/pods?", "create pods"),
            (Method::DELETE, "/api/v1/namespaces/ns/pods/a", "delete pods"),
            (Method::GET, "/api/v1/namespaces/ns", "get namespaces"),
            (
                Method::PATCH,
                "/apis/warmpool.dev/v1alpha1/namespaces/ns/pools/python/status",
                "patch pools/status",
            ),
            (
                Method::GET,
                "/apis/warmpool.dev/v1alpha1/namespaces/ns/pools",
                "list pools",
            ),
            (
                Method::PUT,
                "/apis/coordination.k8s.io/v1/namespaces/ns/leases/warmpool",
                "update leases",
            ),
            (Method::GET, "/version", "get <none>"),
        ];
        for (method, path, expected) in cases {
            assert_eq!(read(method, path), expected, "{path}");
        }
    }
}
