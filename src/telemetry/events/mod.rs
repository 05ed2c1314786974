//! The Kubernetes Events of pools and claims.
//!
//! Events report changes: rollouts and their obstacles, and what befalls a claim. A pool at rest has none.

pub mod claims;
mod event;
pub mod pools;
pub(crate) mod sender;
