//! How many available sandboxes may still be taken away.

/// How many available sandboxes may still be taken away in this plan. Every phase draws on the same one.
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

    /// A claim takes an available sandbox. Claims are what the pool is for: they need no budget, but what
    /// they take is no longer there for others.
    pub fn claim(&mut self) {
        self.available = self.available.saturating_sub(1);
    }

    /// Takes one available sandbox away if enough of them stay.
    #[must_use]
    pub fn take(&mut self) -> bool {
        let allowed = self.available > self.min_available;
        if allowed {
            self.available -= 1;
        }
        allowed
    }
}
