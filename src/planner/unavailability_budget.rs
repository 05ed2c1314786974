//! How many available sandboxes may still go, so that `maxUnavailable` holds.

/// How many available sandboxes may still be removed in this plan. Every phase draws on the same budget, so that
/// together they leave `replicas - maxUnavailable` available.
#[derive(Clone, Debug)]
pub struct Budget {
    available: usize,
    min_available: usize,
}

impl Budget {
    /// A budget over `available` sandboxes, of which `min_available` have to stay.
    pub fn new(available: usize, min_available: usize) -> Self {
        Self {
            available,
            min_available,
        }
    }

    /// An available sandbox goes whatever stays: to a claim, because the pool is there for claims, or because its node
    /// has to go. It leaves less to the other phases.
    pub fn claim(&mut self) {
        self.available = self.available.saturating_sub(1);
    }

    /// Lets an available sandbox go if enough of them stay.
    #[must_use]
    pub fn take(&mut self) -> bool {
        self.take_above(0)
    }

    /// As [`take`](Self::take), and `least` stay, too.
    #[must_use]
    pub fn take_above(&mut self, least: usize) -> bool {
        let allowed = self.available > self.min_available.max(least);
        if allowed {
            self.available -= 1;
        }
        allowed
    }
}
