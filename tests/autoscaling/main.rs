//! Simulates autoscaled pools in virtual time, with the real planner and seeded arrivals.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod arrivals;
mod bounded;
mod changes;
mod figures;
mod operator;
#[allow(dead_code, reason = "the figures of the docs use the rest")]
mod rivals;
mod stationary;
