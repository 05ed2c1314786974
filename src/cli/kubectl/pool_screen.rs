//! The screen of `kubectl warmpool status`: the state of one pool in lines.

use crate::api::claim::Phase;
use crate::cli::kubectl::pool_report::{ClaimReport, PoolReport};
use crate::cli::kubectl::table::{NONE, Table};
use crate::cli::kubectl::why::format::{between, claims, short};
use crate::model::sandbox_state::SandboxState;
use jiff::Timestamp;

/// The states that have a column.
const COLUMNS: [(SandboxState, &str); 5] = [
    (SandboxState::Available, "AVAILABLE"),
    (SandboxState::Warming, "WARMING"),
    (SandboxState::Claimed, "CLAIMED"),
    (SandboxState::Draining, "DRAINING"),
    (SandboxState::Terminating, "TERMINATING"),
];

/// The lines about a pool; when they may be wide, with each sandbox and each claim.
pub fn screen(pool: &PoolReport, is_wide: bool, now: Timestamp) -> Vec<String> {
    let mut lines = vec![headline(pool), String::new()];
    lines.extend(revisions(pool));
    lines.push(String::new());
    if is_wide && !pool.sandboxes.is_empty() {
        lines.extend(sandboxes(pool, now));
        lines.push(String::new());
    }
    lines.extend(claims_of(pool, now));
    if is_wide && !pool.claims.is_empty() {
        lines.extend(each_claim(pool, now));
    }
    lines.push(String::new());
    lines.extend(pool.explanation.iter().cloned());
    lines
}

/// The conditions in one line.
fn headline(pool: &PoolReport) -> String {
    let said = pool.conditions.iter();
    let conditions: Vec<_> = said
        .map(|condition| format!("{} {} ({})", condition.type_, condition.status, condition.reason))
        .collect();
    format!("Pool {}/{}: {}", pool.namespace, pool.name, conditions.join(", "))
}

/// A table of sandboxes by revision and state.
fn revisions(pool: &PoolReport) -> Vec<String> {
    let titles = COLUMNS.iter().map(|(_, title)| *title);
    let mut table = Table::new(["REVISION"].into_iter().chain(titles));
    for row in &pool.revisions {
        let name = if row.latest {
            format!("{} (latest)", row.revision)
        } else {
            row.revision.clone()
        };
        let count = |state: &SandboxState| {
            let count = row.sandboxes.get(state.as_str());
            count.copied().unwrap_or_default().to_string()
        };
        table.row(
            [name]
                .into_iter()
                .chain(COLUMNS.iter().map(|(state, _)| count(state))),
        );
    }
    table.lines()
}

/// A table of each sandbox.
fn sandboxes(pool: &PoolReport, now: Timestamp) -> Vec<String> {
    let mut table = Table::new(["SANDBOX", "STATE", "REVISION", "NODE", "CLAIM", "AGE"].into_iter());
    let or_none = |cell: &Option<String>| cell.clone().unwrap_or_else(|| NONE.into());
    for sandbox in &pool.sandboxes {
        let cells = [
            sandbox.name.clone(),
            sandbox.state.to_string(),
            sandbox.revision.clone(),
            or_none(&sandbox.node),
            or_none(&sandbox.claim),
            age(&sandbox.created, now),
        ];
        table.row(cells.into_iter());
    }
    table.lines()
}

/// A table of each claim with all its sandboxes: the columns of `kubectl get` have the first alone.
fn each_claim(pool: &PoolReport, now: Timestamp) -> Vec<String> {
    let mut table = Table::new(["CLAIM", "PHASE", "WAIT", "SANDBOXES"].into_iter());
    for claim in &pool.claims {
        let wait = match (&claim.waiting_since, claim.wait_seconds) {
            (Some(since), _) => age(since, now),
            (None, Some(seconds)) => short(seconds),
            (None, None) => NONE.into(),
        };
        let sandboxes = if claim.sandboxes.is_empty() {
            NONE.into()
        } else {
            claim.sandboxes.join(",")
        };
        table.row([claim.name.clone(), format!("{:?}", claim.phase), wait, sandboxes].into_iter());
    }
    table.lines()
}

/// How many claims the pool serves, by phase, and the oldest that waits.
fn claims_of(pool: &PoolReport, now: Timestamp) -> Vec<String> {
    let phases = [
        (Phase::Bound, "bound"),
        (Phase::Expired, "expired"),
        (Phase::Failed, "failed"),
    ];
    let counts: Vec<_> = phases
        .into_iter()
        .map(|(phase, word)| (in_phase(pool, phase).count(), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let counts = if counts.is_empty() {
        "none".to_string()
    } else {
        counts.join(", ")
    };
    let mut lines = vec![format!("Claims: {counts}.")];
    let waiting = in_phase(pool, Phase::Pending).count();
    if let Some(oldest) = in_phase(pool, Phase::Pending).next() {
        let age = age(oldest.waiting_since.as_deref().unwrap_or_default(), now);
        let verb = if waiting == 1 { "waits" } else { "wait" };
        lines.push(format!(
            "{} {verb}, the oldest ({}) for {age}: {}.",
            claims(waiting),
            oldest.name,
            oldest.message.as_deref().unwrap_or_default()
        ));
    }
    lines
}

fn in_phase(pool: &PoolReport, phase: Phase) -> impl Iterator<Item = &ClaimReport> {
    pool.claims.iter().filter(move |claim| claim.phase == phase)
}

fn age(since: &str, now: Timestamp) -> String {
    since
        .parse()
        .map_or_else(|_| NONE.into(), |since| between(since, now))
}
