//! What is known of the nodes of some sandboxes, and of requests to evict them.

use crate::model::leaving_reason::{Leaving, LeavingReason};
use crate::model::node::Node;
use crate::model::sandbox::Sandbox;
use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long after its scheduling a pod may be known before its node is. A watch that is silent for longer is given
/// up.
const NODE_LAG: SignedDuration = SignedDuration::from_secs(30);

/// Whether the nodes of the cluster are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeAccess {
    /// They have not been listed: nothing is decided on them.
    #[default]
    Unlisted,
    /// The operator may not read them: nothing is decided on them, and pools say so.
    Denied,
    /// Some nodes are known, as out of a file. That another one is missing says nothing.
    Partial,
    /// Every node of the cluster is known.
    Listed,
}

impl NodeAccess {
    /// Whether something is decided on nodes.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Partial | Self::Listed)
    }
}

/// The nodes of some sandboxes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownNodes {
    /// Whether a node that is missing does not exist.
    pub access: NodeAccess,
    /// The nodes by name.
    pub nodes: BTreeMap<SmolStr, Arc<Node>>,
    /// Names of those that a watch has shown being deleted.
    pub deleted: BTreeSet<SmolStr>,
    /// The watch of nodes has failed, and until when it showed none: [`Timestamp::MAX`] while it shows none. A node that it has
    /// never shown may exist.
    pub interrupted: Option<Timestamp>,
    /// UIDs of the sandboxes that EvictionRequests name, and since when.
    pub eviction_requested: BTreeMap<SmolStr, Timestamp>,
}

impl KnownNodes {
    /// The node of a sandbox.
    pub fn of(&self, sandbox: &Sandbox) -> Option<&Node> {
        self.nodes.get(sandbox.node.as_deref()?).map(AsRef::as_ref)
    }

    /// Whether and why a sandbox is leaving at `now`. Only the label `warmpool.dev/evict` and EvictionRequests count
    /// without nodes.
    pub fn leaving(&self, sandbox: &Sandbox, now: Timestamp) -> Option<Leaving> {
        self.leaving_from(self.of(sandbox), sandbox, now)
    }

    /// As [`KnownNodes::leaving`], of a sandbox whose node has been looked up.
    pub fn leaving_from(&self, node: Option<&Node>, sandbox: &Sandbox, now: Timestamp) -> Option<Leaving> {
        let leaving = |reason, since| Leaving { reason, since };
        if sandbox.evict {
            return Some(leaving(LeavingReason::EvictRequested, now));
        }
        if let Some(since) = sandbox.disruption_target.filter(|_| self.access.is_open()) {
            return Some(leaving(LeavingReason::DisruptionTarget, since));
        }
        if let Some(since) = self.eviction_requested.get(&sandbox.uid) {
            return Some(leaving(LeavingReason::EvictionRequest, *since));
        }
        if !self.access.is_open() {
            return None;
        }
        match node {
            Some(node) => node.leaving(&sandbox.tolerations),
            None => self
                .gone_at(sandbox)
                .filter(|at| *at <= now)
                .map(|at| leaving(LeavingReason::NodeGone, at)),
        }
    }

    /// When the node of a sandbox counts as gone: from the scheduling of the pod on if a watch showed the deletion, and
    /// 30 s later (`NODE_LAG`) if no watch has shown the node, or 30 s after the end of an interruption of the watch. `None`
    /// for a node that exists.
    pub fn gone_at(&self, sandbox: &Sandbox) -> Option<Timestamp> {
        let node = sandbox.node.as_deref()?;
        let missing = self.access == NodeAccess::Listed && self.of(sandbox).is_none();
        let scheduled = sandbox.scheduling.since().unwrap_or(sandbox.created);
        if self.deleted.contains(node) {
            return Some(scheduled);
        }
        let since = self.interrupted.map_or(scheduled, |until| scheduled.max(until));
        missing.then(|| since.checked_add(NODE_LAG).unwrap_or(Timestamp::MAX))
    }
}
