//! What the kubectl plugin decides and says, told without a cluster: each verb is a pure function of the pool
//! and its history. That the right requests are sent is told in `tests/apiserver/stories/plugin.rs`.

// A test may panic: that is how it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod called;
mod claim;
mod history;
mod objects;
mod pause_resume_restart;
mod status;
mod undo;
mod why;
