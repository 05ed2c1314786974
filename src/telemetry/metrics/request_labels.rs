//! The labels of a request to the API server, read from its method, path and query.

use axum::http::Method;
use prometheus_client::encoding::EncodeLabelSet;

/// The label of a request for no resource. An empty label is none to Prometheus.
const NO_RESOURCE: &str = "<none>";

/// Verb and resource of a request: the labels of its duration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// The Kubernetes verb: get, list, watch, create, patch, update or delete; `other` for any other HTTP method.
    pub verb: &'static str,
    /// Resource and, where there is one, subresource: `pods`, `pools/status`.
    pub resource: String,
}

impl RequestLabels {
    /// Reads method, path and query of a request.
    pub fn read(method: &Method, path: &str, query: Option<&str>) -> Self {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        // api/VERSION or apis/GROUP/VERSION, then namespaces/NAME where the resource is namespaced. Other paths have no
        // resource.
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
}

#[cfg(test)]
mod tests {
    use crate::telemetry::metrics::request_labels::RequestLabels;
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
