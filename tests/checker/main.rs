//! The judge of histories, judged: small histories written by hand show that each rule accuses the
//! guilty and lets the innocent twin go. It needs no cluster.

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
mod ends;
mod history;
mod hooks;
mod order;
mod revisions;
mod wait_reason;
mod work_conservation;
