//! Prints our figures beside the floor, the goal and other operators: the median of the repetitions, and their range.

use crate::Outcome;
use crate::machine::{DISTURBED, Surroundings};
use crate::median::median;
use crate::rows::{QUOTIENTS, Quotient, ROWS, Row, WRITES, row};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Whose figure it is.
#[derive(Clone, Copy)]
pub enum Side {
    Ours,
    Floor,
}

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

    /// How many times the floor each of our values is.
    fn beside_the_floor(&self, row: &Row) -> Option<String> {
        let times = row.values.iter().map(|value| {
            let ours = middle(&self.ours, row, value)?;
            let floor = middle(&self.floor, row, value).filter(|floor| *floor > 0.0)?;
            Some(format!("{:.2}", ours / floor))
        });
        let times: Vec<Option<String>> = times.collect();
        let is_known = times.iter().any(Option::is_some);
        let times = times.into_iter().map(|times| times.unwrap_or_else(|| "-".into()));
        is_known.then(|| times.collect::<Vec<_>>().join(" / "))
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
