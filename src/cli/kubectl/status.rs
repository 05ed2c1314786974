//! What `rollout status` says about a pool: a pure function of the pool as stored.

use crate::api::PoolStatus;
use crate::api::conditions;
use crate::api::conditions::progressing;
use crate::cli::kubectl::pool;
use crate::model::stored;
use kube::core::DynamicObject;
use thiserror::Error;

/// What is said before the operator has seen the spec as it is now.
pub(super) const UNOBSERVED: &str = "Waiting for pool spec update to be observed...";

/// How a rollout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It goes on, or will; a line that says how far it is.
    Waiting(String),
    /// It has come to its end; a line that says so.
    Done(String),
}

/// Why a rollout will not come to its end.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StatusError {
    /// `--revision` asks for another revision than the one that is rolled out.
    #[error("desired revision ({desired}) is different from the running revision ({running})")]
    OtherRevision {
        /// The number asked for.
        desired: i64,
        /// The number of the pool's update revision.
        running: i64,
    },
    /// It has not moved within `progressDeadlineSeconds`.
    #[error("pool {0:?} exceeded its progress deadline")]
    Deadline(String),
    /// It cannot begin before the pool, or what it refers to, is mended.
    #[error("pool {name:?} cannot roll out: {message}")]
    Stuck {
        /// Name of the pool.
        name: String,
        /// The operator's words.
        message: String,
    },
}

/// The status of a pool. One that does not decode is as good as none.
pub(super) fn read(pool: &DynamicObject) -> PoolStatus {
    let status = pool::at(pool, "/status").cloned().unwrap_or_default();
    stored::decode("status", &status).unwrap_or_default()
}

/// Whether the status speaks of the spec as it is now.
pub(super) fn is_observed(pool: &DynamicObject, status: &PoolStatus) -> bool {
    status.observed_generation > 0 && status.observed_generation >= pool.metadata.generation.unwrap_or(0)
}

/// How the rollout of `pool` stands.
///
/// # Errors
/// As [`StatusError`] says: nothing is gained by waiting.
pub fn standing(pool: &DynamicObject) -> Result<Standing, StatusError> {
    let (name, status) = (pool::name(pool), read(pool));
    if !is_observed(pool, &status) {
        return Ok(Standing::Waiting(UNOBSERVED.into()));
    }
    let Some(progress) = conditions::find(&status.conditions, conditions::PROGRESSING) else {
        return Ok(Standing::Waiting(how_far(pool, &status)));
    };
    match progress.reason.as_str() {
        progressing::DEADLINE_EXCEEDED => Err(StatusError::Deadline(name.into())),
        progressing::COMPLETE => Ok(Standing::Done(format!("pool {name:?} successfully rolled out"))),
        progressing::PARTITION_COMPLETE => Ok(Standing::Done(format!(
            "partitioned roll out complete: {} new sandboxes have been updated...",
            status.updated
        ))),
        _ if progress.status == "False" => Err(StatusError::Stuck {
            name: name.into(),
            message: progress.message.clone(),
        }),
        progressing::PAUSED => Ok(Standing::Waiting(format!(
            "{} It is paused; resume it with '{}'",
            how_far(pool, &status),
            pool::command("resume", pool)
        ))),
        _ if pool::at(pool, "/spec/updateStrategy/type").is_some_and(|t| t == "OnReplenish") => {
            Ok(Standing::Waiting(format!(
                "{} By its strategy OnReplenish the others are replaced only as claims take them.",
                how_far(pool, &status)
            )))
        }
        _ => Ok(Standing::Waiting(how_far(pool, &status))),
    }
}

/// The first thing still to come, in numbers of unclaimed sandboxes.
fn how_far(pool: &DynamicObject, status: &PoolStatus) -> String {
    let replicas = pool::at(pool, "/spec/replicas").and_then(serde_json::Value::as_i64);
    let wanted = i64::from(status.expected_updated);
    let kept = (replicas.unwrap_or(wanted) - wanted).max(0);
    let (updated, available) = (i64::from(status.updated), status.updated_available);
    let old = i64::from(status.replicas) - updated - kept;
    let what = if updated < wanted && kept > 0 {
        return format!(
            "Waiting for partitioned roll out to finish: {updated} out of {wanted} new sandboxes have been updated..."
        );
    } else if updated < wanted {
        format!("{updated} out of {wanted} new sandboxes have been updated...")
    } else if old > 0 {
        format!("{old} old sandboxes are pending termination...")
    } else {
        format!("{available} of {wanted} updated sandboxes are available...")
    };
    format!(
        "Waiting for pool {:?} rollout to finish: {what}",
        pool::name(pool)
    )
}
