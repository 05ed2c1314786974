//! Tells how long the operator and the API server waited for a processor that something else had, or the whole machine stood
//! still.

use jiff::{SignedDuration, Timestamp};

/// A piece of time.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub from: Timestamp,
    pub to: Timestamp,
    /// How much of it the process that had to wait most waited for a processor. A wait is counted when it ends, so this may be
    /// longer than the piece.
    pub waited: SignedDuration,
    /// How long the operators ran on processors.
    pub ran: SignedDuration,
}

/// Pieces of time, one after the other.
#[derive(Clone, Debug, Default)]
pub struct ProcessorWaits(Vec<Sample>);

impl ProcessorWaits {
    /// What is waited for longer than the piece belongs to those before it.
    pub fn add(&mut self, mut sample: Sample) {
        let length = |sample: &Sample| sample.to.duration_since(sample.from);
        let mut left = sample.waited - sample.waited.min(length(&sample));
        sample.waited -= left;
        for earlier in self.0.iter_mut().rev() {
            if left.is_zero() {
                break;
            }
            let taken = left.min(length(earlier) - earlier.waited);
            earlier.waited += taken;
            left -= taken;
        }
        self.0.push(sample);
    }

    /// How long it is from `from` to `to` for an operator and an API server that never wait.
    pub fn elapsed(&self, from: Timestamp, to: Timestamp) -> SignedDuration {
        to.duration_since(from) - self.within(from, to)
    }

    /// From when on it is at least `span` to `to` for them.
    pub fn before(&self, to: Timestamp, span: SignedDuration) -> Timestamp {
        let begins = self.0.iter().rev().map(|sample| sample.from);
        let earlier = begins.skip_while(|from| to - span <= *from);
        let mut candidates = std::iter::once(to - span).chain(earlier);
        let found = candidates.find(|from| self.elapsed(*from, to) >= span);
        found.unwrap_or(to - span)
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
