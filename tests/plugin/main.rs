//! Checks without a cluster what the verbs of the kubectl plugin decide and print.
//!
//! `tests/apiserver/stories/plugin.rs` and `verbs.rs` check the requests.

// A test may panic: that is how it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod bad_input;
mod claim;
mod command_line;
mod drain;
mod exec;
mod history;
mod hung_server;
mod objects;
mod operator_lease;
mod pause_resume_restart;
mod screens;
mod set_image;
mod size;
mod status;
mod undo;
mod why;
