//! What the operator thinks in: pools, claims, sandboxes and revisions, parsed once into plain data.

pub mod autoscaling;
pub mod availability;
pub mod claim;
mod claim_deadlines;
mod claim_validation;
pub mod demand;
pub mod disruption_mark;
pub mod failure;
pub mod int_or_percent;
mod key;
pub mod known_nodes;
pub mod leaving;
pub mod lifecycle_hook;
pub mod node;
pub mod not_running_reason;
pub mod pod_disruption_budget;
pub mod pool;
pub mod pool_error;
pub mod queue_position;
pub mod request;
pub mod resolved_claim_spec;
pub mod resolved_pool_spec;
pub mod retry;
pub mod revision;
pub mod rollout_budget;
pub mod sandbox;
mod sandbox_labels;
pub mod sandbox_state;
pub mod schedule;
pub mod scheduling;
pub mod shard_selector;
pub mod stored;
pub mod toleration;
mod warm_up_deadline;
pub mod warming_reason;

pub use key::Key;
