//! `/metrics`: everything that is counted, in the OpenMetrics text format.

use crate::cache::watch::SharedCache;
use crate::telemetry::http::pool_gauges::Pools;
use crate::telemetry::metrics::Metrics;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::sync::Arc;

/// First word of every name.
const PREFIX: &str = "warmpool";
/// The format, as OpenMetrics has it.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of this process.
pub fn registry(metrics: &Metrics, shared: &SharedCache) -> Registry {
    let mut registry = Registry::with_prefix(PREFIX);
    metrics.register(&mut registry);
    registry.register_collector(Box::new(Pools::new(shared.clone(), metrics.meters.clone())));
    registry
}

/// The route that serves them.
pub fn routes(registry: Registry) -> Router {
    let registry = Arc::new(registry);
    Router::new().route("/metrics", get(async move || text(&registry)))
}

fn text(registry: &Registry) -> impl IntoResponse + use<> {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
