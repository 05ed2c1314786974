//! The Kubernetes Events of pools and claims.
//!
//! Events report changes: rollouts, what blocks them, and what happens to claims. A pool at rest has none.

pub mod claims;
mod event;
pub mod pools;
pub(crate) mod sender;
