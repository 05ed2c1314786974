//! The order in which unclaimed sandboxes are removed.

use crate::model::known_nodes::KnownNodes;
use crate::model::node::Node;
use crate::model::sandbox::PodPhase;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use jiff::Timestamp;
use smol_str::SmolStr;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// What a sandbox is worth: those of the same worth differ in zone, node, age and name only.
pub(crate) fn worth(unclaimed: &UnclaimedSandbox, nodes: &KnownNodes) -> Worth {
    let sandbox = &unclaimed.sandbox;
    let is_hinted = nodes.of(sandbox).is_some_and(Node::is_hinted);
    let stands = (
        sandbox.node.is_some(),
        sandbox.phase,
        unclaimed.available,
        sandbox.ready_since.is_some(),
    );
    let stays = (!unclaimed.leaves_node(), !is_hinted);
    (stands, stays, sandbox.deletion_cost)
}

/// See [`worth`].
pub(crate) type Worth = ((bool, PodPhase, bool, bool), (bool, bool), i32);

/// Sorts into the order of removal, first to go first: unscheduled; Pending, Unknown, Running; not
/// available; not ready; leaving its node; on a node that may go soon; lower deletion cost; more of the pool's
/// sandboxes in its zone, then on its node; ready for a shorter time; more restarts; newer; then name. It is the order
/// of a ReplicaSet (`ActivePodsWithRanks`), with availability before readiness, with zones, and without its logarithmic
/// buckets of age.
pub(crate) fn by_removal(unclaimed: &mut [UnclaimedSandbox], nodes: &KnownNodes) {
    let mut on_node: HashMap<&str, usize> = HashMap::new();
    for node in unclaimed.iter().filter_map(|i| i.sandbox.node.as_deref()) {
        *on_node.entry(node).or_default() += 1;
    }
    sort(unclaimed, nodes, &on_node, &HashMap::new());
    let zones: BTreeSet<_> = nodes.nodes.values().map(|node| &node.zone).collect();
    if zones.len() > 1 {
        let ranks = ranks_in_zone(unclaimed, nodes);
        sort(unclaimed, nodes, &on_node, &ranks);
    }
}

/// For each sandbox, how many sandboxes of its zone are removed no earlier, itself included. Removal by this rank keeps
/// the zones even, however many sandboxes go.
fn ranks_in_zone(sorted: &[UnclaimedSandbox], nodes: &KnownNodes) -> HashMap<SmolStr, usize> {
    let mut in_zone: HashMap<&str, usize> = HashMap::new();
    let mut ranks = HashMap::new();
    for unclaimed in sorted.iter().rev() {
        if let Some(node) = nodes.of(unclaimed.sandbox) {
            let rank = in_zone.entry(&node.zone).or_default();
            *rank += 1;
            ranks.insert(unclaimed.sandbox.uid.clone(), *rank);
        }
    }
    ranks
}

fn sort(
    unclaimed: &mut [UnclaimedSandbox],
    nodes: &KnownNodes,
    on_node: &HashMap<&str, usize>,
    ranks_in_zone: &HashMap<SmolStr, usize>,
) {
    unclaimed.sort_by_cached_key(|i| {
        let sandbox = i.sandbox;
        let neighbours = sandbox
            .node
            .as_deref()
            .and_then(|node| on_node.get(node))
            .copied()
            .unwrap_or(0);
        (
            worth(i, nodes),
            Reverse(ranks_in_zone.get(&sandbox.uid).copied().unwrap_or_default()),
            Reverse(neighbours),
            Reverse(sandbox.ready_since.unwrap_or(Timestamp::MAX)),
            Reverse(sandbox.restarts),
            Reverse(sandbox.created),
            sandbox.key.name.as_str(),
        )
    });
}
