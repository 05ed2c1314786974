//! The writes of the operator, and how it handles errors of the API server.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod budgets;
mod clock;
mod failing_bindings;
mod failing_sandboxes;
mod failure_log;
mod gone;
mod held_sandboxes;
mod kept_defaults;
mod log;
mod lost_answers;
mod rejected_bindings;
mod revisions;
mod shutdown;
mod signed;
mod statuses;
mod surplus;
mod throttled;
mod waiting_log;
mod world;
