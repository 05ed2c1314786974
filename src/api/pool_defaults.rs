//! The values of the fields that a pool leaves out. The API server writes them into the stored pool.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// `replicas`.
pub(super) fn replicas() -> i32 {
    1
}

/// `revisionHistoryLimit`, as of a Deployment.
pub(super) fn revision_history_limit() -> i32 {
    10
}

/// `warmUpDeadlineSeconds`.
pub(super) fn warm_up_deadline_seconds() -> i32 {
    300
}

/// `progressDeadlineSeconds`, as of a Deployment.
pub(super) fn progress_deadline_seconds() -> i32 {
    600
}

/// `updateStrategy.maxUnavailable`, as of a Deployment.
pub(super) fn max_unavailable() -> IntOrString {
    IntOrString::String("25%".into())
}

/// `updateStrategy.maxSurge`. A surge asks for capacity that a node may not have.
pub(super) fn max_surge() -> IntOrString {
    IntOrString::Int(0)
}

/// `updateStrategy.partition`: every sandbox is updated.
pub(super) fn partition() -> IntOrString {
    IntOrString::Int(0)
}

/// `scaleStrategy.maxUnavailable`: all that are missing warm up at once.
pub(super) fn max_warming() -> IntOrString {
    IntOrString::String("100%".into())
}

/// `disruption.drainDeadlineSeconds`.
pub(super) fn drain_deadline_seconds() -> i32 {
    600
}

/// `disruption.podDisruptionBudget`: the budget shows a person who drains a node how many sandboxes may go.
pub(super) fn pod_disruption_budget() -> bool {
    true
}
