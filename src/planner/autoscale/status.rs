//! What the status of a pool says of its autoscaling.

use crate::api::autoscaling::{AutoscalingStatus, SizeForHitRate};
use crate::api::conditions::{self, Statement, scaling_limited};
use crate::cache::snapshot::{PoolSnapshot, ScalingLimit, Sizing};
use crate::model::autoscaling::{COMMON_HIT_RATES, ResolvedAutoscaling};
use crate::model::demand::Demand;
use crate::model::pool_error::PoolError;
use crate::planner::observed_counts::number;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;

/// What was learned, for a status that is written; `None` without autoscaling.
pub(crate) fn of(snapshot: &PoolSnapshot, demand: Option<&Demand>) -> Option<Arc<AutoscalingStatus>> {
    let said = said(snapshot)?;
    let understood = !matches!(snapshot.pool.error, Some(PoolError::Spec(_)));
    let sizing = snapshot.sizing.as_ref().filter(|_| understood);
    let (Some(sizing), Some(demand), Some(Ok(autoscaling))) =
        (sizing, demand, snapshot.pool.spec.autoscaling.as_ref())
    else {
        return Some(said);
    };
    let claims = demand.arrivals.seen.total();
    let mut rates = COMMON_HIT_RATES.to_vec();
    rates.push(autoscaling.target);
    rates.sort_unstable();
    rates.dedup();
    let size = |share: f64, hit_rate: String| SizeForHitRate {
        hit_rate,
        replicas: number(demand.arrivals.seen.quantile(share)),
    };
    let mut sizes: Vec<_> = Vec::new();
    if claims >= 0.5 {
        sizes.push(size(0.5, "50%".into()));
        sizes.extend(rates.iter().map(|rate| size(rate.share(), rate.to_string())));
        sizes.push(size(1.0, "100%".into()));
    }
    let per_second = demand.arrivals_per_second(snapshot.now);
    Some(Arc::new(AutoscalingStatus {
        message: reason(sizing, demand, autoscaling),
        last_scale_time: demand.resized_at.map(|at| Time(conditions::whole_seconds(at))),
        arrivals_per_hour: (per_second * 3600.0).round() as i64,
        warm_up_milliseconds: i64::try_from(demand.warm_up.as_millis()).unwrap_or(i64::MAX),
        hit_rate: demand.hit_rate().map(|share| format!("{:.1}%", share * 100.0)),
        claims: claims.round() as i64,
        sizes,
    }))
}

/// Why the pool has its size.
fn reason(sizing: &Sizing, demand: &Demand, autoscaling: &ResolvedAutoscaling) -> String {
    let (size, target) = (sizing.size, autoscaling.target);
    let warm_up = demand.warm_up.as_secs_f64();
    if let Some(schedule) = &sizing.schedule {
        return format!("{size} is minReplicas of the active schedule {schedule:?}");
    }
    if size > sizing.needed.min(autoscaling.max_replicas) && size > sizing.floor {
        return format!("{size} until a smaller size has been enough for stabilizationWindowSeconds");
    }
    if sizing.needed <= sizing.floor {
        return format!("{size} is spec.replicas, the minimum, and enough for a hit rate of {target}");
    }
    if sizing.needed > size {
        return format!("{size}, although a hit rate of {target} needs {}", sizing.needed);
    }
    let highest = demand.arrivals.needs.highest();
    if highest.fast == sizing.needed && highest.fast > highest.long {
        return format!(
            "{size}, because recent claims request sandboxes faster than the claims of the last hour did"
        );
    }
    format!(
        "{size}, because for {target} of recent claims at most as many sandboxes were requested within {warm_up:.1} s, the time to replace a sandbox"
    )
}

/// What the status says as long as nothing else in it is new: numbers that change with every claim are no reason to
/// write.
pub(crate) fn said(snapshot: &PoolSnapshot) -> Option<Arc<AutoscalingStatus>> {
    let stored = || snapshot.pool.status.autoscaling.clone();
    match snapshot.pool.error {
        Some(PoolError::Spec(_)) => stored(),
        _ => snapshot.sizing.as_ref().map(|_| stored().unwrap_or_default()),
    }
}

/// The condition `ScalingLimited`, as of a HorizontalPodAutoscaler. `capacity` is what `maxTotal` leaves to the
/// unclaimed.
pub(crate) fn statement(snapshot: &PoolSnapshot, capacity: usize) -> Option<Statement> {
    let sizing = snapshot.sizing.as_ref()?;
    let size = sizing.size;
    let (reason, message) = match &sizing.limit {
        ScalingLimit::Invalid(message) => (
            scaling_limited::INVALID,
            format!("the pool keeps its size {size}: {message}"),
        ),
        ScalingLimit::Rejected => (
            scaling_limited::REJECTED,
            format!(
                "the pool keeps its size {size} while the API server rejects new sandboxes; see condition ReplicaFailure"
            ),
        ),
        ScalingLimit::TooMany => (
            scaling_limited::TOO_MANY,
            "the hit rate needs more sandboxes than autoscaling.maxReplicas; raise maxReplicas or lower targetHitRate"
                .into(),
        ),
        _ if capacity < size => (
            scaling_limited::MAX_TOTAL,
            format!("capacity.maxTotal leaves fewer unclaimed sandboxes than the size {size}; raise maxTotal"),
        ),
        ScalingLimit::Warming => (
            scaling_limited::WARMING,
            "claims arrive about as fast as scaleStrategy.maxUnavailable lets sandboxes warm up; raise maxUnavailable".into(),
        ),
        ScalingLimit::TooFew => (
            scaling_limited::TOO_FEW,
            "the hit rate needs fewer sandboxes than the minimum".into(),
        ),
        ScalingLimit::None => (
            scaling_limited::WITHIN_RANGE,
            "the pool has the size that the hit rate needs".into(),
        ),
    };
    Some(Statement {
        type_: conditions::SCALING_LIMITED,
        status: (sizing.limit != ScalingLimit::None || capacity < size).into(),
        reason,
        message,
    })
}
