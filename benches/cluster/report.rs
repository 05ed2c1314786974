//! Prints our figures beside the floor, the goal and other operators: the median of the repetitions, and their range.

use crate::Outcome;
use crate::audit::Writes;
use crate::load::{Burst, Served};
use crate::machine::{DISTURBED, Surroundings};
use crate::median::median;
use hdrhistogram::Histogram;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
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

/// A line of the table: the figure, the values that are shown, the goal, and the best result of another operator.
///
/// Results of others are medians on two processors for everything: Kubernetes 1.36.3, KWOK with pods Ready at once, audit log
/// on.
struct Row {
    figure: &'static str,
    description: &'static str,
    values: &'static [&'static str],
    goal: &'static str,
    peer: &'static str,
}

const fn row(
    figure: &'static str,
    description: &'static str,
    values: &'static [&'static str],
    goal: &'static str,
    peer: &'static str,
) -> Row {
    Row {
        figure,
        description,
        values,
        goal,
        peer,
    }
}

/// The writes whose cost for the API server is measured.
pub const WRITES: [&str; 7] = [
    "binding, JSON Patch with its tests",
    "binding, merge patch",
    "binding, PUT",
    "status of a claim, merge patch",
    "status of a claim, JSON Patch",
    "status of a claim, PUT",
    "creation of a pod",
];

const COLUMNS: [&str; 6] = [
    "figure",
    "ours",
    "floor",
    "times the floor",
    "goal",
    "best of others",
];

/// Longest latency and significant digits of a histogram.
const LONGEST: Duration = Duration::from_secs(600);
const DIGITS: u8 = 3;

const TIMES: &[&str] = &["p50", "p99", "max"];
const PER_CLAIM: &[&str] = &["per_claim"];
const CPU: &[&str] = &["cpu_s_per_1000"];
const FIRST: &[&str] = &["p50", "max"];
const MEMORY: &[&str] = &["mib", "after_start"];
const CPU_EACH: &[&str] = &["cpu_ms_each"];

