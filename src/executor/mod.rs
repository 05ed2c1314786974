//! The executor: sends each request once, and hands its outcome to the cache.
//!
//! It decides nothing. What follows from an outcome is the next plan.

pub mod pod_body;
mod pod_disruption_budget_body;
pub mod pod_patch;
mod revision_body;
pub mod send;
mod send_queued;
pub mod status_patch;

pub use send_queued::Executor;
