//! The order in which claims take sandboxes: that of removal reversed, but among equals from the most crowded zone and
//! node.

use crate::planner::removal_order::numbered_worths;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The rank of each sandbox of `unclaimed`, which is in the order of removal: claims take the one with the highest.
/// What stays is spread evenly over zones, then over nodes, however many claims come, if `nodes_are_known`. Otherwise it is the
/// order of removal.
pub(crate) fn ranks(unclaimed: &[UnclaimedSandbox], nodes_are_known: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..unclaimed.len()).collect();
    if nodes_are_known {
        let worths = numbered_worths(unclaimed);
        let nodes: Vec<_> = unclaimed.iter().map(|u| u.sandbox.node.as_deref()).collect();
        let zones: Vec<_> = unclaimed
            .iter()
            .map(|u| u.node.map(|node| node.zone.as_str()))
            .collect();
        order.reverse();
        let on_node = left_with(&order, &nodes);
        order.sort_unstable_by_key(|index| Reverse((worths.get(*index), on_node.get(*index), *index)));
        let in_zone = left_with(&order, &zones);
        order.sort_unstable_by_key(|index| {
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

/// For each sandbox, how many sandboxes its place, a node or zone, has left when claims reach it in `order`, itself included.
fn left_with(order: &[usize], places: &[Option<&str>]) -> Vec<usize> {
    let mut left: HashMap<Option<&str>, usize> = HashMap::new();
    let mut left_with = vec![0; order.len()];
    for index in order.iter().rev() {
        if let (Some(place), Some(of)) = (places.get(*index), left_with.get_mut(*index)) {
            let left = left.entry(*place).or_default();
            *left += 1;
            *of = *left;
        }
    }
    left_with
}
