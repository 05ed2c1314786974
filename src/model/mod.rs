//! What the operator thinks in: pools, claims, sandboxes and revisions, parsed once into plain data.

pub mod availability;
pub mod claim;
pub mod claim_spec;
pub mod failure;
pub mod int_or_percent;
mod key;
pub mod lifecycle_hook;
pub mod not_running_reason;
pub mod pool;
pub mod pool_error;
pub mod pool_spec;
pub mod request;
pub mod retry;
pub mod revision;
pub mod sandbox;
pub mod sandbox_state;
pub mod stored;

pub use key::Key;
