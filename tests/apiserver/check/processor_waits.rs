//! Tells how long the operator and the API server waited for a processor that something else had.

use jiff::{SignedDuration, Timestamp};

/// A piece of time.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub from: Timestamp,
    pub to: Timestamp,
    /// How much of it the process that had to wait most waited for a processor.
    pub waited: SignedDuration,
    /// How long the operators ran on processors.
    pub ran: SignedDuration,
}

/// Pieces of time, one after the other.
#[derive(Clone, Debug, Default)]
pub struct ProcessorWaits(Vec<Sample>);

impl ProcessorWaits {
    pub fn add(&mut self, sample: Sample) {
        self.0.push(sample);
    }

    /// How long the samples are together, and how much of that passed in waiting.
    pub fn in_all(&self) -> (SignedDuration, SignedDuration) {
        let lengths = self.0.iter().map(|sample| sample.to.duration_since(sample.from));
        (lengths.sum(), self.0.iter().map(|sample| sample.waited).sum())
    }

    /// How long the operators ran on processors in all.
    pub fn ran(&self) -> SignedDuration {
        self.0.iter().map(|sample| sample.ran).sum()
    }

    /// How much of the time from `from` to `to` passed in waiting.
    pub fn within(&self, from: Timestamp, to: Timestamp) -> SignedDuration {
        let first = self.0.partition_point(|sample| sample.to <= from);
        let samples = self.0.iter().skip(first).take_while(|sample| sample.from < to);
        let of_each = samples.map(|sample| {
            let inside = sample.to.min(to).duration_since(sample.from.max(from));
            sample.waited.min(inside).max(SignedDuration::ZERO)
        });
        of_each.sum()
    }
}
