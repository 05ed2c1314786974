//! Checks which requests wait while others are in flight, and in which order they go.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::panic)]

mod pools;
mod queue;
mod reports;
mod requests;
