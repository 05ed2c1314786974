//! Nodes of a world: which of them are open, and which pod gets which.

use crate::world::World;
use serde_json::{Value, json};
use std::sync::Arc;
use warmpool::model::known_nodes::NodeAccess;
use warmpool::model::node::Node;
use warmpool::model::sandbox::Sandbox;
use warmpool::model::stored::StoredNode;

impl World {
    /// Creates or changes a node: `fields` of its object besides the name.
    pub fn node(&mut self, name: &str, fields: Value) -> &mut Self {
        let mut stored = fields;
        stored["metadata"]["name"] = json!(name);
        let stored: StoredNode = serde_json::from_value(stored).unwrap();
        let known = self.nodes.nodes.get(name);
        let node = Node::read(&stored, known.map(AsRef::as_ref), self.now);
        self.nodes.access = NodeAccess::Listed;
        self.nodes.nodes.insert(name.into(), Arc::new(node));
        self
    }

    pub fn open(&mut self, name: &str) -> &mut Self {
        self.node(name, json!({"spec": {}}))
    }

    pub fn cordon(&mut self, name: &str) -> &mut Self {
        self.node(name, json!({"spec": {"unschedulable": true}}))
    }

    /// A sandbox like any other would have to leave the node.
    pub fn is_closed(&self, node: &str) -> bool {
        let node = self.nodes.nodes.get(node);
        node.is_none_or(|node| node.leaving(&Default::default()).is_some())
    }

    /// The open node with the fewest pods.
    pub fn free_node(&self) -> Option<String> {
        let names = self.nodes.nodes.keys().filter(|name| !self.is_closed(name));
        let pods = |name: &str| {
            let on_node = |sandbox: &&Sandbox| sandbox.node.as_deref() == Some(name);
            self.sandboxes.values().filter(on_node).count()
        };
        names.min_by_key(|name| pods(name)).map(ToString::to_string)
    }

    /// The sandbox has a node, or one takes it.
    pub fn has_place(&self, sandbox: &Sandbox) -> bool {
        self.nodes.access != NodeAccess::Listed || sandbox.node.is_some() || self.free_node().is_some()
    }

    /// Unclaimed sandboxes on a node.
    pub fn on_node(&self, node: &str) -> usize {
        let on_node = |sandbox: &&Sandbox| sandbox.node.as_deref() == Some(node);
        self.unclaimed().filter(on_node).count()
    }
}
