//! Leader election over a Lease: one process writes, the others stand by with warm caches.
//!
//! No crate fits: kube-lease-manager, the only one for kube 5, and kube-leader-election judge a lease by the times
//! written in it; kube-coordinate and kubert are for older versions of kube.

pub mod election;
pub mod elector;
pub mod lease_metadata;
pub mod timing;

pub use elector::{Elector, Settings, Term};
