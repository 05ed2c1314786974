//! Which taints of a node announce its deletion, which are only hints, and which repeat other fields.

use crate::model::toleration::{Effect, NOT_READY, UNREACHABLE, UNSCHEDULABLE};
use jiff::Timestamp;
use smol_str::SmolStr;

/// Taints by which the cluster autoscaler and Karpenter announce that they delete a node.
const DELETION_ANNOUNCED: [&str; 2] = ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"];
/// Taints that say that a node may go, or that come and go with the load of the node: sandboxes stay, but others are
/// better.
const HINTS: [&str; 5] = [
    "DeletionCandidateOfClusterAutoscaler",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
];
/// Taints that repeat what other fields of the node say.
const REPEATED: [&str; 3] = [UNSCHEDULABLE, NOT_READY, UNREACHABLE];

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taint {
    pub(crate) key: SmolStr,
    pub(crate) value: SmolStr,
    pub(crate) effect: Effect,
    pub(crate) since: Timestamp,
}

impl Taint {
    /// The cluster autoscaler or Karpenter is about to delete the node.
    pub(crate) fn announces_deletion(&self) -> bool {
        DELETION_ANNOUNCED.contains(&self.key.as_str())
    }
}

/// Whether a taint with this key says only that the node may go.
pub(crate) fn is_hint(key: &str) -> bool {
    HINTS.contains(&key)
}

/// Whether a taint with this key repeats what other fields of the node say.
pub(crate) fn is_repeated(key: &str) -> bool {
    REPEATED.contains(&key)
}
