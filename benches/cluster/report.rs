//! Prints our figures beside the floor and other operators.

use crate::Outcome;
use crate::audit::Writes;
use crate::load::{Burst, Served};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// Whose figure it is.
#[derive(Clone, Copy)]
pub enum Side {
    Ours,
    Floor,
}

/// A line of the table: the figure, the values that are shown, and the best result of another operator.
///
/// Results of others are medians on two processors for everything: Kubernetes 1.36.3, KWOK with pods Ready at once, audit log
/// on.
struct Row {
    figure: &'static str,
    description: &'static str,
    values: &'static [&'static str],
    peer: &'static str,
}

const fn row(
    figure: &'static str,
    description: &'static str,
    values: &'static [&'static str],
    peer: &'static str,
) -> Row {
    Row {
        figure,
        description,
        values,
        peer,
    }
}

const TIMES: &[&str] = &["p50", "p99", "max"];
const PER_CLAIM: &[&str] = &["per_claim"];
const CPU: &[&str] = &["cpu_s_per_1000"];

const ROWS: &[Row] = &[
    row(
        "in_a_row",
        "one claim after the other: p50 / p99 / max ms",
        TIMES,
        "",
    ),
    row(
        "rate5",
        "5 claims/s: p50 / p99 / max ms",
        TIMES,
        "31 / 51 OpenSandbox",
    ),
    row(
        "rate20",
        "20 claims/s: p50 / p99 / max ms",
        TIMES,
        "46 / 118 OpenSandbox",
    ),
    row(
        "rate50",
        "50 claims/s: p50 / p99 / max ms",
        TIMES,
        "482 / 1097 OpenSandbox, tuned",
    ),
    row(
        "rate50",
        "50 claims/s: p99 / p50",
        &["p99_by_p50"],
        "2.3 OpenSandbox, tuned",
    ),
    row(
        "rate50",
        "50 claims/s: claims that a later one passed / by ms at most",
        &["passed", "passed_by"],
        "",
    ),
    row("stock50", "50 claims/s from stock: p50 / p99 / max ms", TIMES, ""),
    row(
        "stock50",
        "50 claims/s from stock: p99 / p50",
        &["p99_by_p50"],
        "",
    ),
    row(
        "stock50",
        "50 claims/s from stock: claims that a later one passed / by ms at most",
        &["passed", "passed_by"],
        "",
    ),
    row(
        "batch",
        "one claim for 100 on 120 warm: p50 / max ms",
        &["p50", "max"],
        "",
    ),
    row(
        "burst",
        "burst of 300 on 320 warm: all POSTed / all Ready / full again s",
        &["posted", "ready", "refilled"],
        "4.5 OpenSandbox, tuned",
    ),
    row(
        "rate20_writes",
        "own writes per claim at 20/s, refill included",
        PER_CLAIM,
        "5.8 OpenSandbox, tuned",
    ),
    row("burst_writes", "own writes per claim in the burst", PER_CLAIM, ""),
    row(
        "rate20_writes",
        "CPU s per 1,000 claims at 20/s, refill included",
        CPU,
        "",
    ),
    row("rate50_writes", "CPU s per 1,000 claims at 50/s", CPU, ""),
    row("stock50_writes", "own writes per claim from stock", PER_CLAIM, ""),
    row("burst_writes", "CPU s per 1,000 claims in the burst", CPU, ""),
    row("rate20_writes", "at 20/s answered 409 / 422", &["409", "422"], ""),
    row(
        "burst_writes",
        "in the burst answered 409 / 422",
        &["409", "422"],
        "",
    ),
    row("idle", "writes a minute with 1,000 warm", &["writes"], ""),
    row(
        "idle",
        "CPU s a minute with 1,000 warm",
        &["cpu_s"],
        "0.03 OpenSandbox",
    ),
    row(
        "timers",
        "10,000 pending timers for 30 s: CPU s / writes",
        &["cpu_s", "writes"],
        "",
    ),
    row("fill", "fill of 1,000: s", &["seconds"], "9.8 OpenSandbox, tuned"),
    row(
        "memory",
        "resident with 1,000 warm: MiB",
        &["mib"],
        "81 OpenSandbox",
    ),
    row(
        "roll",
        "roll 20 at 25 %, Ready after 2 s: least available / s",
        &["least", "seconds"],
        "15 / 8.2 OpenSandbox",
    ),
    row("roll1000", "roll 1,000 at 25 %: s", &["seconds"], ""),
    row("roll1000", "roll 1,000 at 25 %: least available", &["least"], ""),
    row(
        "roll1000",
        "roll 1,000: writes per sandbox, of pods / all",
        &["pods", "all"],
        "",
    ),
];

