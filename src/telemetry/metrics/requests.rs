//! Counts and times requests to the API server.

use crate::telemetry::metrics::request_labels::RequestLabels;
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
        self.requests
            .get_or_create(&AnswerLabels::of(request, code))
            .inc();
        self.duration.get_or_create(request).observe(after.as_secs_f64());
    }
}

/// Verb, resource and status code of a request: the labels of its counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    verb: &'static str,
    resource: String,
    code: String,
}

impl AnswerLabels {
    fn of(request: &RequestLabels, code: Option<u16>) -> Self {
        Self {
            verb: request.verb,
            resource: request.resource.clone(),
            code: code.map_or_else(|| "error".to_string(), |code| code.to_string()),
        }
    }
}
