//! What the watches said, the operator's own writes that they have not shown, and what is remembered of each object.

mod assigned_pools;
pub mod creation_backoff;
pub mod expectations;
mod grouped;
pub mod index;
mod lookup;
pub mod memory;
mod outcomes;
mod pod_templates;
pub mod pool_stats;
pub mod recent_claims;
pub mod reconcile_request;
pub mod request_queue;
pub mod shared;
pub mod snapshot;
mod wait_reasons;
mod waiting_claims;
pub mod watch;
pub mod watch_health;
pub mod watch_progress;
