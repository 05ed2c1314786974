//! The order in which claims take sandboxes: that of removal reversed, but among equals from the most crowded zone and
//! node.

use crate::model::known_nodes::KnownNodes;
use crate::planner::removal_order::worth;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The rank of each sandbox of `unclaimed`, which is in the order of removal: claims take the one with the highest.
/// What stays is spread evenly over zones, then over nodes, however many claims come. Without nodes it is the order of
/// removal.
pub(crate) fn ranks(unclaimed: &[UnclaimedSandbox], nodes: &KnownNodes) -> Vec<usize> {
    let mut order: Vec<usize> = (0..unclaimed.len()).collect();
    if nodes.access.is_open() {
        let worths: Vec<_> = unclaimed
            .iter()
            .map(|unclaimed| worth(unclaimed, nodes))
            .collect();
        let node = |index: usize| unclaimed.get(index).and_then(|u| u.sandbox.node.as_deref());
        let zone = |index: usize| {
            let node = unclaimed.get(index).and_then(|u| nodes.of(u.sandbox));
            node.map(|node| node.zone.as_str())
        };
        order.sort_by_key(|index| Reverse((worths.get(*index), *index)));
        let on_node = left_with(&order, node);
        order.sort_by_key(|index| Reverse((worths.get(*index), on_node.get(*index), *index)));
        let in_zone = left_with(&order, zone);
        order.sort_by_key(|index| {
            (
                worths.get(*index),
                in_zone.get(*index),
                on_node.get(*index),
                *index,
            )
        });
    }
    let mut ranks = vec![0; order.len()];
    for (rank, index) in order.into_iter().enumerate() {
        if let Some(of) = ranks.get_mut(index) {
            *of = rank;
        }
    }
    ranks
}

/// For each sandbox, how many sandboxes its node or zone has left when claims reach it in `order`, itself included.
fn left_with<'a>(order: &[usize], place: impl Fn(usize) -> Option<&'a str>) -> Vec<usize> {
    let mut left: HashMap<Option<&str>, usize> = HashMap::new();
    for index in order {
        *left.entry(place(*index)).or_default() += 1;
    }
    let mut left_with = vec![0; order.len()];
    for index in order {
        if let (Some(left), Some(of)) = (left.get_mut(&place(*index)), left_with.get_mut(*index)) {
            *of = *left;
            *left -= 1;
        }
    }
    left_with
}
