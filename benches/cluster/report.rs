//! Prints our figures beside the floor, the goal and other operators: the median of the repetitions, and their range.

use crate::Outcome;
use crate::machine::{DISTURBED, Surroundings};
use crate::median::median;
use crate::rows::{QUOTIENTS, Quotient, ROWS, Row, WRITES, row};
use crate::speed::variation;
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

/// How often a phase is measured in all while other processes disturb it.
pub const TRIES: usize = 3;

const COLUMNS: [&str; 6] = [
    "figure",
    "ours",
    "floor",
    "times the floor",
    "goal",
    "best of others",
];

/// The values of each figure, one for each repetition.
type Figures = BTreeMap<String, Vec<Value>>;

/// The figures measured so far.
#[derive(Default)]
pub struct Report {
    ours: Figures,
    floor: Figures,
    /// The values recorded by this try of the phase that runs, in their order.
    of_try: Vec<(Side, String)>,
    /// How often a phase is measured at most.
    tries: usize,
    /// How often the phase that runs was measured and disturbed.
    disturbed_tries: usize,
    /// Figures measured while other processes used the machine.
    disturbed: BTreeSet<String>,
    /// Other processes used the machine during a phase, which may have no figures.
    was_disturbed: bool,
    surroundings: Vec<Value>,
    /// What the fixed calculation took before each try that counts.
    calculated_in: Vec<Duration>,
}

impl Report {
    /// A report whose phases are measured at most `tries` times each.
    pub fn with_tries(tries: usize) -> Self {
        Self {
            tries,
            ..Self::default()
        }
    }

    pub fn record(&mut self, figure: &str, side: Side, value: Value) {
        self.of(side).entry(figure.into()).or_default().push(value);
        self.of_try.push((side, figure.into()));
    }

    /// A try of a phase is over. Returns whether the phase is measured again: if the machine was not quiet and a try is left.
    /// Then the figures of this try are dropped. Those of a disturbed last try are marked. Before the try the fixed calculation
    /// took `calculated_in`.
    pub fn try_is_over(&mut self, phase: &str, surroundings: &Surroundings, calculated_in: Duration) -> bool {
        let of_try = std::mem::take(&mut self.of_try);
        let is_disturbed = surroundings.disturbance().is_some();
        let is_repeated = is_disturbed && self.disturbed_tries + 1 < self.tries;
        self.surroundings.push(json!({
            "phase": phase,
            "load_average": surroundings.load_average,
            "processors_of_others": surroundings.others,
            "calculation_ms": calculated_in.as_secs_f64() * 1e3,
            "measured_again": is_repeated,
        }));
        if is_repeated {
            self.disturbed_tries += 1;
            for (side, figure) in of_try {
                self.drop_last(side, &figure);
            }
            return true;
        }
        self.disturbed_tries = 0;
        self.calculated_in.push(calculated_in);
        if is_disturbed {
            self.disturbed
                .extend(of_try.into_iter().map(|(_, figure)| figure));
            self.was_disturbed = true;
        }
        false
    }

    fn of(&mut self, side: Side) -> &mut Figures {
        match side {
            Side::Ours => &mut self.ours,
            Side::Floor => &mut self.floor,
        }
    }

    /// Drops the value of a figure that was recorded last.
    fn drop_last(&mut self, side: Side, figure: &str) {
        let figures = self.of(side);
        let Some(values) = figures.get_mut(figure) else {
            return;
        };
        values.pop();
        if values.is_empty() {
            figures.remove(figure);
        }
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
        self.add_speed(&mut table);
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
        self.add_speed(&mut table);
        table
    }

    /// Says below a table how much the machine's speed varied, where more than one phase was measured.
    fn add_speed(&self, table: &mut String) {
        if let Some(variation) = variation(&self.calculated_in) {
            _ = writeln!(table, "\n{variation}");
        }
    }

    fn lines(&self) -> Vec<[String; COLUMNS.len()]> {
        let mut lines = vec![COLUMNS.map(String::from)];
        let of_ours = self.with_quotients();
        for row in ROWS {
            let (ours, floor) = (cell(&of_ours, row), cell(&self.floor, row));
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
            let mark = if self.is_disturbed(row.figure) {
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

    /// Our figures, and those that divide one of them by another.
    fn with_quotients(&self) -> Figures {
        let mut figures = self.ours.clone();
        for Quotient {
            figure,
            value,
            of,
            by,
        } in QUOTIENTS
        {
            let median_of = |figure: &'static str| middle(&self.ours, &row(figure, "", &[], "", ""), value);
            if let (Some(of), Some(by)) = (median_of(of), median_of(by).filter(|by| *by > 0.0)) {
                figures.insert((*figure).into(), vec![json!({"times": of / by})]);
            }
        }
        figures
    }

    /// Other processes used the machine while the figure or a part of it was measured.
    fn is_disturbed(&self, figure: &str) -> bool {
        let of_parts = QUOTIENTS.iter().filter(|quotient| quotient.figure == figure);
        let mut parts = of_parts.flat_map(|quotient| [quotient.of, quotient.by]);
        self.disturbed.contains(figure) || parts.any(|part| self.disturbed.contains(part))
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

    /// How many times the floor each of our values is: the median and range of the repetitions.
    fn beside_the_floor(&self, row: &Row) -> Option<String> {
        let times = row.values.iter().map(|value| {
            let mut times = self.times_the_floor(row, value)?;
            times.sort_by(f64::total_cmp);
            median_and_range(&times, |times| format!("{times:.2}"))
        });
        slashed(times)
    }

    /// Our value of each repetition, divided by the median of what was measured by hand right before and after it. `None` where
    /// one side was not measured in every repetition.
    fn times_the_floor(&self, row: &Row, value: &str) -> Option<Vec<f64>> {
        let values = |side: &Figures| -> Option<Vec<f64>> {
            let runs = side.get(row.figure)?.iter();
            runs.map(|run| run.get(value)?.as_f64()).collect()
        };
        let (ours, floor) = (values(&self.ours)?, values(&self.floor)?);
        let each = floor.len().checked_div(ours.len()).filter(|each| *each > 0)?;
        if each * ours.len() != floor.len() {
            return None;
        }
        let beside = ours.iter().zip(floor.chunks(each));
        beside
            .map(|(ours, floor)| Some(ours / median(floor).filter(|floor| *floor > 0.0)?))
            .collect()
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
    let values = row.values.iter();
    slashed(values.map(|value| median_and_range(&numbers(side, row, value), show)))
}

/// The median of sorted numbers, with their range if they differ.
fn median_and_range(sorted: &[f64], show: impl Fn(f64) -> String) -> Option<String> {
    let (least, most) = (show(*sorted.first()?), show(*sorted.last()?));
    let middle = show(median(sorted)?);
    Some(if least == most {
        middle
    } else {
        format!("{middle} ({least}-{most})")
    })
}

/// The parts of a cell, with a dash for each that is unknown; `None` if all are.
fn slashed(parts: impl Iterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<_> = parts.collect();
    let is_known = parts.iter().any(Option::is_some);
    let parts = parts.into_iter().map(|part| part.unwrap_or_else(|| "-".into()));
    is_known.then(|| parts.collect::<Vec<_>>().join(" / "))
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