const ROWS: &[Row] = &[
    row(
        "in_a_row",
        "one claim after the other: p50 / p99 / max ms",
        TIMES,
        "",
        "",
    ),
    row(
        "rate5",
        "5 claims/s: p50 / p99 / max ms",
        TIMES,
        "1.2 / - / - x floor",
        "31 / 51 OpenSandbox",
    ),
    row(
        "rate20",
        "20 claims/s: p50 / p99 / max ms",
        TIMES,
        "1.2 / 1.5 / - x floor",
        "46 / 118 OpenSandbox",
    ),
    row(
        "rate50",
        "50 claims/s: p50 / p99 / max ms",
        TIMES,
        "",
        "482 / 1097 OpenSandbox, tuned",
    ),
    row(
        "rate50",
        "50 claims/s: p99 / p50",
        &["p99_by_p50"],
        "",
        "2.3 OpenSandbox, tuned",
    ),
    row(
        "rate50",
        "50 claims/s: claims that a later one passed / by ms at most",
        &["passed", "passed_by"],
        "",
        "",
    ),
    row(
        "stock50",
        "50 claims/s from stock: p50 / p99 / max ms",
        TIMES,
        "p99 100 ms",
        "",
    ),
    row(
        "stock50",
        "50 claims/s from stock: p99 / p50",
        &["p99_by_p50"],
        "",
        "",
    ),
    row(
        "stock50",
        "50 claims/s from stock: claims that a later one passed / by ms at most",
        &["passed", "passed_by"],
        "",
        "",
    ),
    row(
        "sustained",
        "claims/s held for 30 s with released claims replaced: rate / its p99 ms",
        &["rate", "p99"],
        "50 / 1000",
        "20",
    ),
    row(
        "batch",
        "one claim for 100 on 120 warm: p50 / max ms",
        &["p50", "max"],
        "",
        "",
    ),
    row(
        "burst",
        "burst of 300 on 320 warm: all POSTed / all Ready / full again s",
        &["posted", "ready", "refilled"],
        "- / 1.25 x floor / -",
        "4.5 OpenSandbox, tuned",
    ),
    row(
        "rate20_writes",
        "own writes per claim at 20/s, refill included",
        PER_CLAIM,
        "",
        "5.8 OpenSandbox, tuned",
    ),
    row(
        "burst_writes",
        "own writes per claim in the burst",
        PER_CLAIM,
        "",
        "",
    ),
    row(
        "rate20_writes",
        "CPU s per 1,000 claims at 20/s, refill included",
        CPU,
        "2.0",
        "",
    ),
    row("rate50_writes", "CPU s per 1,000 claims at 50/s", CPU, "2.0", ""),
    row(
        "stock50_writes",
        "own writes per claim from stock",
        PER_CLAIM,
        "",
        "",
    ),
    row("burst_writes", "CPU s per 1,000 claims in the burst", CPU, "", ""),
    row(
        "rate20_writes",
        "at 20/s answered 409 / 422",
        &["409", "422"],
        "",
        "",
    ),
    row(
        "burst_writes",
        "in the burst answered 409 / 422",
        &["409", "422"],
        "",
        "",
    ),
    row("idle", "writes a minute with 1,000 warm", &["writes"], "", ""),
    row(
        "idle",
        "CPU s a minute with 1,000 warm",
        &["cpu_s"],
        "",
        "0.03 OpenSandbox",
    ),
    row(
        "timers",
        "10,000 pending timers for 30 s: CPU s / writes",
        &["cpu_s", "writes"],
        "",
        "",
    ),
    row(
        "fill",
        "fill of 1,000: s",
        &["seconds"],
        "1.15 x floor",
        "9.8 OpenSandbox, tuned",
    ),
    row(
        "start10k",
        "first binding after a start with 10,000 warm: p50 / max s",
        FIRST,
        "0.5 / -",
        "",
    ),
    row(
        "start50k",
        "first binding after a start with 50,000 warm: p50 / max s",
        FIRST,
        "",
        "",
    ),
    row(
        "fill",
        "CPU ms per sandbox in a fill of 1,000",
        CPU_EACH,
        "0.5",
        "",
    ),
    row(
        "fill10k",
        "CPU ms per sandbox in a fill of 10,000",
        CPU_EACH,
        "0.5",
        "",
    ),
    row(
        "fill50k",
        "CPU ms per sandbox in a fill of 50,000",
        CPU_EACH,
        "0.5",
        "",
    ),
    row("memory0", "resident without pods: MiB", &["mib"], "12", ""),
    row(
        "memory",
        "resident with 1,000 warm: MiB",
        &["mib"],
        "15",
        "81 OpenSandbox",
    ),
    row(
        "memory10k",
        "resident with 10,000 warm: after the fill / after a start MiB",
        MEMORY,
        "30 / 1.25 x the fill",
        "",
    ),
    row(
        "memory50k",
        "resident with 50,000 warm: after the fill / after a start MiB",
        MEMORY,
        "100 / 1.25 x the fill",
        "",
    ),
    row(
        "roll",
        "roll 20 at 25 %, Ready after 2 s: least available / s",
        &["least", "seconds"],
        "15 / 8.4",
        "15 / 8.2 OpenSandbox",
    ),
    row("roll1000", "roll 1,000 at 25 %: s", &["seconds"], "", ""),
    row(
        "roll1000",
        "roll 1,000 at 25 %: least available",
        &["least"],
        "",
        "",
    ),
    row(
        "roll1000",
        "roll 1,000: writes per sandbox, of pods / all",
        &["pods", "all"],
        "",
        "",
    ),
];

/// The values of each figure, one for each repetition.
type Figures = BTreeMap<String, Vec<Value>>;

/// The figures measured so far.
#[derive(Default)]
pub struct Report {
    ours: Figures,
    floor: Figures,
    /// The figures of the phase that runs.
    of_phase: BTreeSet<String>,
    /// Figures measured while other processes used the machine.
    disturbed: BTreeSet<String>,
    /// Other processes used the machine during a phase, which may have no figures.
    was_disturbed: bool,
    surroundings: Vec<Value>,
}

impl Report {
    pub fn record(&mut self, figure: &str, side: Side, value: Value) {
        let of_side = match side {
            Side::Ours => &mut self.ours,
            Side::Floor => &mut self.floor,
        };
        of_side.entry(figure.into()).or_default().push(value);
        self.of_phase.insert(figure.into());
    }

    /// A phase is over. Its figures are marked if the machine was not quiet.
    pub fn phase_is_over(&mut self, phase: &str, surroundings: &Surroundings) {
        let of_phase = std::mem::take(&mut self.of_phase);
        if surroundings.disturbance().is_some() {
            self.disturbed.extend(of_phase);
            self.was_disturbed = true;
        }
        self.surroundings.push(json!({
            "phase": phase,
            "load_average": surroundings.load_average,
            "processors_of_others": surroundings.others,
        }));
    }

