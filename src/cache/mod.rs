//! What the watches said, the operator's own writes that they have not shown, and what is remembered of each object.

pub mod bind_limit;
pub mod expectations;
mod grouped;
pub mod index;
mod lookup;
mod pod_templates;
pub mod pool_stats;
pub mod recent_claims;
pub mod rejected_sandboxes;
mod select_pool;
pub mod snapshot;
mod waiting_claims;
pub mod warm_up_failures;
pub mod watch;
pub mod watch_health;
pub mod watch_progress;
