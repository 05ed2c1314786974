//! The order in which unclaimed sandboxes are removed.

use crate::model::known_nodes::KnownNodes;
use crate::model::node::Node;
use crate::model::sandbox::PodPhase;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// What a sandbox is worth: those of the same worth differ in zone, node, age and name only.
fn worth(unclaimed: &UnclaimedSandbox) -> Worth {
    let sandbox = &unclaimed.sandbox;
    let is_hinted = unclaimed.node.is_some_and(Node::is_hinted);
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
type Worth = ((bool, PodPhase, bool, bool), (bool, bool), i32);

/// Numbers the worths of sandboxes that are in the order of removal, and with it in ascending order of worth: those of the
/// same worth have the same number.
pub(crate) fn numbered_worths(sorted: &[UnclaimedSandbox]) -> Vec<usize> {
    let mut last = None;
    let mut number = 0;
    let mut number_of = |unclaimed| {
        let worth = worth(unclaimed);
        number += usize::from(last.replace(worth).is_some_and(|last| last != worth));
        number
    };
    sorted.iter().map(&mut number_of).collect()
}

/// Sorts into the order of removal, first to go first: unscheduled; Pending, Unknown, Running; not
/// available; not ready; leaving its node; on a node that may go soon; lower deletion cost; more of the pool's
/// sandboxes in its zone, then on its node; ready for a shorter time; more restarts; newer; then name. It is the order
/// of a ReplicaSet (`ActivePodsWithRanks`), with availability before readiness, with zones, and without its logarithmic
/// buckets of age.
pub(crate) fn by_removal(unclaimed: &mut Vec<UnclaimedSandbox>, nodes: &KnownNodes) {
    sort_without_zones(unclaimed);
    let zones: BTreeSet<_> = nodes.nodes.values().map(|node| &node.zone).collect();
    if zones.len() > 1 {
        let in_zone = ranks_in_zone(unclaimed).into_iter().map(Reverse);
        let keys = numbered_worths(unclaimed).into_iter().zip(in_zone);
        let mut keyed: Vec<_> = keys.zip(std::mem::take(unclaimed)).collect();
        // Among equals a stable sort keeps the order of the sort before.
        keyed.sort_by_key(|(key, _)| *key);
        unclaimed.extend(keyed.into_iter().map(|(_, unclaimed)| unclaimed));
    }
}

/// For each sandbox, how many sandboxes of its zone are removed no earlier, itself included. Removal by this rank keeps
/// the zones even, however many sandboxes go.
fn ranks_in_zone<'a>(sorted: &[UnclaimedSandbox<'a>]) -> Vec<usize> {
    let mut in_zone: HashMap<&str, usize> = HashMap::new();
    let mut rank = |node: &'a Node| {
        let rank = in_zone.entry(&node.zone).or_default();
        *rank += 1;
        *rank
    };
    let nodes = sorted.iter().rev().map(|unclaimed| unclaimed.node);
    let mut ranks: Vec<_> = nodes.map(|node| node.map_or(0, &mut rank)).collect();
    ranks.reverse();
    ranks
}

fn sort_without_zones(unclaimed: &mut [UnclaimedSandbox]) {
    let mut on_node: HashMap<&str, usize> = HashMap::new();
    for node in unclaimed.iter().filter_map(|i| i.sandbox.node.as_deref()) {
        *on_node.entry(node).or_default() += 1;
    }
    unclaimed.sort_by_cached_key(|i| {
        let sandbox = i.sandbox;
        let node = sandbox.node.as_deref();
        let neighbours = node.and_then(|node| on_node.get(node)).copied();
        (
            worth(i),
            Reverse(neighbours.unwrap_or(0)),
            Reverse(sandbox.ready_since.unwrap_or(Timestamp::MAX)),
            Reverse(sandbox.restarts),
            Reverse(sandbox.created),
            sandbox.key.name.as_str(),
        )
    });
}