    /// The machine was quiet during every phase.
    pub fn is_quiet(&self) -> bool {
        !self.was_disturbed
    }

    /// One line for each figure that was measured, for a terminal.
    pub fn table(&self) -> String {
        let lines = self.lines();
        let mut widths = [0; COLUMNS.len()];
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

    /// The same table in Markdown.
    pub fn markdown(&self) -> String {
        let mut table = String::new();
        for (number, line) in self.lines().iter().enumerate() {
            _ = writeln!(table, "| {} |", line.join(" | "));
            if number == 0 {
                _ = writeln!(table, "|{}", "---|".repeat(line.len()));
            }
        }
        table
    }

    fn lines(&self) -> Vec<[String; COLUMNS.len()]> {
        let mut lines = vec![COLUMNS.map(String::from)];
        for row in ROWS {
            let (ours, floor) = (cell(&self.ours, row), cell(&self.floor, row));
            if ours.is_none() && floor.is_none() {
                continue;
            }
            let or_dash = |text: &str| {
                if text.is_empty() {
                    "-".into()
                } else {
                    text.to_string()
                }
            };
            let mark = if self.disturbed.contains(row.figure) {
                DISTURBED
            } else {
                ""
            };
            lines.push([
                format!("{}{mark}", row.description),
                or_dash(&ours.unwrap_or_default()),
                or_dash(&floor.unwrap_or_default()),
                or_dash(&self.beside_the_floor(row).unwrap_or_default()),
                or_dash(row.goal),
                or_dash(row.peer),
            ]);
        }
        lines
    }

    /// What each write costs the API server, in Markdown; `None` where that was not measured.
    pub fn writes(&self) -> Option<String> {
        let mut table =
            "| write | CPU of the API server, ms | until the answer, ms |\n|---|---|---|\n".to_string();
        for write in WRITES {
            let of = |value: &'static [&'static str]| cell(&self.ours, &row(write, "", value, "", ""));
            let (cpu, answered) = (of(&["cpu"])?, of(&["answered"])?);
            _ = writeln!(table, "| {write} | {cpu} | {answered} |");
        }
        Some(table)
    }

    /// How many times the floor our first values are.
    fn beside_the_floor(&self, row: &Row) -> Option<String> {
        let times = row.values.iter().map(|value| {
            let ours = middle(&self.ours, row, value)?;
            let floor = middle(&self.floor, row, value).filter(|floor| *floor > 0.0)?;
            Some(format!("{:.2}", ours / floor))
        });
        let known: Vec<_> = times.map_while(|times| times).collect();
        (!known.is_empty()).then(|| known.join(" / "))
    }

    /// Adds one line of JSON, so that runs can be compared.
    pub fn append_to(&self, file: &Path) -> Outcome<()> {
        let line = json!({
            "at": Timestamp::now().to_string(),
            "quiet": self.is_quiet(),
            "ours": self.ours,
            "floor": self.floor,
            "disturbed": self.disturbed,
            "machine": self.surroundings,
        });
        let mut file = OpenOptions::new().create(true).append(true).open(file)?;
        writeln!(file, "{line}")?;
        Ok(())
    }
}

/// The measured numbers of one value of a row, sorted.
fn numbers(side: &Figures, row: &Row, value: &str) -> Vec<f64> {
    let runs = side.get(row.figure).into_iter().flatten();
    let mut numbers: Vec<f64> = runs.filter_map(|run| run.get(value)?.as_f64()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// The median of the repetitions.
fn middle(side: &Figures, row: &Row, value: &str) -> Option<f64> {
    median(&numbers(side, row, value))
}

/// The median of each value, with the range of the repetitions.
fn cell(side: &Figures, row: &Row) -> Option<String> {
    let shown = |value: &&str| {
        let numbers = numbers(side, row, value);
        let (least, most) = (numbers.first()?, numbers.last()?);
        let middle = show(median(&numbers)?);
        let range = format!("{}-{}", show(*least), show(*most));
        Some(if least == most {
            middle
        } else {
            format!("{middle} ({range})")
        })
    };
    let cells: Vec<_> = row.values.iter().map(shown).collect();
    let is_measured = cells.iter().any(Option::is_some);
    let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".into()));
    is_measured.then(|| cells.collect::<Vec<_>>().join(" / "))
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
