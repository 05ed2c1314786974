//! warmpool keeps sandboxes (pods) warm in a `Pool` and hands them to `SandboxClaim`s in milliseconds.
//!
//! The code runs in one direction: [`observe`] turns watches into a view of plain data, [`plan`] turns the
//! view into a plan without any I/O, [`apply`] is the only code that writes, and [`control`] ties the three
//! together for each kind. [`metrics`] is told by all of them what to count, and [`serve`] shows it.

pub mod api;
pub mod apply;
pub mod cli;
pub mod control;
pub mod metrics;
pub mod observe;
pub mod plan;
pub mod serve;
