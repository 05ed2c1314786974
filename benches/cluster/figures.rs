//! Computes the figures of a load: latencies, times of a burst, writes and processor time.

use crate::Outcome;
use crate::audit::Writes;
use crate::served::Served;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::time::Duration;

/// Longest latency and significant digits of a histogram.
const LONGEST: Duration = Duration::from_secs(600);
const DIGITS: u8 = 3;

/// Latencies in milliseconds, and how many were how long. With fewer than 100 claims the p99 is the maximum.
///
/// # Errors
/// A latency is longer than the histogram holds.
pub fn milliseconds(served: &Served) -> Outcome<Value> {
    let mut times = Histogram::<u64>::new_with_bounds(1, LONGEST.as_micros().try_into()?, DIGITS)?;
    for latency in &served.latencies {
        times.record(latency.as_micros().max(1).try_into()?)?;
    }
    let at = |quantile: f64| rounded(Duration::from_micros(times.value_at_quantile(quantile)), 1000.0);
    let counts = times.iter_recorded();
    let counts: Vec<_> = counts
        .map(|step| (step.value_iterated_to(), step.count_at_value()))
        .collect();
    let ratio = rounded(Duration::from_secs_f64(at(0.99) / at(0.5).max(0.01)), 1.0);
    Ok(json!({
        "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p999": at(0.999), "max": at(1.0), "p99_by_p50": ratio,
        "claims": times.len(), "cold": served.cold,
        "passed": served.passed, "passed_by": rounded(served.passed_by, 1000.0),
        "microseconds": counts,
    }))
}

/// The figures as a line of the log has them.
pub fn brief(times: &Value) -> Value {
    let mut times = times.clone();
    if let Some(fields) = times.as_object_mut() {
        fields.remove("microseconds");
    }
    times
}

/// The latencies of a burst in milliseconds, and its times in seconds: until all POSTs were answered and until the pool was
/// full again, where they were measured, and until all claims were Ready.
pub fn of_burst(served: &Served, posted: Option<Duration>, refilled: Option<Duration>) -> Outcome<Value> {
    let mut figures = milliseconds(served)?;
    let in_seconds = |time: Option<Duration>| json!(time.map(|time| rounded(time, 1.0)));
    if let Some(fields) = figures.as_object_mut() {
        fields.extend([
            ("posted".into(), in_seconds(posted)),
            ("ready".into(), in_seconds(served.latencies.last().copied())),
            ("refilled".into(), in_seconds(refilled)),
        ]);
    }
    Ok(figures)
}

/// Writes and processor time of the operator for `claims` claims.
pub fn writes(written: &Writes, claims: usize, cpu: f64) -> Value {
    json!({
        "per_claim": (written.total() as f64 / claims.max(1) as f64 * 100.0).round() / 100.0,
        "409": written.answered(409),
        "422": written.answered(422),
        "cpu_s": (cpu * 100.0).round() / 100.0,
        "cpu_s_per_1000": (cpu * 1000.0 / claims.max(1) as f64 * 100.0).round() / 100.0,
    })
}

/// Writes of a rollout of `sandboxes`: on pods and in total for each sandbox, and in total on statuses and revisions.
pub fn replaced(written: &Writes, sandboxes: usize) -> Value {
    let per_sandbox = |count: usize| (count as f64 / sandboxes.max(1) as f64 * 1_000.0).round() / 1_000.0;
    let pods = written.of("create pods") + written.of("delete pods");
    json!({
        "pods": per_sandbox(pods),
        "all": per_sandbox(written.total()),
        "statuses": written.of("patch pools/status"),
        "revisions": written.of("create controllerrevisions") + written.of("patch controllerrevisions"),
        "409": written.answered(409),
    })
}

fn rounded(time: Duration, unit: f64) -> f64 {
    (time.as_secs_f64() * unit * 100.0).round() / 100.0
}
