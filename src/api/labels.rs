//! Names of all labels and annotations that the operator reads or writes.

/// Prefix of all labels and annotations that belong to the operator.
pub const PREFIX: &str = "warmpool.dev/";
/// Label: name of the pool of a pod or ControllerRevision.
pub const POOL: &str = "warmpool.dev/pool";
/// Label: short hash of the template revision of a pod or ControllerRevision.
pub const REVISION: &str = "warmpool.dev/revision";
/// Label: state of a sandbox, [`WARM`], [`CLAIMED`] or [`DRAINING`].
pub const STATE: &str = "warmpool.dev/state";
/// Label: name of the claim that owns the pod.
pub const CLAIM: &str = "warmpool.dev/claim";
/// Label: UID of the claim that owns the pod. Distinguishes claims of the same name.
pub const CLAIM_UID: &str = "warmpool.dev/claim-uid";
/// Label: a user sets it to `"true"` to have an unclaimed sandbox replaced.
pub const EVICT: &str = "warmpool.dev/evict";
/// Label: [`ALLOW`] on a claimed sandbox that may be evicted; absent on all others.
pub const DISRUPTION: &str = "warmpool.dev/disruption";

/// Label of the operator's Lease, with the value [`OPERATOR`]; see the recommended labels of Kubernetes.
pub const APP_NAME: &str = "app.kubernetes.io/name";
/// [`APP_NAME`] of what belongs to the operator itself.
pub const OPERATOR: &str = "warmpool";
/// Annotation of the operator's Lease: the selector of the pools that it serves, if not all.
pub const POOL_SELECTOR: &str = "warmpool.dev/pool-selector";

/// [`STATE`] of an unclaimed sandbox.
pub const WARM: &str = "warm";
/// [`STATE`] of a sandbox that a claim owns.
pub const CLAIMED: &str = "claimed";
/// [`STATE`] of an unclaimed sandbox whose deletion waits for its `preDelete` hooks.
pub const DRAINING: &str = "draining";
/// [`DISRUPTION`] of a claimed sandbox that may be evicted.
pub const ALLOW: &str = "Allow";

/// Annotation of a pod: pods with a lower value are deleted first in a scale-down; see KEP-2255.
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Annotation of a claimed pod whose node has to go: from when on it may be evicted, for claims with
/// `disruption: Notify`.
pub const DISRUPTION_DEADLINE: &str = "warmpool.dev/disruption-deadline";
/// Annotation of a claimed pod that replaces a lost one: resource version of the claim on which it was chosen.
pub const CHOSEN_ON: &str = "warmpool.dev/chosen-on";
/// Annotation of a ControllerRevision: version of the hash function that its name comes from.
pub const HASH_VERSION: &str = "warmpool.dev/hash-version";
/// Annotation of a Pool: why the template changed, written by a user. Copied to the ControllerRevision.
pub const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";
/// Annotation of a template: time of the last restart. Makes an unchanged template a new revision, as in kubectl.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// Annotation: the object as `kubectl apply` last applied it.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
