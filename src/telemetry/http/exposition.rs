//! Serves `/metrics` in the OpenMetrics text format.

use crate::cache::synced_cache::SharedCache;
use crate::telemetry::http::pool_gauges::PoolGauges;
use crate::telemetry::http::process_metrics::ProcessMetrics;
use crate::telemetry::metrics::Metrics;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::sync::Arc;

/// Prefix of every metric name but those of the process.
const PREFIX: &str = "warmpool";
/// The content type of OpenMetrics.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of this process.
pub fn registry(metrics: &Metrics, shared: &SharedCache) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ProcessMetrics::begin()));
    let own = registry.sub_registry_with_prefix(PREFIX);
    metrics.register(own);
    own.register_collector(Box::new(PoolGauges::new(shared.clone(), metrics.meters.clone())));
    registry
}

/// The route of the metrics in `registry`.
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
