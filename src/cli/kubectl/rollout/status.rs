//! Decides from a stored pool whether its rollout is done, still running or stuck.

use crate::api::PoolStatus;
use crate::api::conditions::{self, progressing};
use crate::cli::kubectl::pool;
use crate::model::stored;
use kube::core::DynamicObject;
use thiserror::Error;

/// Printed while the status is older than the spec.
pub(super) const UNOBSERVED: &str = "Waiting for pool spec update to be observed...";

/// The state of a rollout. Holds the line to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutState {
    /// The rollout is not complete.
    Waiting(String),
    /// The rollout is complete, or complete up to the partition.
    Done(String),
}

/// The rollout will not complete without a change by the user.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StatusError {
    /// The update revision is not the revision that `--revision` names.
    #[error("desired revision ({desired}) is different from the running revision ({running})")]
    OtherRevision {
        /// The number in `--revision`.
        desired: i64,
        /// The number of the update revision.
        running: i64,
    },
    /// No progress within `progressDeadlineSeconds`. Holds the name of the pool.
    #[error("pool {0:?} exceeded its progress deadline")]
    Deadline(String),
    /// The spec of the pool or its PodTemplate is invalid or missing.
    #[error("pool {name:?} cannot roll out: {message}")]
    Stuck {
        /// Name of the pool.
        name: String,
        /// Message of the condition Progressing.
        message: String,
    },
}

/// The status of a pool; the default when it is absent or cannot be decoded.
pub(super) fn status(pool: &DynamicObject) -> PoolStatus {
    let status = pool::at(pool, "/status").cloned().unwrap_or_default();
    stored::decode("status", &status).unwrap_or_default()
}

/// Whether the operator has observed the current spec.
pub(super) fn is_observed(pool: &DynamicObject, status: &PoolStatus) -> bool {
    status.observed_generation > 0 && status.observed_generation >= pool.metadata.generation.unwrap_or(0)
}

/// The state of the rollout of `pool`.
///
/// # Errors
/// [`StatusError::Deadline`] and [`StatusError::Stuck`].
pub fn rollout_state(pool: &DynamicObject) -> Result<RolloutState, StatusError> {
    let (name, status) = (pool::name(pool), status(pool));
    if !is_observed(pool, &status) {
        return Ok(RolloutState::Waiting(UNOBSERVED.into()));
    }
    let Some(progress) = conditions::find(&status.conditions, conditions::PROGRESSING) else {
        return Ok(RolloutState::Waiting(progress_line(pool, &status)));
    };
    match progress.reason.as_str() {
        progressing::DEADLINE_EXCEEDED => Err(StatusError::Deadline(name.into())),
        progressing::COMPLETE => Ok(RolloutState::Done(format!(
            "pool {name:?} successfully rolled out"
        ))),
        progressing::PARTITION_COMPLETE => Ok(RolloutState::Done(format!(
            "partitioned roll out complete: {} new sandboxes have been updated...",
            status.updated
        ))),
        _ if progress.status == "False" => Err(StatusError::Stuck {
            name: name.into(),
            message: progress.message.clone(),
        }),
        progressing::PAUSED => Ok(RolloutState::Waiting(format!(
            "{} It is paused; resume it with '{}'",
            paused_line(pool, &status),
            pool::rollout_command("resume", pool)
        ))),
        _ if pool::at(pool, "/spec/updateStrategy/type").is_some_and(|t| t == "OnReplenish") => {
            Ok(RolloutState::Waiting(format!(
                "{} Its strategy is OnReplenish: the others are replaced only as claims take them.",
                progress_line(pool, &status)
            )))
        }
        _ => Ok(RolloutState::Waiting(progress_line(pool, &status))),
    }
}

/// Unclaimed sandboxes that the pool keeps warm.
fn size(pool: &DynamicObject, status: &PoolStatus) -> Option<i64> {
    if pool::at(pool, "/spec/autoscaling").is_some() {
        return Some(status.desired_replicas.into());
    }
    pool::at(pool, "/spec/replicas").and_then(serde_json::Value::as_i64)
}

/// How far a paused rollout is. What the pause keeps on the old revision is still to be updated.
fn paused_line(pool: &DynamicObject, status: &PoolStatus) -> String {
    let wanted = size(pool, status).unwrap_or_else(|| status.replicas.into());
    waiting_line(pool, &updated_step(status.updated.into(), wanted))
}

/// The first step that is not done, with its numbers of unclaimed sandboxes.
fn progress_line(pool: &DynamicObject, status: &PoolStatus) -> String {
    let wanted = i64::from(status.expected_updated);
    let kept = (size(pool, status).unwrap_or(wanted) - wanted).max(0);
    let (updated, available) = (i64::from(status.updated), status.updated_available);
    let old = i64::from(status.replicas) - updated - kept;
    let step = if updated < wanted && kept > 0 {
        let step = updated_step(updated, wanted);
        return format!("Waiting for partitioned roll out to finish: {step}");
    } else if updated < wanted {
        updated_step(updated, wanted)
    } else if old > 0 {
        format!("{old} old sandboxes are pending termination...")
    } else {
        format!("{available} of {wanted} updated sandboxes are available...")
    };
    waiting_line(pool, &step)
}

fn updated_step(updated: i64, wanted: i64) -> String {
    format!("{updated} out of {wanted} new sandboxes have been updated...")
}

fn waiting_line(pool: &DynamicObject, step: &str) -> String {
    format!(
        "Waiting for pool {:?} rollout to finish: {step}",
        pool::name(pool)
    )
}
