//! What a simulated pool achieved, and what it cost.

/// Seconds between two samples of the size.
const SAMPLE: f64 = 10.0;

/// Hits and sizes of a run.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    hits: f64,
    claims: f64,
    seconds: f64,
    size_seconds: f64,
    idle_seconds: f64,
    /// The size every ten seconds.
    pub sizes: Vec<(f64, usize)>,
}

impl Figures {
    pub fn claim(&mut self, hit: bool) {
        self.claims += 1.0;
        self.hits += if hit { 1.0 } else { 0.0 };
    }

    pub fn pass(&mut self, seconds: f64, size: usize, available: usize) {
        self.seconds += seconds;
        self.size_seconds += seconds * size as f64;
        self.idle_seconds += seconds * available as f64;
    }

    pub fn sample(&mut self, until: f64, size: usize) {
        let next = self.sizes.last().map_or(0.0, |(at, _)| at + SAMPLE);
        if until >= next {
            self.sizes.push((until, size));
        }
    }

    /// Share of the claims that found a sandbox available.
    pub fn hit_rate(&self) -> f64 {
        self.hits / self.claims
    }

    /// Mean number of sandboxes that were available.
    pub fn idle(&self) -> f64 {
        self.idle_seconds / self.seconds
    }

    /// Mean size.
    pub fn size(&self) -> f64 {
        self.size_seconds / self.seconds
    }
}
