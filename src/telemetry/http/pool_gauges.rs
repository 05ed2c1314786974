//! Gauges of pools, claims and watches, computed from the cache on each scrape.
//!
//! They cost nothing between scrapes, and the series of a deleted pool end with it.

use crate::cache::pool_stats::{NO_POOL, PoolStats, SANDBOX_STATES};
use crate::cache::synced_cache::SharedCache;
use crate::model::Key;
use crate::planner::select_pool::select_all_pools;
use crate::telemetry::metrics::pool_counters::{Meters, labels};
use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;
use std::collections::BTreeMap;
use std::fmt;

/// The collector of the gauges.
#[derive(Debug)]
pub struct PoolGauges {
    shared: SharedCache,
    meters: Meters,
}

impl PoolGauges {
    /// A collector that reads `shared` and drops the counters in `meters` of deleted pools.
    pub fn new(shared: SharedCache, meters: Meters) -> Self {
        Self { shared, meters }
    }
}

impl Collector for PoolGauges {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let now = Timestamp::now();
        let index = self.shared.lock();
        let all = index.stats(now, &select_all_pools(&index, now));
        drop(index);
        let pools = || all.iter().filter(|(key, _)| key.name != NO_POOL);
        self.meters.keep(pools().map(|(key, _)| key));
        self.meters.encode(&mut encoder)?;

        let mut replicas = gauge(
            &mut encoder,
            "pool_spec_replicas",
            "Unclaimed sandboxes that the pool wants, or its least size with autoscaling (spec.replicas)",
            None,
        )?;
        for (key, stats) in pools() {
            set(&mut replicas, &labels(key, []), count(stats.replicas))?;
        }
        let help =
            "Unclaimed sandboxes that the pool keeps warm: spec.replicas, or the size that autoscaling chose";
        let mut desired = gauge(&mut encoder, "pool_desired_replicas", help, None)?;
        for (key, stats) in pools() {
            set(&mut desired, &labels(key, []), i64::from(stats.desired))?;
        }
        autoscaling(&mut encoder, &all)?;
        let help =
            "Maximum number of sandboxes of the pool (spec.capacity.maxTotal); no series without a limit";
        let mut max_total = gauge(&mut encoder, "pool_spec_max_total", help, None)?;
        for (key, stats) in pools() {
            if let Some(limit) = stats.max_total {
                set(&mut max_total, &labels(key, []), count(limit))?;
            }
        }
        let help =
            "Sandboxes that are not terminating, by state and revision; updated: of the current template";
        let mut sandboxes = gauge(&mut encoder, "sandboxes", help, None)?;
        for (key, stats) in pools() {
            of_state(&mut sandboxes, key, stats)?;
        }
        let help = "Current status and reason of each condition, with value 1; no series for a condition that the pool lacks";
        let mut condition = gauge(&mut encoder, "pool_condition", help, None)?;
        for (key, stats) in pools() {
            for [type_, status, reason] in &stats.conditions {
                let labels_of_condition = [("type", type_.as_str()), ("status", status), ("reason", reason)];
                set(&mut condition, &labels(key, labels_of_condition), 1_i64)?;
            }
        }
        let help = "Claims that wait, by the pool that serves them; pool <none>: no pool does";
        let mut waiting = gauge(&mut encoder, "claims_waiting", help, None)?;
        for (key, stats) in &all {
            set(&mut waiting, &labels(key, []), count(stats.waiting))?;
        }
        let help = "Longest wait of a waiting claim, by the pool that serves it; 0 when none waits";
        let mut oldest = gauge(&mut encoder, "claims_waiting_longest", help, Some(&Unit::Seconds))?;
        for (key, stats) in &all {
            let wait = stats
                .waiting_since
                .map_or(0.0, |since| now.duration_since(since).as_secs_f64());
            set(&mut oldest, &labels(key, []), wait.max(0.0))?;
        }
        let help = "Restarts of a watch after an error";
        let mut restarts = encoder.encode_descriptor("watch_restarts", help, None, MetricType::Counter)?;
        for (kind, watch) in self.shared.watches.now() {
            let counter = ConstCounter::new(watch.restarts);
            counter.encode(restarts.encode_family(&[("kind", kind.as_str())])?)?;
        }
        Ok(())
    }
}

/// What the operator has learned of pools with autoscaling. Other pools have no series.
fn autoscaling(encoder: &mut DescriptorEncoder, all: &BTreeMap<Key, PoolStats>) -> fmt::Result {
    let demands = || all.iter().filter_map(|(key, stats)| Some((key, stats.demand?)));
    let help = "Sandboxes per second that claims requested over the last 30 s or ten warm-up times, whichever is longer";
    let mut arrivals = gauge(encoder, "pool_arrival_rate", help, None)?;
    for (key, demand) in demands() {
        set(&mut arrivals, &labels(key, []), demand.arrivals_per_second)?;
    }
    let help = "Time from a claim until the sandbox that replaces the claimed one is available, as autoscaling uses it";
    let mut warm_up = gauge(encoder, "pool_warm_up", help, Some(&Unit::Seconds))?;
    for (key, demand) in demands() {
        set(&mut warm_up, &labels(key, []), demand.warm_up_seconds)?;
    }
    let help = "Share of the claims of about the last hour that found a sandbox available";
    let mut hit_rate = gauge(encoder, "pool_hit", help, Some(&Unit::Ratios))?;
    for (key, demand) in demands() {
        if let Some(share) = demand.hit_rate {
            set(&mut hit_rate, &labels(key, []), share)?;
        }
    }
    Ok(())
}

fn of_state(metric: &mut MetricEncoder, key: &Key, stats: &PoolStats) -> fmt::Result {
    for state in SANDBOX_STATES {
        for updated in [true, false] {
            let number = stats.sandboxes.get(&(state, updated)).copied();
            let revision = if updated { "updated" } else { "old" };
            let labels = labels(key, [("state", state.as_str()), ("revision", revision)]);
            set(metric, &labels, count(number.unwrap_or_default()))?;
        }
    }
    Ok(())
}

fn gauge<'a>(
    encoder: &'a mut DescriptorEncoder,
    name: &'a str,
    help: &str,
    unit: Option<&'a Unit>,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, unit, MetricType::Gauge)
}

fn set(metric: &mut MetricEncoder, labels: &Vec<(&str, &str)>, value: impl EncodeGaugeValue) -> fmt::Result {
    metric.encode_family(labels)?.encode_gauge(&value)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
