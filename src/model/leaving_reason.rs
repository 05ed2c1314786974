//! Why an unclaimed sandbox is about to go although nothing is wrong with it.

use jiff::Timestamp;

/// Why a sandbox is leaving, and since when that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Why.
    pub reason: LeavingReason,
    /// When it began, by the API server's word where it says so, else when this process saw it first.
    pub since: Timestamp,
}

/// Why a sandbox is leaving. Where several reasons hold, the first of this list is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeavingReason {
    /// A user requested its replacement with the label `warmpool.dev/evict`.
    EvictRequested,
    /// The pod has condition `DisruptionTarget`: somebody is about to terminate it.
    DisruptionTarget,
    /// An EvictionRequest names the pod.
    EvictionRequest,
    /// Its node does not exist any more.
    NodeGone,
    /// Its node is not ready.
    NodeNotReady,
    /// The cluster autoscaler or Karpenter is about to delete its node.
    NodeDeletionAnnounced,
    /// Its node is cordoned.
    NodeCordoned,
    /// Its node has a taint that the pod does not tolerate.
    NodeTainted,
}

impl LeavingReason {
    /// The reason in CamelCase, as plans and metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EvictRequested => "EvictRequested",
            Self::DisruptionTarget => "DisruptionTarget",
            Self::EvictionRequest => "EvictionRequest",
            Self::NodeGone => "NodeGone",
            Self::NodeNotReady => "NodeNotReady",
            Self::NodeDeletionAnnounced => "NodeDeletionAnnounced",
            Self::NodeCordoned => "NodeCordoned",
            Self::NodeTainted => "NodeTainted",
        }
    }

    /// The reason as a clause about the sandbox.
    pub fn clause(self) -> &'static str {
        match self {
            Self::EvictRequested => "a user wants it replaced",
            Self::DisruptionTarget => "it is about to be terminated",
            Self::EvictionRequest => "an EvictionRequest names it",
            Self::NodeGone => "its node is gone",
            Self::NodeNotReady => "its node is not ready",
            Self::NodeDeletionAnnounced => "its node is about to be deleted",
            Self::NodeCordoned => "its node is cordoned",
            Self::NodeTainted => "its node has a taint that it does not tolerate",
        }
    }
}
