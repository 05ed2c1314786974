//! The planner: one pure function from the snapshot of a pool to a plan.
//!
//! It knows no client, clock, randomness or log. Each phase adds to the same [`Draft`], so a later phase sees what an
//! earlier one decided.

pub mod budget;
pub mod claim;
mod counts;
mod draft;
mod evict;
mod observed;
mod plan;
mod progress;
pub mod queues;
mod recreate;
mod removal_order;
pub mod revise;
mod scale;
mod schedule;
mod status;
mod unclaimed;
mod wait_reasons;
pub mod warm_up;

use crate::cache::snapshot::PoolSnapshot;
use draft::Draft;
pub use plan::{Action, Plan, PlanPhase, Shortfall, Step};
pub use scale::BURST_REPLICAS;

/// Plans the next writes for a pool.
pub fn plan(snapshot: &PoolSnapshot) -> Plan {
    // The update revision is found first, because every phase asks which sandboxes run it.
    let revisions = revise::resolve(snapshot);
    let mut draft = Draft::new(snapshot, &revisions);
    warm_up::recall(&mut draft);
    evict::mark(&mut draft);
    // Claims are served before anything is removed: an eviction that was within the budget before a claim took its
    // sandbox may not be after.
    schedule::run(&mut draft);
    // While its spec or template is not understood, a pool creates and deletes nothing.
    if snapshot.pool.error.is_none() {
        let surge = recreate::run(&mut draft);
        scale::run(&mut draft, surge);
    }
    let status = status::run(&mut draft);
    let waiting = wait_reasons::of(&draft);
    let Draft {
        actions,
        failures,
        shortfall,
        next,
        ..
    } = draft;
    Plan {
        actions,
        revisions,
        status,
        waiting,
        shortfall,
        failures,
        next,
    }
}
