//! Checks the planner without a cluster: tables for each phase, and laws over random worlds.

// A test may panic: that is how it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod autoscaling;
mod batches;
mod busy;
mod claim_columns;
mod claim_deadlines;
mod claim_events;
mod claim_requests;
mod claims;
mod conflicts;
mod deadlines;
mod defaults;
mod disruption_budgets;
mod disruption_pending;
mod drains;
mod ends;
mod events;
mod eviction_requests;
mod held_up;
mod hooks;
mod laws;
mod life;
mod lifetimes;
mod load;
mod nodes;
mod orphaned_claims;
mod pauses;
mod phases;
mod refill;
mod replacements;
mod revision_policy;
mod revision_steps;
mod revisions;
mod rollout_budget;
mod rollouts;
mod sandbox_states;
mod stuck_sandboxes;
mod templates;
mod times;
mod uncordons;
mod undone;
mod wait_reasons;
mod waits;
mod warm_up_restarts;
mod warming_reasons;
mod world;
