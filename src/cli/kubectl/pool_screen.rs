//! The screen of `kubectl warmpool status`: the state of one pool.

use crate::api::claim::Phase;
use crate::cache::index::Index;
use crate::cli::dry_run::PoolPlan;
use crate::cli::kubectl::table::Table;
use crate::cli::kubectl::why::explain_pool;
use crate::cli::kubectl::why::format::{between, claims};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::sandbox_state::SandboxState;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The states that have a column.
const COLUMNS: [(SandboxState, &str); 5] = [
    (SandboxState::Available, "AVAILABLE"),
    (SandboxState::Warming, "WARMING"),
    (SandboxState::Claimed, "CLAIMED"),
    (SandboxState::Draining, "DRAINING"),
    (SandboxState::Terminating, "TERMINATING"),
];

/// The lines about a pool; `None` when it does not exist.
pub fn screen(index: &Index, key: &Key, now: Timestamp) -> Option<Vec<String>> {
    let pool_plan = PoolPlan::of(index, key, now)?;
    let mut lines = vec![headline(&pool_plan), String::new()];
    lines.extend(sandboxes(&pool_plan, now));
    lines.push(String::new());
    lines.extend(claims_of(index, &pool_plan, now));
    lines.push(String::new());
    lines.extend(explain_pool(index, key, now).unwrap_or_default());
    Some(lines)
}

/// The conditions in one line.
fn headline(pool_plan: &PoolPlan) -> String {
    let pool = &pool_plan.snapshot.pool;
    let said = pool_plan.plan.status.conditions.iter();
    let conditions: Vec<_> = said
        .map(|condition| format!("{} {} ({})", condition.type_, condition.status, condition.reason))
        .collect();
    format!(
        "Pool {}/{}: {}",
        pool.key.namespace,
        pool.key.name,
        conditions.join(", ")
    )
}

/// A table of sandboxes by revision and state.
fn sandboxes(pool_plan: &PoolPlan, now: Timestamp) -> Vec<String> {
    let pool = &pool_plan.snapshot.pool;
    let update = &pool_plan.plan.status.update_revision;
    let mut counts: BTreeMap<&str, BTreeMap<SandboxState, usize>> = BTreeMap::new();
    counts.entry(update).or_default();
    for entry in &pool_plan.snapshot.sandboxes {
        let state = entry
            .sandbox
            .state_at(&pool.uid, &pool.spec.availability_rule, now);
        *counts
            .entry(&entry.sandbox.revision)
            .or_default()
            .entry(state)
            .or_default() += 1;
    }
    let titles = COLUMNS.iter().map(|(_, title)| *title);
    let mut table = Table::new(["REVISION"].into_iter().chain(titles));
    // The newest revision first.
    let (newest, older): (Vec<_>, Vec<_>) = counts.iter().partition(|(revision, _)| *revision == update);
    for (revision, states) in newest.into_iter().chain(older) {
        let name = if revision == update {
            format!("{revision} (latest)")
        } else {
            (*revision).to_string()
        };
        let count = |state: &SandboxState| states.get(state).copied().unwrap_or_default().to_string();
        table.row(
            [name]
                .into_iter()
                .chain(COLUMNS.iter().map(|(state, _)| count(state))),
        );
    }
    table.lines()
}

/// How many claims the pool serves, by phase, and the oldest that waits.
fn claims_of(index: &Index, pool_plan: &PoolPlan, now: Timestamp) -> Vec<String> {
    let key = &pool_plan.snapshot.pool.key;
    let all = index.claim_keys();
    let of_pool = all
        .iter()
        .filter_map(|claim| index.claim(claim))
        .filter(|claim| claim.key.namespace == key.namespace && claim.pool() == key.name);
    let mut phases: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in of_pool {
        let phase = match claim.status.phase {
            Some(Phase::Bound) => "bound",
            Some(Phase::Failed) => "failed",
            Some(Phase::Expired) => "expired",
            Some(Phase::Pending) | None => continue,
        };
        *phases.entry(phase).or_default() += 1;
    }
    let counts: Vec<_> = phases
        .iter()
        .map(|(phase, count)| format!("{count} {phase}"))
        .collect();
    let counts = if counts.is_empty() {
        "none".to_string()
    } else {
        counts.join(", ")
    };
    let mut lines = vec![format!("Claims: {counts}.")];
    let waiting = &pool_plan.plan.waiting;
    let oldest = waiting.iter().min_by_key(|(claim, _)| since(claim));
    if let Some((oldest, why)) = oldest {
        let age = between(since(oldest), now);
        let verb = if waiting.len() == 1 { "waits" } else { "wait" };
        lines.push(format!(
            "{} {verb}, the oldest ({}) for {age}: {}.",
            claims(waiting.len()),
            oldest.key.name,
            why.message
        ));
    }
    lines
}

fn since(claim: &Arc<Claim>) -> Timestamp {
    claim.waits_from(claim.created)
}
