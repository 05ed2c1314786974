//! What the planner promises, checked without a cluster: tables for each phase, and laws over random worlds.

// A test may panic: that is how it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod claims;
mod events;
mod laws;
mod phases;
mod revisions;
mod rollouts;
mod templates;
mod world;
