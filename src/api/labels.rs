//! Every label and annotation name the operator reads or writes, in one place.

/// Prefix of all labels and annotations that belong to the operator.
pub const PREFIX: &str = "warmpool.dev/";
/// Name of the pool a pod or ControllerRevision belongs to.
pub const POOL: &str = "warmpool.dev/pool";
/// Short hash of the template revision a pod was made from.
pub const REVISION: &str = "warmpool.dev/revision";
/// Lifecycle state of a sandbox: [`WARM`], [`CLAIMED`] or [`DRAINING`].
pub const STATE: &str = "warmpool.dev/state";
/// Name of the claim that holds the pod.
pub const CLAIM: &str = "warmpool.dev/claim";
/// UID of the claim that holds the pod; tells two claims of one name apart.
pub const CLAIM_UID: &str = "warmpool.dev/claim-uid";
/// A user sets this label to `"true"` to have one unclaimed sandbox replaced.
pub const EVICT: &str = "warmpool.dev/evict";

/// [`STATE`] of an unclaimed sandbox.
pub const WARM: &str = "warm";
/// [`STATE`] of a sandbox that belongs to a claim.
pub const CLAIMED: &str = "claimed";
/// [`STATE`] of an unclaimed sandbox whose deletion waits for its `preDelete` hooks.
pub const DRAINING: &str = "draining";

/// Annotation that makes a pod a cheaper (lower) or dearer (higher) victim of a scale down; see KEP-2255.
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Annotation on a ControllerRevision: version of the hash function that named it.
pub const HASH_VERSION: &str = "warmpool.dev/hash-version";
/// Annotation on a Pool in which a user says why its template changed; copied to the template's ControllerRevision.
pub const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";
/// Annotation of a template that makes it a new revision though nothing else of it changes; kubectl's name.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// Annotation in which `kubectl apply` keeps what was applied, to compare with it the next time.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
