//! warmpool keeps sandboxes (pods) warm in a `Pool` and hands them to `SandboxClaim`s in milliseconds.
//!
//! Watches fill the [`cache`]. The [`planner`] turns a snapshot of it into a plan without any I/O, the [`executor`]
//! carries plans out, and the [`controllers`] tie the three together for each kind. The [`model`] is the data that they
//! share, [`api`] what users write and read, [`telemetry`] what is counted and served, [`client`] the way to the API
//! server. Programs that claim sandboxes use the [`claim_client`].
//!
//! The feature `cli` (on by default) adds the command line, and with it the program. Nothing else depends on it.

pub mod api;
pub mod cache;
pub mod claim_client;
#[cfg(feature = "cli")]
pub mod cli;
pub mod client;
pub mod controllers;
pub mod executor;
pub mod model;
pub mod planner;
pub mod telemetry;
