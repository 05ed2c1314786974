//! How long a sandbox may take to become available.

use crate::model::sandbox::Sandbox;
use jiff::{SignedDuration, Timestamp};

impl Sandbox {
    /// The pod ended before its time to become available was over. A kubelet sets Ready to False on a pod that ends; a pod
    /// that ended Ready was ended from outside, as on a node that is gone.
    pub fn came_to_nothing(&self, warm_up: SignedDuration) -> bool {
        let ended = self.ready_changed.unwrap_or(self.created);
        self.finished() && self.ready_since.is_none() && ended.duration_since(self.created) <= warm_up
    }

    /// When an unclaimed sandbox that is not available is given up: `warm_up` after its creation, or after it last became
    /// unready if it was ready then. Never for a pod without a creation time.
    pub fn overdue_at(&self, warm_up: SignedDuration) -> Timestamp {
        if self.created == Timestamp::UNIX_EPOCH {
            return Timestamp::MAX;
        }
        let after = |start: Timestamp| start.checked_add(warm_up).unwrap_or(Timestamp::MAX);
        let due = after(self.created);
        self.ready_changed
            .filter(|changed| *changed > due)
            .map_or(due, after)
    }
}
