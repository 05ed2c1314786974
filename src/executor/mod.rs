//! The executor: sends each request once, and hands its outcome to the cache.
//!
//! It decides nothing. What follows from an outcome is the next plan.

pub mod claim_status_body;
pub mod pod_body;
mod pod_disruption_budget_body;
pub mod pod_patch;
pub mod pool_status_patch;
mod revision_body;
pub mod send;
mod send_queued;

pub use send_queued::Executor;
