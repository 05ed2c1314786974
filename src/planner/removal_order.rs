//! The order in which unclaimed sandboxes are removed. Claims take from the other end.

use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Sorts into the order of removal, first to go first: unscheduled; Pending, Unknown, Running; not
/// available; not ready; lower deletion cost; more of the pool's sandboxes on its node; ready for a shorter
/// time; more restarts; newer; then name. It is the order of a ReplicaSet (`ActivePodsWithRanks`), with
/// availability before readiness and without its logarithmic buckets of age.
pub(crate) fn by_removal(unclaimed: &mut [UnclaimedSandbox]) {
    let mut on_node: HashMap<String, usize> = HashMap::new();
    for node in unclaimed.iter().filter_map(|i| i.sandbox.node.clone()) {
        *on_node.entry(node).or_default() += 1;
    }
    unclaimed.sort_by_cached_key(|i| {
        let sandbox = &i.sandbox;
        let neighbours = sandbox
            .node
            .as_ref()
            .and_then(|node| on_node.get(node))
            .copied()
            .unwrap_or(0);
        (
            (
                sandbox.node.is_some(),
                sandbox.phase,
                i.available,
                sandbox.ready_since.is_some(),
            ),
            sandbox.deletion_cost,
            Reverse(neighbours),
            Reverse(sandbox.ready_since.unwrap_or(Timestamp::MAX)),
            Reverse(sandbox.restarts),
            Reverse(sandbox.created),
            sandbox.key.name.clone(),
        )
    });
}
