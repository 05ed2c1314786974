//! What people and machines read about the operator: events, logs, metrics, HTTP endpoints.

pub mod events;
pub(crate) mod failure_log;
pub mod http;
pub mod json_log;
pub mod log_once;
pub mod metrics;
pub(crate) mod outcome_log;
mod waiting_claims_log;
