//! Requests to the API server, counted in the one place that all of them pass: a layer of the client.

use crate::telemetry::metrics::Metrics;
use axum::http::{Method, Request, Response};
use futures::future::BoxFuture;
use kube::client::Body;
use prometheus_client::encoding::EncodeLabelSet;
use std::task::{Context, Poll};
use std::time::Instant;
use tower::{Layer, Service};

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Asked {
    /// Kubernetes' word: get, list, watch, create, patch, update or delete.
    pub verb: &'static str,
    /// Resource and, where there is one, subresource: `pods`, `pools/status`.
    pub resource: String,
}

/// What a request asked for, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Answered {
    verb: &'static str,
    resource: String,
    code: String,
}

impl Asked {
    /// Reads method, path and query of a request.
    pub fn read(method: &Method, path: &str, query: Option<&str>) -> Self {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        // api/VERSION or apis/GROUP/VERSION, then namespaces/NAME where the resource is in one. Others are of no resource.
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
            [] => (String::new(), false),
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

    pub(crate) fn with(&self, code: Option<u16>) -> Answered {
        Answered {
            verb: self.verb,
            resource: self.resource.clone(),
            code: code.map_or_else(|| "error".to_string(), |code| code.to_string()),
        }
    }
}

/// A request under way. It counts when it is over, also when nobody waits for its answer any more.
struct UnderWay {
    metrics: Metrics,
    asked: Asked,
    sent: Instant,
    code: Option<u16>,
}

impl UnderWay {
    fn answered(&mut self, code: u16) {
        self.code = Some(code);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.metrics.answered(&self.asked, self.code, self.sent.elapsed());
    }
}

/// The layer of the client that counts its requests.
#[derive(Clone, Debug)]
pub struct CountRequests(pub Metrics);

impl<S> Layer<S> for CountRequests {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        Counting {
            inner,
            metrics: self.0.clone(),
        }
    }
}

/// A client whose requests are counted.
#[derive(Clone, Debug)]
pub struct Counting<S> {
    inner: S,
    metrics: Metrics,
}

impl<S, B> Service<Request<Body>> for Counting<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send,
    B: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let uri = request.uri();
        let mut under_way = UnderWay {
            metrics: self.metrics.clone(),
            asked: Asked::read(request.method(), uri.path(), uri.query()),
            sent: Instant::now(),
            code: None,
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            under_way.answered(answer.status().as_u16());
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: Method, path_and_query: &str) -> String {
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        let asked = Asked::read(&method, path, query);
        format!("{} {}", asked.verb, asked.resource)
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
            (Method::GET, "/version", "list "),
        ];
        for (method, path, expected) in cases {
            assert_eq!(read(method, path), expected, "{path}");
        }
    }
}
