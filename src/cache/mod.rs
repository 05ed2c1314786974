//! What the watches said, the operator's own writes that they have not shown, and what is remembered of each object.

mod assigned_pools;
mod cancel_requests;
pub mod disruption_budgets;
pub mod expectations;
mod expected_creations;
mod grouped;
pub mod index;
mod lookup;
pub mod memory;
mod nodes;
mod outcomes;
mod pod_templates;
pub mod pool_stats;
pub mod recent_claims;
pub mod reconcile_request;
mod recorded_wait_reasons;
pub mod rejected_creations;
mod reports_over_limit;
pub mod request_limits;
pub mod snapshot;
pub mod stale_answers;
pub mod synced_cache;
pub(crate) mod waiting_claims;
pub mod watch;
pub mod watch_health;
pub mod write_progress;
