//! What events of nodes change, and what is known of the nodes of sandboxes. A node event reconciles only the pools and
//! claims with pods there.

use crate::cache::index::Index;
use crate::cache::orphaned_claims::claim_of;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::model::Key;
use crate::model::known_nodes::{KnownNodes, NodeAccess};
use crate::model::node::Node;
use crate::model::sandbox::Sandbox;
use crate::model::stored::{self, StoredNode};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

impl Index {
    /// A node was created or changed. A heartbeat changes nothing that matters here.
    pub fn apply_node(&mut self, stored: &StoredNode, now: Timestamp) -> Vec<ReconcileRequest> {
        let mut to_reconcile = self.end_interruption(now);
        let name = stored::key(&stored.metadata).name;
        let known = self.nodes.known.get(&name);
        let node = Node::read(stored, known.map(AsRef::as_ref), now);
        if known.is_some_and(|known| **known == node) {
            return to_reconcile;
        }
        self.nodes.known.insert(name.clone(), Arc::new(node));
        self.nodes.deleted.remove(&name);
        to_reconcile.extend(self.affected_by(&name));
        to_reconcile
    }

    /// The watch shows a node, so it goes on. Returns what may have pods on a node that is gone: from now on, that has a time.
    fn end_interruption(&mut self, now: Timestamp) -> Vec<ReconcileRequest> {
        if self.nodes.interrupted != Some(Timestamp::MAX) {
            return Vec::new();
        }
        self.nodes.interrupted = Some(now);
        let with_pods = self.nodes.pods.keys();
        let unknown = with_pods.filter(|node| !self.nodes.known.contains_key(*node));
        unknown.flat_map(|node| self.affected_by(node)).collect()
    }

    /// A node is gone.
    pub fn delete_node(&mut self, stored: &StoredNode) -> Vec<ReconcileRequest> {
        let name = stored::key(&stored.metadata).name;
        self.nodes.remove(&name);
        self.affected_by(&name)
    }

    /// After a list: nodes missing from it are gone.
    pub fn retain_nodes(&mut self, listed: &HashSet<Key>) {
        let listed: HashSet<_> = listed.iter().map(|key| &key.name).collect();
        let known = self.nodes.known.keys();
        let gone: Vec<_> = known.filter(|name| !listed.contains(name)).cloned().collect();
        gone.iter().for_each(|name| self.nodes.remove(name));
        self.nodes.access = NodeAccess::Listed;
        self.nodes.interrupted = None;
    }

    /// The watch of nodes fails, so it may not have shown a node that has come.
    pub fn nodes_are_interrupted(&mut self) {
        self.nodes.interrupted = Some(Timestamp::MAX);
    }

    /// Only some nodes were listed.
    pub fn nodes_are_partial(&mut self) {
        self.nodes.access = NodeAccess::Partial;
    }

    /// The operator may not read nodes. Forgets what it knew of them, and returns whether the missing right is new.
    pub fn deny_nodes(&mut self) -> bool {
        self.nodes.known.clear();
        self.nodes.deleted.clear();
        let before = std::mem::replace(&mut self.nodes.access, NodeAccess::Denied);
        before != NodeAccess::Denied
    }

    /// What is known of the nodes of these sandboxes, and of requests to evict them.
    pub(crate) fn nodes_of<'a>(&self, sandboxes: impl Iterator<Item = &'a Arc<Sandbox>>) -> KnownNodes {
        let (mut nodes, mut deleted) = (BTreeMap::new(), BTreeSet::new());
        let mut eviction_requested = BTreeMap::new();
        for sandbox in sandboxes {
            if let Some(since) = self.eviction_requests.since(sandbox) {
                eviction_requested.insert(sandbox.uid.clone(), since);
            }
            let Some(name) = sandbox.node.as_deref() else {
                continue;
            };
            if !nodes.contains_key(name)
                && let Some(node) = self.nodes.known.get(name)
            {
                nodes.insert(node.name.clone(), Arc::clone(node));
            } else if let Some(name) = self.nodes.deleted.get(name) {
                deleted.insert(name.clone());
            }
        }
        KnownNodes {
            access: self.nodes.access,
            nodes,
            deleted,
            interrupted: self.nodes.interrupted,
            eviction_requested,
        }
    }

    /// The pools and claims with pods on a node.
    fn affected_by(&self, node: &str) -> Vec<ReconcileRequest> {
        let pools = self.nodes.pods.get(node).into_iter().flat_map(BTreeMap::keys);
        let mut affected = Vec::new();
        for pool in pools {
            affected.push(ReconcileRequest::Pool(pool.clone()));
            let on_node = self
                .sandboxes_of(pool)
                .filter(|s| s.node.as_deref() == Some(node));
            affected.extend(on_node.filter_map(claim_of).map(ReconcileRequest::Claim));
        }
        affected
    }
}