/// The figures measured so far.
#[derive(Default)]
pub struct Report {
    ours: Map<String, Value>,
    floor: Map<String, Value>,
    surroundings: Map<String, Value>,
}

impl Report {
    pub fn record(&mut self, figure: &str, side: Side, value: Value) {
        let of_side = match side {
            Side::Ours => &mut self.ours,
            Side::Floor => &mut self.floor,
        };
        of_side.insert(figure.into(), value);
    }

    /// Records the other load of the machine during a phase.
    pub fn surroundings(&mut self, phase: &str, value: Value) {
        self.surroundings.insert(phase.into(), value);
    }

    /// One line for each figure that was measured.
    pub fn table(&self) -> String {
        let mut lines = vec![["figure", "ours", "floor", "best of others"].map(String::from)];
        for row in ROWS {
            let (ours, floor) = (cell(&self.ours, row), cell(&self.floor, row));
            if ours.is_some() || floor.is_some() {
                let dash = || "-".to_string();
                let peer = if row.peer.is_empty() {
                    dash()
                } else {
                    row.peer.into()
                };
                lines.push([
                    row.description.into(),
                    ours.unwrap_or_else(dash),
                    floor.unwrap_or_else(dash),
                    peer,
                ]);
            }
        }
        let mut widths = [0; 4];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut table = String::new();
        for line in &lines {
            let cells = line
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:<width$}"));
            let text = cells.collect::<Vec<_>>().join("  ");
            // Writing to a string cannot fail.
            _ = writeln!(table, "{}", text.trim_end());
        }
        table
    }

    /// Adds one line of JSON, so that runs can be compared.
    pub fn append_to(&self, file: &Path) -> Outcome<()> {
        let line = json!({
            "at": Timestamp::now().to_string(),
            "ours": self.ours,
            "floor": self.floor,
            "machine": self.surroundings,
        });
        let mut file = OpenOptions::new().create(true).append(true).open(file)?;
        writeln!(file, "{line}")?;
        Ok(())
    }
}

fn cell(side: &Map<String, Value>, row: &Row) -> Option<String> {
    let figure = side.get(row.figure)?;
    let shown = row
        .values
        .iter()
        .map(|value| figure.get(value)?.as_f64().map(show));
    Some(shown.collect::<Option<Vec<_>>>()?.join(" / "))
}

/// Prints smaller values with more decimals.
fn show(value: f64) -> String {
    if value.fract() == 0.0 || value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 1.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Latencies in milliseconds. With fewer than 100 claims the p99 is the maximum.
pub fn milliseconds(served: &Served) -> Value {
    let times = &served.latencies;
    let at = |share: usize| {
        let index = (times.len() * share).div_ceil(100).saturating_sub(1);
        rounded(times.get(index).copied().unwrap_or_default(), 1000.0)
    };
    let ratio = rounded(Duration::from_secs_f64(at(99) / at(50).max(0.01)), 1.0);
    json!({
        "p50": at(50), "p99": at(99), "max": at(100), "p99_by_p50": ratio,
        "claims": times.len(), "cold": served.cold,
        "passed": served.passed, "passed_by": rounded(served.passed_by, 1000.0),
    })
}

/// The times of a burst in seconds, and where it was measured the time until the pool was full again.
pub fn seconds(burst: &Burst, refilled: Option<Duration>) -> Value {
    json!({
        "posted": rounded(burst.posted, 1.0),
        "ready": rounded(burst.ready, 1.0),
        "refilled": refilled.map(|time| rounded(time, 1.0)),
        "cold": burst.served.cold,
    })
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
