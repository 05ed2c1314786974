//! The two controllers and what they need to run: leader election, resync and startup checks.

pub mod claim;
pub mod clock_step;
pub mod commit;
pub mod context;
mod failed_bindings;
mod failed_creations;
pub mod leader_election;
pub mod operator;
pub mod pool;
pub mod resync;
pub mod retry_loop;
pub mod schema_check;
pub mod shutdown;
mod urgent_loop;
mod urgent_queue;
