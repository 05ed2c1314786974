//! Clauses of the condition `Available`: sandboxes that leave their nodes, wait for a node, or terminate on a dead
//! node.

use crate::api::disruption::DrainPolicy;
use crate::model::known_nodes::NodeAccess;
use crate::model::leaving_reason::LeavingReason;
use crate::model::node::Node;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::scheduling::Scheduling;
use crate::planner::draft::Draft;
use crate::planner::leave_nodes;
use crate::planner::pod_disruption_budgets;
use std::collections::BTreeMap;

/// The clauses, each after a semicolon; empty where there is nothing to say.
pub(crate) fn clauses(draft: &Draft) -> String {
    let clauses = [
        leaving(draft),
        without_node(
            draft,
            Scheduling::Unschedulable,
            "no node has capacity for",
            "free capacity, or add a node",
        ),
        without_node(
            draft,
            Scheduling::Gated,
            "scheduling gates hold",
            "another controller has to remove them",
        ),
        stuck(draft),
        denied(draft),
        pod_disruption_budgets::remark(draft),
    ];
    let clauses = clauses.into_iter().flatten();
    clauses.map(|clause| format!("; {clause}")).collect()
}

/// Sandboxes that leave their nodes, by reason, and until when they wait for replacements.
fn leaving(draft: &Draft) -> Option<String> {
    let mut reasons: BTreeMap<LeavingReason, usize> = BTreeMap::new();
    let leaving = draft.unclaimed.iter().filter(|unclaimed| unclaimed.leaves_node());
    for leaving in leaving.filter_map(|unclaimed| unclaimed.leaving) {
        *reasons.entry(leaving.reason).or_default() += 1;
    }
    let counts = reasons
        .iter()
        .map(|(reason, count)| format!("{count} {}", reason.as_str()));
    let counts: Vec<_> = counts.collect();
    let until = match (
        draft.snapshot.pool.spec.drain_policy,
        leave_nodes::first_deadline(draft),
    ) {
        (DrainPolicy::Wait, Some(deadline)) => format!(" and wait for their replacements until {deadline}"),
        (DrainPolicy::Wait, None) => " and wait for their replacements".to_string(),
        (DrainPolicy::Break, _) => String::new(),
    };
    (!reasons.is_empty()).then(|| format!("sandboxes leave their nodes ({}){until}", counts.join(", ")))
}

/// Sandboxes that have no node yet for this reason.
fn without_node(draft: &Draft, why: Scheduling, what: &str, remedy: &str) -> Option<String> {
    let waits = |sandbox: &Sandbox| sandbox.scheduling == why;
    let count = draft
        .unclaimed
        .iter()
        .filter(|unclaimed| waits(unclaimed.sandbox))
        .count();
    (count > 0).then(|| format!("{what} {count} unclaimed sandboxes, which are kept: {remedy}"))
}

/// Unclaimed sandboxes that are being deleted on nodes that do not answer, which no client can hurry.
fn stuck(draft: &Draft) -> Option<String> {
    let snapshot = draft.snapshot;
    let is_stuck = |sandbox: &Sandbox| {
        let is_dead = snapshot.nodes.of(sandbox).is_some_and(Node::is_not_ready);
        let is_own = matches!(&sandbox.owner, Owner::Pool { uid } if *uid == snapshot.pool.uid);
        sandbox.terminating && is_own && is_dead
    };
    let sandboxes = snapshot.sandboxes.iter().map(|entry| &entry.sandbox);
    let count = sandboxes.filter(|sandbox| is_stuck(sandbox)).count();
    let bounded = if snapshot.pool.spec.max_total.is_some() {
        " and count in capacity.maxTotal until the nodes are back or deleted"
    } else {
        ""
    };
    (count > 0).then(|| format!("{count} more are being deleted on nodes that are not ready{bounded}"))
}

/// The operator cannot know which sandboxes leave.
fn denied(draft: &Draft) -> Option<String> {
    let is_denied = draft.snapshot.nodes.access == NodeAccess::Denied;
    is_denied.then(|| {
        "the operator may not list and watch nodes, so it ignores drains, cordons and taints".to_string()
    })
}
