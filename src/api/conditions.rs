//! Condition types and reasons of both kinds, and how a condition is set.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use std::borrow::Borrow;
use std::sync::Arc;

/// Pool: `True` while at least `replicas - maxUnavailable` sandboxes are available, and at least one where any is
/// wanted. The message names the commonest reason why warming sandboxes are not available, and a pod with a state label
/// that the operator does not understand.
pub const AVAILABLE: &str = "Available";
/// Pool: state of the rollout of the current template.
pub const PROGRESSING: &str = "Progressing";
/// Pool: the API server rejects new sandboxes. The message is the API server's.
pub const REPLICA_FAILURE: &str = "ReplicaFailure";
/// Pool: claims wait and `capacity.maxTotal` forbids more sandboxes.
pub const EXHAUSTED: &str = "Exhausted";
/// Pool: the pool does not have the size that its claims call for, because of a limit. As of a HorizontalPodAutoscaler.
pub const SCALING_LIMITED: &str = "ScalingLimited";
/// Claim: the claim owns all its sandboxes.
pub const BOUND: &str = "Bound";
/// Claim: the sandboxes of the claim are Ready.
pub const READY: &str = "Ready";
/// Claim: a sandbox of the claim cannot stay on its node. The reason is the one for which it would leave; the message
/// says when it may be evicted. Absent otherwise.
pub const DISRUPTION_PENDING: &str = "DisruptionPending";

/// Reasons of [`AVAILABLE`].
pub mod available {
    /// Enough sandboxes are available. Deployments use the same reason.
    pub const MINIMUM: &str = "MinimumReplicasAvailable";
    /// Fewer than `replicas - maxUnavailable` sandboxes are available, or none where any is wanted.
    pub const BELOW_MINIMUM: &str = "MinimumReplicasUnavailable";
}

/// Reasons of [`PROGRESSING`].
pub mod progressing {
    /// The template has changed, and no sandbox runs the new revision yet.
    pub const NEW_REVISION: &str = "NewRevision";
    /// Sandboxes of the update revision are warming up.
    pub const PROGRESSING: &str = "Progressing";
    /// Every unclaimed sandbox runs the update revision, and as many as are wanted were available at one moment.
    pub const COMPLETE: &str = "RolloutComplete";
    /// Every sandbox outside `updateStrategy.partition` runs the update revision and is available.
    pub const PARTITION_COMPLETE: &str = "PartitionComplete";
    /// No sandbox became available for `progressDeadlineSeconds`. The rollout continues. Deployments use the same
    /// reason.
    pub const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// `updateStrategy.paused` is true.
    pub const PAUSED: &str = "Paused";
    /// The spec is invalid. Nothing is created or deleted until it is fixed.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The PodTemplate of `templateRef` does not exist. Nothing is created or deleted until it does.
    pub const TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";
    /// The PodTemplate of `templateRef` is invalid. Nothing is created or deleted until it is fixed.
    pub const TEMPLATE_INVALID: &str = "TemplateInvalid";
}

/// Reasons of [`REPLICA_FAILURE`].
pub mod replica_failure {
    /// The API server rejected a pod. Deployments use the same reason.
    pub const FAILED_CREATE: &str = "FailedCreate";
}

/// Reasons of [`EXHAUSTED`].
pub mod exhausted {
    /// `capacity.maxTotal` is reached while claims wait.
    pub const MAX_TOTAL: &str = "MaxTotalReached";
}

/// Reasons of [`SCALING_LIMITED`].
pub mod scaling_limited {
    /// The pool has the size that its claims call for.
    pub const WITHIN_RANGE: &str = "DesiredWithinRange";
    /// The claims call for more than `autoscaling.maxReplicas`.
    pub const TOO_MANY: &str = "TooManyReplicas";
    /// The claims call for fewer than `replicas` or an active schedule.
    pub const TOO_FEW: &str = "TooFewReplicas";
    /// `scaleStrategy.maxUnavailable` lets too few sandboxes warm up at once for the rate of the claims.
    pub const WARMING: &str = "WarmingLimited";
    /// `capacity.maxTotal` leaves fewer sandboxes than the pool wants.
    pub const MAX_TOTAL: &str = "MaxTotalReached";
    /// The API server rejects new sandboxes, so the pool keeps its size.
    pub const REJECTED: &str = "FailedCreate";
    /// A field of `autoscaling` is invalid, so the pool keeps its size.
    pub const INVALID: &str = "InvalidAutoscaling";
}

