//! Chooses the size of an autoscaled pool before its plan is made, so that no phase knows of autoscaling.

mod choose_size;
mod estimate;
mod limits;
mod observe;
mod recover;
pub(crate) mod status;

pub(crate) use observe::observe;

use crate::cache::snapshot::{PoolSnapshot, ScalingLimit, Sizing};
use crate::model::pool::Pool;
use std::sync::Arc;

/// The snapshot of a pool at the size that its `autoscaling` chooses. Without `autoscaling` the size is
/// `spec.replicas`.
pub fn at_chosen_size(mut snapshot: PoolSnapshot) -> PoolSnapshot {
    let pool = Arc::clone(&snapshot.pool);
    let replicas = pool.spec.replicas;
    let sizing = match &pool.spec.autoscaling {
        None => {
            snapshot.demand = None;
            return snapshot;
        }
        Some(Ok(autoscaling)) => choose_size::choose(&mut snapshot, autoscaling),
        Some(Err(message)) => Sizing {
            size: replicas.max(recover::last_size(&pool)),
            needed: 0,
            floor: replicas,
            schedule: None,
            limit: ScalingLimit::Invalid(message.clone()),
            next: None,
        },
    };
    if sizing.size != replicas {
        let mut sized = Pool::clone(&pool);
        sized.spec = std::mem::take(&mut sized.spec).at_size(sizing.size);
        snapshot.pool = Arc::new(sized);
    }
    snapshot.sizing = Some(sizing);
    snapshot
}
