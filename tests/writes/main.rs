//! What is written, when, and what becomes of it when the API server answers with errors.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod clock;
mod failing_bindings;
mod gone;
mod kept_defaults;
mod left_alone;
mod lost_answers;
mod refused_claims;
mod signed;
mod stopping;
mod surplus;
mod throttled;
mod world;
