//! The kinds `Pool` and `SandboxClaim`, their conditions, labels and CustomResourceDefinitions.

pub mod autoscaling;
pub mod claim;
pub mod claim_defaults;
pub mod claim_policies;
pub mod conditions;
pub mod crd;
mod crd_descriptions;
pub mod disruption;
pub mod labels;
pub mod pod_metadata;
pub mod pool;
mod pool_defaults;

pub use claim::{SandboxClaim, SandboxClaimSpec, SandboxClaimStatus};
pub use claim_defaults::ClaimDefaults;
pub use pool::{Pool, PoolSpec, PoolStatus};

/// API group of every kind of this project.
pub const GROUP: &str = "warmpool.dev";
/// The only served version.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of both kinds, in objects and owner references.
pub const API_VERSION: &str = "warmpool.dev/v1alpha1";
