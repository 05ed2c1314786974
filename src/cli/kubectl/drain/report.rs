//! Prints the forecast of a drain.

use crate::cli::kubectl::drain::forecast::{Forecast, Row};
use jiff::SignedDuration;
use serde::Serialize;
use std::io::{self, Write as _};

/// The JSON form of a forecast.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    node: &'a str,
    /// The drain ends by itself.
    ends: bool,
    /// How long it takes; null where that is not known.
    seconds: Option<i64>,
    sandboxes: Vec<SandboxReport<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SandboxReport<'a> {
    namespace: &'a str,
    pool: &'a str,
    sandbox: &'a str,
    claim: Option<&'a str>,
    round: Option<usize>,
    after_seconds: Option<i64>,
    outcome: &'a str,
    blocks: bool,
}

/// The forecast as one JSON document.
///
/// # Errors
/// Never in practice: every value has a JSON form.
pub(super) fn json(forecast: &Forecast) -> Result<String, serde_json::Error> {
    let report = Report {
        node: &forecast.node,
        ends: !forecast.blocks(),
        seconds: forecast.takes().map(|takes| takes.as_secs()),
        sandboxes: forecast.sandboxes.iter().map(of_sandbox).collect(),
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

fn of_sandbox(row: &Row) -> SandboxReport<'_> {
    SandboxReport {
        namespace: &row.pod.namespace,
        pool: &row.pool,
        sandbox: &row.pod.name,
        claim: row.claim.as_deref(),
        round: row.round,
        after_seconds: row.after.map(|after| after.as_secs()),
        outcome: &row.outcome,
        blocks: row.blocks,
    }
}

/// The forecast as a table, with a sentence on the whole below it.
///
/// # Errors
/// When the columns cannot be aligned.
pub(super) fn table(forecast: &Forecast) -> io::Result<String> {
    let mut text = String::new();
    if !forecast.sandboxes.is_empty() {
        let mut rows = tabwriter::TabWriter::new(Vec::new()).padding(3);
        writeln!(rows, "NAMESPACE\tPOOL\tSANDBOX\tCLAIM\tROUND\tAFTER\tOUTCOME")?;
        for row in &forecast.sandboxes {
            let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".into());
            writeln!(
                rows,
                "{}\t{}\t{}\t{}\t{}\t{}\t{}",
                row.pod.namespace,
                row.pool,
                row.pod.name,
                or_dash(row.claim.clone()),
                or_dash(row.round.map(|round| round.to_string())),
                or_dash(row.after.map(duration)),
                row.outcome
            )?;
        }
        let rows = rows
            .into_inner()
            .map_err(|error| io::Error::other(error.to_string()))?;
        text = String::from_utf8_lossy(&rows).into_owned() + "\n";
    }
    Ok(text + &summary(forecast) + "\n")
}

fn summary(forecast: &Forecast) -> String {
    let node = &forecast.node;
    let blocking = forecast.sandboxes.iter().filter(|row| row.blocks).count();
    let rounds = forecast
        .sandboxes
        .iter()
        .filter_map(|row| row.round)
        .max()
        .unwrap_or(0);
    let rounds = match rounds {
        0 => "no replacement is waited for".to_string(),
        1 => "1 round of replacements".to_string(),
        rounds => format!("{rounds} rounds of replacements"),
    };
    match (forecast.sandboxes.len(), blocking, forecast.takes()) {
        (0, ..) => format!("No sandbox runs on node {node}."),
        (_, 0, Some(takes)) => format!(
            "A drain of node {node} takes about {}: {rounds}.",
            duration(takes)
        ),
        (_, 0, None) => format!(
            "A drain of node {node} ends by itself, after {rounds}; no sandbox shows how long one takes to warm up."
        ),
        (_, 1, _) => format!("A drain of node {node} does not end by itself: 1 sandbox blocks it."),
        (_, blocking, _) => {
            format!("A drain of node {node} does not end by itself: {blocking} sandboxes block it.")
        }
    }
}

/// Whole seconds, or minutes and seconds.
fn duration(duration: SignedDuration) -> String {
    match duration.as_secs() {
        seconds @ ..60 => format!("{seconds}s"),
        seconds => format!("{}m{}s", seconds / 60, seconds % 60),
    }
}
