//! Middleware that counts and times every request of a client.

use crate::telemetry::metrics::request_labels::RequestLabels;
use crate::telemetry::metrics::requests::RequestMetrics;
use axum::http::{Request, Response};
use futures::future::BoxFuture;
use kube::client::Body;
use std::task::{Context, Poll};
use std::time::Instant;
use tower::{Layer, Service};

/// A request in flight. It is counted when it is dropped, so a request that its sender gave up counts, too.
struct Timed {
    metrics: RequestMetrics,
    labels: RequestLabels,
    sent: Instant,
    code: Option<u16>,
}

impl Timed {
    /// A method, so that the future that calls it owns the whole value and drops it when it ends.
    fn answered(&mut self, code: u16) {
        self.code = Some(code);
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        self.metrics.observe(&self.labels, self.code, self.sent.elapsed());
    }
}

/// The middleware.
#[derive(Clone, Debug)]
pub struct CountRequests(pub RequestMetrics);

impl<S> Layer<S> for CountRequests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            metrics: self.0.clone(),
        }
    }
}

/// A service whose requests are counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    metrics: RequestMetrics,
}

impl<S, B> Service<Request<Body>> for Counted<S>
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
        let mut timed = Timed {
            metrics: self.metrics.clone(),
            labels: RequestLabels::read(request.method(), uri.path(), uri.query()),
            sent: Instant::now(),
            code: None,
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            timed.answered(answer.status().as_u16());
            Ok(answer)
        })
    }
}
