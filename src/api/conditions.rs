//! Condition types and reasons of both kinds, and the one way to set a condition.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Pool: `True` while available >= replicas - maxUnavailable.
pub const AVAILABLE: &str = "Available";
/// Pool: how the rollout of the latest template fares.
pub const PROGRESSING: &str = "Progressing";
/// Pool: a create was refused; the message is the API server's.
pub const REPLICA_FAILURE: &str = "ReplicaFailure";
/// Pool: claims wait and `capacity.maxTotal` forbids more sandboxes.
pub const EXHAUSTED: &str = "Exhausted";
/// Claim: the sandbox belongs to the claim.
pub const BOUND: &str = "Bound";
/// Claim: the sandbox of the claim is Ready now.
pub const READY: &str = "Ready";

/// Reasons of [`AVAILABLE`].
pub mod available {
    /// Enough sandboxes are available (Deployment's word).
    pub const MINIMUM: &str = "MinimumReplicasAvailable";
    /// Fewer than `replicas - maxUnavailable` are available.
    pub const BELOW_MINIMUM: &str = "MinimumReplicasUnavailable";
}

/// Reasons of [`PROGRESSING`].
pub mod progressing {
    /// A new template was seen; no sandbox runs it yet.
    pub const NEW_REVISION: &str = "NewRevision";
    /// Sandboxes of the update revision are being brought up.
    pub const PROGRESSING: &str = "Progressing";
    /// Every unclaimed sandbox runs the update revision and is available.
    pub const COMPLETE: &str = "RolloutComplete";
    /// Every sandbox that shall run the update revision does; `updateStrategy.partition` keeps the others.
    pub const PARTITION_COMPLETE: &str = "PartitionComplete";
    /// Nothing became available for `progressDeadlineSeconds` (Deployment's word). The rollout goes on.
    pub const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// `updateStrategy.paused` stops the rollout.
    pub const PAUSED: &str = "Paused";
    /// The spec holds a value that is not understood; nothing is created or deleted until it is mended.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The PodTemplate of `templateRef` does not exist; nothing is created or deleted until it does.
    pub const TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";
    /// The PodTemplate of `templateRef` cannot be used; nothing is created or deleted until it is mended.
    pub const TEMPLATE_INVALID: &str = "TemplateInvalid";
}

/// Reasons of [`REPLICA_FAILURE`].
pub mod replica_failure {
    /// The API server refused a pod (Deployment's word).
    pub const FAILED_CREATE: &str = "FailedCreate";
}

/// Reasons of [`EXHAUSTED`].
pub mod exhausted {
    /// `capacity.maxTotal` is reached while claims wait.
    pub const MAX_TOTAL: &str = "MaxTotalReached";
}

/// Reasons of the claim's [`BOUND`] and [`READY`].
pub mod claim {
    /// A sandbox was bound.
    pub const BOUND: &str = "Bound";
    /// No pool that will do is there, or each is being deleted; the claim binds when one appears.
    pub const POOL_NOT_FOUND: &str = "PoolNotFound";
    /// The pool's spec is not understood, so nothing is created for the claim.
    pub const POOL_INVALID: &str = "PoolInvalid";
    /// The PodTemplate that the pool names does not exist, so nothing is created for the claim.
    pub const TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";
    /// The PodTemplate that the pool names cannot be used, so nothing is created for the claim.
    pub const TEMPLATE_INVALID: &str = "TemplateInvalid";
    /// No sandbox is available; one is being warmed.
    pub const NONE_AVAILABLE: &str = "NoneAvailable";
    /// The API server refuses the binding, or fails again and again to make it: a policy, a webhook or the operator's role is
    /// in the way. The message is the API server's; the operator tries again every few seconds.
    pub const BINDING_REFUSED: &str = "BindingRefused";
    /// The claim wants the update revision, and the pool's rollout to it is paused.
    pub const POOL_PAUSED: &str = "PoolPaused";
    /// No sandbox is available and `capacity.maxTotal` forbids more; or the claim waits for the refill alone and wants
    /// more than the pool makes for itself.
    pub const EXHAUSTED: &str = "Exhausted";
    /// Not bound within `waitTimeoutSeconds`.
    pub const WAIT_TIMEOUT: &str = "WaitTimeout";
    /// `onEmpty: Fail` and nothing was available.
    pub const POOL_EMPTY: &str = "PoolEmpty";
    /// The claim's own spec is not understood.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The claim's sandbox is Ready.
    pub const SANDBOX_READY: &str = "SandboxReady";
    /// The claim's sandbox is not Ready.
    pub const SANDBOX_NOT_READY: &str = "SandboxNotReady";
    /// The claim's sandbox ended by itself with success.
    pub const SANDBOX_COMPLETED: &str = "SandboxCompleted";
    /// The claim came to the end of its lifetime.
    pub const EXPIRED: &str = "Expired";
    /// The claim's sandbox is gone or failed.
    pub const SANDBOX_LOST: &str = "SandboxLost";
    /// Not bound, so not ready.
    pub const NOT_BOUND: &str = "NotBound";
}

/// What a condition says now; [`set`] turns it into a stored condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Condition type.
    pub type_: &'static str,
    /// Whether it holds.
    pub status: Truth,
    /// CamelCase reason.
    pub reason: &'static str,
    /// Sentence for a person.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can say, or nobody asks: a paused rollout neither progresses nor fails to.
    Unknown,
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// The stored form of `statement`. `lastTransitionTime` is kept from `previous` while the status stays
/// the same, as the Kubernetes API conventions ask.
pub fn set(
    previous: &[Condition],
    statement: Statement,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let status = match statement.status {
        Truth::True => "True",
        Truth::False => "False",
        Truth::Unknown => "Unknown",
    };
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

/// A moment as messages tell it, when the day is plain: `12:03:04Z`.
pub(crate) fn time_of_day(at: Timestamp) -> String {
    jiff::fmt::strtime::format("%H:%M:%SZ", at).unwrap_or_default()
}

/// The condition of the given type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// Condition times have a resolution of one second in the API.
pub(crate) fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
