//! What people and machines read about the operator: metrics and the HTTP endpoints.

pub mod http;
pub mod metrics;
