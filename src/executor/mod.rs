//! Carries out plans: writes pods, revisions and statuses, one task per item.
//!
//! Every write is noted as expected before it is sent and runs in a task of its own. A plan is therefore carried out without
//! waiting for an answer, and no claim waits behind a creation. Answers reach the next plan through the cache.

pub mod bind;
mod claim_pod;
pub mod create_pod;
pub mod delete_pod;
pub mod drain_pod;
mod handle;
pub mod live_read;
pub mod pod_patch;
pub mod publish_status;
mod request_limit;
mod retry;
mod run_task;
mod shutdown;
pub mod store_revision;
pub mod task;
mod waiting_claim;

pub use handle::Executor;
