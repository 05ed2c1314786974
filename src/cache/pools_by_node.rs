//! The nodes of the cluster, and which pools have pods on each.

use crate::cache::grouped::remove_from;
use crate::model::Key;
use crate::model::known_nodes::NodeAccess;
use crate::model::node::Node;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use smol_str::SmolStr;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The nodes, and what runs on them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) access: NodeAccess,
    /// As in [`crate::model::known_nodes::KnownNodes`].
    pub(crate) interrupted: Option<Timestamp>,
    pub(crate) known: HashMap<SmolStr, Arc<Node>>,
    /// Deleted nodes that still have pods.
    pub(crate) deleted: HashSet<SmolStr>,
    /// Pods by node and pool.
    pub(crate) pods: HashMap<SmolStr, BTreeMap<Key, usize>>,
}

impl Nodes {
    /// A pod of `pool` is on the node of `sandbox`.
    pub(crate) fn add_pod(&mut self, pool: &Key, sandbox: &Sandbox) {
        if let Some(node) = &sandbox.node {
            let of_node = self.pods.entry(node.as_str().into()).or_default();
            *of_node.entry(pool.clone()).or_default() += 1;
        }
    }

    /// The pod of `pool` on the node of `sandbox` is gone.
    pub(crate) fn remove_pod(&mut self, pool: &Key, sandbox: &Sandbox) {
        let Some(node) = sandbox.node.as_deref() else {
            return;
        };
        remove_from(&mut self.pods, &node.into(), |of_node| {
            let left = of_node.get(pool).map_or(0, |count| count.saturating_sub(1));
            if left == 0 {
                of_node.remove(pool);
            } else {
                of_node.insert(pool.clone(), left);
            }
            true
        });
        if !self.pods.contains_key(node) {
            self.deleted.remove(node);
        }
    }

    /// A node does not exist any more.
    pub(crate) fn remove(&mut self, name: &SmolStr) {
        self.known.remove(name);
        if self.pods.contains_key(name) {
            self.deleted.insert(name.clone());
        }
    }
}
