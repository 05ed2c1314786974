//! The minimum size of an autoscaled pool at a moment: `spec.replicas` or the highest of the active schedules.

use crate::model::autoscaling::ResolvedAutoscaling;
use jiff::Timestamp;

/// The minimum size at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Unclaimed sandboxes.
    pub replicas: usize,
    /// The schedule that sets it; `None`: `spec.replicas` does.
    pub schedule: Option<String>,
    /// When it may change; `None`: never.
    pub until: Option<Timestamp>,
}

impl ResolvedAutoscaling {
    /// The minimum size at `now` of a pool whose `spec.replicas` is `replicas`: the highest of it and the active
    /// schedules.
    pub fn floor(&self, replicas: usize, now: Timestamp) -> Floor {
        let mut floor = Floor {
            replicas,
            schedule: None,
            until: None,
        };
        for schedule in &self.schedules {
            let activity = schedule.at(now);
            floor.until = match (floor.until, activity.until) {
                (Some(first), Some(second)) => Some(first.min(second)),
                (first, second) => first.or(second),
            };
            if activity.is_active && schedule.min_replicas > floor.replicas {
                floor.replicas = schedule.min_replicas;
                floor.schedule = Some(schedule.name.clone());
            }
        }
        floor
    }
}
