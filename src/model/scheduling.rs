//! Whether a pod has a node, and why not.

use crate::model::stored::StoredPodCondition;
use jiff::Timestamp;

/// What condition `PodScheduled` of a pod says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// Nothing.
    #[default]
    Unknown,
    /// The pod has a node, since this moment where that is known.
    Scheduled(Option<Timestamp>),
    /// No node has room for the pod, or none suits it.
    Unschedulable,
    /// Another controller has to remove a scheduling gate of the pod first.
    Gated,
}

impl Scheduling {
    /// Reads the conditions of a pod.
    pub fn read(conditions: &[StoredPodCondition]) -> Self {
        let condition = conditions
            .iter()
            .find(|condition| condition.type_ == "PodScheduled");
        let Some(condition) = condition else {
            return Self::Unknown;
        };
        match (condition.status.as_str(), condition.reason.as_deref()) {
            ("True", _) => Self::Scheduled(condition.last_transition_time.as_ref().map(|time| time.0)),
            ("False", Some("Unschedulable")) => Self::Unschedulable,
            ("False", Some("SchedulingGated")) => Self::Gated,
            _ => Self::Unknown,
        }
    }

    /// Since when the pod has a node, where that is known.
    pub fn since(self) -> Option<Timestamp> {
        match self {
            Self::Scheduled(since) => since,
            Self::Unknown | Self::Unschedulable | Self::Gated => None,
        }
    }

    /// The pod waits for a node, and a new pod of the same revision would, too.
    pub fn waits_for_node(self) -> bool {
        matches!(self, Self::Unschedulable | Self::Gated)
    }
}
