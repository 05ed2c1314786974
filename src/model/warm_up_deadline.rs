//! How long a sandbox may take to become available.

use crate::model::sandbox::Sandbox;
use jiff::{SignedDuration, Timestamp};

impl Sandbox {
    /// When the warm-up began: with the pod's creation or, if that came later, when a node took it. A pod may wait for
    /// a node for long.
    fn warming_since(&self) -> Timestamp {
        self.scheduling
            .since()
            .map_or(self.created, |at| at.max(self.created))
    }

    /// Whether the pod ended within its warm-up time and without an announced disruption. The kubelet sets Ready to
    /// False on a pod that ends; a pod that is Ready although it has ended was ended from outside, as on a node that is
    /// gone.
    pub fn failed_to_warm_up(&self, warm_up: SignedDuration) -> bool {
        let begun = self.warming_since();
        let ended = self.ready_changed.unwrap_or(begun);
        let is_disrupted = self.disruption_target.is_some();
        self.finished()
            && self.ready_since.is_none()
            && !is_disrupted
            && ended.duration_since(begun) <= warm_up
    }

    /// When an unclaimed sandbox that is not available is given up: `warm_up` after its creation or scheduling or, if
    /// it became unready later than that, `warm_up` after it became unready. Never for a pod without a creation time.
    pub fn overdue_at(&self, warm_up: SignedDuration) -> Timestamp {
        if self.created == Timestamp::UNIX_EPOCH {
            return Timestamp::MAX;
        }
        let after = |start: Timestamp| start.checked_add(warm_up).unwrap_or(Timestamp::MAX);
        let due = after(self.warming_since());
        self.ready_changed
            .filter(|changed| *changed > due)
            .map_or(due, after)
    }
}
