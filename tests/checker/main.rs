//! Checks the history checker with small histories written by hand.
//!
//! Each rule must report a violation, and accept the correct history beside it. No cluster is needed.

#![allow(
    clippy::indexing_slicing,
    reason = "JSON indexed where it has nothing gives null, not a panic"
)]
#![allow(
    dead_code,
    reason = "the judge's other user, the tests against an API server, uses the rest"
)]

#[path = "../apiserver/check/mod.rs"]
mod check;

mod batches;
mod binding;
mod budget;
mod deletions;
mod drains;
mod ends;
mod history;
mod hooks;
mod order;
mod processor_waits;
mod revisions;
mod wait_reason;
mod warm_reports;
mod work_conservation;
mod writes;
