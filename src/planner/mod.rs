//! The planner: one pure function from the snapshot of a pool to a plan.
//!
//! It knows no client, clock, randomness or log.

mod actions;
pub mod autoscale;
mod availability_remarks;
mod bind_limit;
pub mod can_ever_serve;
mod choose_sandbox;
pub mod claim;
mod claim_order;
pub mod commonest_warming_reason;
mod create;
mod delete_or_drain;
mod desired_counts;
mod draft;
mod evict;
pub mod explain_order;
mod fail_claims;
mod give_up_overdue;
pub mod leave_nodes;
mod missing_under_load;
mod observed_counts;
mod paused_split;
mod plan;
pub mod plan_pace;
mod pod_disruption_budgets;
mod pod_names;
mod pool_status;
mod recreate;
mod refill_while_binding;
mod removal_order;
mod remove;
mod restore_draining;
pub mod revise;
mod revision_history_limit;
mod rolling_update;
mod rollout_progress;
mod sandbox_order;
mod scale;
mod schedule_claims;
pub mod select_pool;
pub mod unavailability_budget;
mod unclaimed_sandbox;
mod wait_reasons;
pub mod warm_up_backoff;
mod write_pool_status;

pub use actions::{Action, Plan, PlanPhase, Shortfall, Step, WaitsFor, WriteStatus};
pub use create::BURST_REPLICAS;
pub use plan::{plan, pool_snapshot};
pub use write_pool_status::status_due;
