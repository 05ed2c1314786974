//! Prints the forecast of a drain.

use crate::cli::kubectl::drain::forecast::{Forecast, Row};
use crate::cli::kubectl::table::Table;
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Serialize;

/// What `kubectl warmpool drain NODE --dry-run -o json` prints.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct Report<'a> {
    /// Name of the node.
    node: &'a str,
    /// The drain ends by itself.
    ends: bool,
    /// How long it takes; null where that is not known.
    seconds: Option<i64>,
    /// The sandboxes on the node, in the order in which they go.
    sandboxes: Vec<SandboxReport<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SandboxReport<'a> {
    /// Namespace of the pod.
    namespace: &'a str,
    /// Pool of the sandbox.
    pool: &'a str,
    /// Name of the pod.
    sandbox: &'a str,
    /// The claim that it belongs to.
    claim: Option<&'a str>,
    /// How many rounds of replacements it waits for.
    round: Option<usize>,
    /// Seconds from the cordon until it goes; null where that is not known.
    after_seconds: Option<i64>,
    /// What happens to it.
    outcome: &'a str,
    /// It keeps the drain from ending.
    blocks: bool,
}

/// The forecast for programs.
pub(super) fn report(forecast: &Forecast) -> Report<'_> {
    Report {
        node: &forecast.node,
        ends: !forecast.blocks(),
        seconds: forecast.takes().map(|takes| takes.as_secs()),
        sandboxes: forecast.sandboxes.iter().map(of_sandbox).collect(),
    }
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
pub(super) fn table(forecast: &Forecast) -> String {
    let mut text = String::new();
    if !forecast.sandboxes.is_empty() {
        let titles = [
            "NAMESPACE",
            "POOL",
            "SANDBOX",
            "CLAIM",
            "ROUND",
            "AFTER",
            "OUTCOME",
        ];
        let mut table = Table::new(titles.into_iter());
        for row in &forecast.sandboxes {
            let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".into());
            let cells = [
                row.pod.namespace.to_string(),
                row.pool.clone(),
                row.pod.name.to_string(),
                or_dash(row.claim.clone()),
                or_dash(row.round.map(|round| round.to_string())),
                or_dash(row.after.map(duration)),
                row.outcome.clone(),
            ];
            table.row(cells.into_iter());
        }
        text = table.lines().join("\n") + "\n\n";
    }
    text + &summary(forecast) + "\n"
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
