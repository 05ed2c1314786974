//! Counts and times the operator's work. [`crate::telemetry::http::pool_gauges`] has the gauges that the cache
//! supplies.

pub mod pool_counters;
mod reconcile_queue;
pub mod request_labels;
pub mod requests;

use crate::cache::reconcile_request::ReconcileRequest;
use crate::model::Key;
use pool_counters::Meters;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use reconcile_queue::Queue;
use requests::{RequestMetrics, milliseconds_up};
use std::time::Instant;

/// All counters and timers. Cheap to clone; the clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// The counters of each pool.
    pub meters: Meters,
    queue: Queue,
    /// Requests to the API server.
    pub requests: RequestMetrics,
    queue_wait: Family<Controller, Histogram, fn() -> Histogram>,
    reconcile_duration: Family<Controller, Histogram, fn() -> Histogram>,
    plan_duration: Histogram,
    leader: Gauge,
}

/// The label of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Controller {
    controller: &'static str,
}

impl Controller {
    fn of(object: &ReconcileRequest) -> Self {
        let controller = match object {
            ReconcileRequest::Pool(_) => "pool",
            ReconcileRequest::Claim(_) => "claim",
            ReconcileRequest::FailedWrites => "failed_write",
        };
        Self { controller }
    }
}

/// A running reconcile.
#[derive(Debug)]
pub struct Reconciling {
    duration: Histogram,
    start: Instant,
}

impl Drop for Reconciling {
    fn drop(&mut self) {
        self.duration.observe(self.start.elapsed().as_secs_f64());
    }
}

/// Buckets of durations without I/O: 10 µs to 42 s, each four times as wide as the last.
fn microseconds_up() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 4.0, 12))
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            meters: Meters::default(),
            queue: Queue::default(),
            requests: RequestMetrics::default(),
            queue_wait: Family::new_with_constructor(milliseconds_up),
            reconcile_duration: Family::new_with_constructor(microseconds_up),
            plan_duration: microseconds_up(),
            leader: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Adds all metrics but the meters of the pools to `registry`.
    pub fn register(&self, registry: &mut Registry) {
        self.requests.register(registry);
        registry.register_with_unit(
            "reconcile_queue",
            "Time from a change to the reconcile that handles it",
            Unit::Seconds,
            self.queue_wait.clone(),
        );
        registry.register_with_unit(
            "reconcile_duration",
            "Time that a reconcile took",
            Unit::Seconds,
            self.reconcile_duration.clone(),
        );
        registry.register_with_unit(
            "plan_duration",
            "Time that the planner took for a pool",
            Unit::Seconds,
            self.plan_duration.clone(),
        );
        registry.register(
            "leader",
            "Whether this process is the leader: 1 or 0",
            self.leader.clone(),
        );
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "Version that runs, with value 1", Info::new(version));
    }

    /// An object is enqueued. An object that waits already keeps its time.
    pub fn queued(&self, object: ReconcileRequest) {
        self.queue.enter(object);
    }

    /// An object is gone and leaves the queue.
    pub fn unqueued(&self, object: &ReconcileRequest) {
        self.queue.leave(object);
    }

    /// Times the wait of an object, and its reconcile until the result is dropped.
    #[must_use]
    pub fn reconciling(&self, object: ReconcileRequest) -> Reconciling {
        let controller = Controller::of(&object);
        if let Some(waited) = self.queue.leave(&object) {
            self.queue_wait
                .get_or_create(&controller)
                .observe(waited.as_secs_f64());
        }
        Reconciling {
            duration: self.reconcile_duration.get_or_create_owned(&controller),
            start: Instant::now(),
        }
    }

    /// Times the planner, which has no clock of its own.
    pub fn planning<T>(&self, plan: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let plan = plan();
        self.plan_duration.observe(start.elapsed().as_secs_f64());
        plan
    }

    /// Whether this process is the leader.
    pub fn leads(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    /// A sandbox of `pool` was created.
    pub fn created(&self, pool: &Key, reason: &'static str) {
        self.meters.with(pool, |meter| meter.created(reason));
    }

    /// A sandbox of `pool` was deleted.
    pub fn deleted(&self, pool: &Key, reason: &'static str) {
        self.meters.with(pool, |meter| meter.deleted(reason));
    }

    /// A sandbox of `pool` was marked as draining.
    pub fn drained(&self, pool: &Key, reason: &'static str) {
        self.meters.with(pool, |meter| meter.drained(reason));
    }
}