/// Reasons of the claim's [`BOUND`] and [`READY`].
pub mod claim {
    /// The claim is bound.
    pub const BOUND: &str = "Bound";
    /// No pool matches, or every matching pool is being deleted. The claim waits for a pool, or fails with
    /// `onEmpty: Fail`.
    pub const POOL_NOT_FOUND: &str = "PoolNotFound";
    /// The pool is in the shard of no operator that answers. The claim waits for one, or fails with `onEmpty: Fail`.
    pub const POOL_NOT_SERVED: &str = "PoolNotServed";
    /// The spec of the pool is invalid, so nothing is created for the claim.
    pub const POOL_INVALID: &str = "PoolInvalid";
    /// The PodTemplate of the pool does not exist, so nothing is created for the claim.
    pub const TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";
    /// The PodTemplate of the pool is invalid, so nothing is created for the claim.
    pub const TEMPLATE_INVALID: &str = "TemplateInvalid";
    /// No sandbox is available. The message says so where none will come, because the pool keeps none and `onEmpty` is
    /// Wait.
    pub const NONE_AVAILABLE: &str = "NoneAvailable";
    /// The API server rejects the binding, or fails to make it several times: because of a policy, a webhook or the
    /// role of the operator. The message is the API server's. The operator retries every few seconds.
    pub const BINDING_REFUSED: &str = "BindingRefused";
    /// The claim accepts only the update revision, and the rollout to it is paused.
    pub const POOL_PAUSED: &str = "PoolPaused";
    /// No sandbox is available and `capacity.maxTotal` forbids more; or the claim has `onEmpty: Wait` and wants more
    /// sandboxes than the pool keeps warm.
    pub const EXHAUSTED: &str = "Exhausted";
    /// The claim was not bound within `waitTimeoutSeconds`.
    pub const WAIT_TIMEOUT: &str = "WaitTimeout";
    /// No sandbox was available, and the claim has `onEmpty: Fail`.
    pub const POOL_EMPTY: &str = "PoolEmpty";
    /// The spec of the claim is invalid.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The sandboxes of the claim are Ready.
    pub const SANDBOX_READY: &str = "SandboxReady";
    /// A sandbox of the claim is not Ready.
    pub const SANDBOX_NOT_READY: &str = "SandboxNotReady";
    /// A sandbox of the claim exited with success.
    pub const SANDBOX_COMPLETED: &str = "SandboxCompleted";
    /// The lifetime of the claim has ended.
    pub const EXPIRED: &str = "Expired";
    /// A sandbox of the claim was deleted or has failed.
    pub const SANDBOX_LOST: &str = "SandboxLost";
    /// The claim is not bound, so it is not Ready.
    pub const NOT_BOUND: &str = "NotBound";
}

/// A condition without times and generation. [`set`] completes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Condition type.
    pub type_: &'static str,
    /// Status of the condition.
    pub status: Truth,
    /// Reason in CamelCase.
    pub reason: &'static str,
    /// Sentence for users.
    pub message: String,
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The question does not apply: a paused rollout neither progresses nor fails.
    Unknown,
}

impl Truth {
    /// The status as the API has it.
    fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl Statement {
    /// `condition` says this, as of that generation of the object.
    fn is_said_by(&self, condition: &Condition, generation: Option<i64>) -> bool {
        condition.type_ == self.type_
            && condition.status == self.status.as_str()
            && condition.reason == self.reason
            && condition.message == self.message
            && condition.observed_generation == generation
    }
}

/// The conditions to store for these statements. A stored condition that says the same is shared, not copied; most are.
pub fn set_all(
    stored: &[Arc<Condition>],
    statements: Vec<Statement>,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Arc<Condition>> {
    let condition = |statement: Statement| {
        let says_so = |condition: &&Arc<Condition>| statement.is_said_by(condition, generation);
        match stored.iter().find(says_so) {
            Some(same) => Arc::clone(same),
            None => Arc::new(set(stored, statement, generation, now)),
        }
    };
    statements.into_iter().map(condition).collect()
}

/// The condition to store for `statement`. Keeps `lastTransitionTime` from `previous` while the status does not
/// change, as the Kubernetes API conventions require.
pub fn set<C: Borrow<Condition>>(
    previous: &[C],
    statement: Statement,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let status = statement.status.as_str();
    let last_transition_time = find(previous, statement.type_)
        .filter(|c| c.status == status)
        .map_or_else(|| Time(whole_seconds(now)), |c| c.last_transition_time.clone());
    Condition {
        type_: statement.type_.to_string(),
        status: status.to_string(),
        reason: statement.reason.to_string(),
        message: statement.message,
        observed_generation: generation,
        last_transition_time,
    }
}

/// The time of day of a timestamp, for messages: `12:03:04Z`.
pub(crate) fn time_of_day(at: Timestamp) -> String {
    jiff::fmt::strtime::format("%H:%M:%SZ", at).unwrap_or_default()
}

/// The condition of type `type_`.
pub fn find<'a, C: Borrow<Condition>>(conditions: &'a [C], type_: &str) -> Option<&'a Condition> {
    conditions.iter().map(Borrow::borrow).find(|c| c.type_ == type_)
}

/// Truncates a timestamp to seconds, the resolution of condition times in the API.
pub(crate) fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
