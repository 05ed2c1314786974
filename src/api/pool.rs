//! The `Pool`: how many unclaimed sandboxes to keep warm, from which template, changed how fast.

use crate::api::ClaimDefaults;
use crate::api::conditions;
use crate::api::conditions::progressing;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A Pool keeps unclaimed sandboxes (pods) warm, so that a SandboxClaim gets one in milliseconds.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "warmpool.dev",
    version = "v1alpha1",
    kind = "Pool",
    plural = "pools",
    shortname = "wp",
    category = "warmpool",
    namespaced,
    status = "PoolStatus",
    derive = "PartialEq",
    doc = "Pool keeps unclaimed sandboxes (pods) warm, so that a SandboxClaim gets one in milliseconds.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Total", type_ = "integer", json_path = ".status.total"),
    printcolumn(name = "Claimed", type_ = "integer", json_path = ".status.claimed"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.available"),
    printcolumn(name = "Updated", type_ = "integer", json_path = ".status.updated"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.ready", priority = 1),
    printcolumn(name = "Pending", type_ = "integer", json_path = ".status.pendingClaims", priority = 1),
    printcolumn(name = "Revision", type_ = "string", json_path = ".status.updateRevision", priority = 1),
    printcolumn(name = "Strategy", type_ = "string", json_path = ".spec.updateStrategy.type", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = kube::core::Rule::new("self.metadata.name.size() <= 63")
        .message("metadata.name must be at most 63 characters, because it becomes the value of a pod label"),
    validation = kube::core::Rule::new("!has(self.spec.capacity) || !has(self.spec.capacity.maxWarm) || self.spec.capacity.maxWarm >= self.spec.replicas")
        .message("spec.capacity.maxWarm must not be below spec.replicas"),
    validation = kube::core::Rule::new("self.spec.progressDeadlineSeconds > self.spec.minReadySeconds")
        .message("spec.progressDeadlineSeconds must be greater than spec.minReadySeconds"),
    validation = kube::core::Rule::new("self.spec.warmUpDeadlineSeconds > self.spec.minReadySeconds")
        .message("spec.warmUpDeadlineSeconds must be greater than spec.minReadySeconds")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = kube::core::Rule::new("has(self.template) || has(self.templateRef)")
        .message("a pool needs a template: write spec.template, or name a PodTemplate in spec.templateRef"),
    validation = kube::core::Rule::new("!has(self.template) || !has(self.templateRef)")
        .message("spec.template and spec.templateRef exclude each other; keep one of them")
)]
pub struct PoolSpec {
    /// Number of unclaimed sandboxes to keep warm. A claimed sandbox has left the pool and is not counted.
    /// `kubectl scale`, a HorizontalPodAutoscaler and KEDA write it.
    #[serde(default = "one")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("replicas must be 0 or more"))]
    pub replicas: i32,

    /// Bounds on how many sandboxes exist besides `replicas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,

    /// The pod to warm: labels, annotations and a PodSpec, as in a Deployment. A change rolls through the
    /// unclaimed sandboxes by `updateStrategy`; claimed ones are never touched by it. Exactly one of `template`
    /// and `templateRef` is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<PodTemplate>,

    /// A PodTemplate (core/v1) in the namespace of the pool that says what pod to warm, in place of `template`.
    /// Several pools may use one. A change of it rolls through each of them like a change of `template`. While it
    /// is missing or cannot be used, the pool keeps what it has, serves claims from that and says why in its
    /// condition Progressing. The API server writes its defaults into a PodTemplate, so moving a template from
    /// `template` to a PodTemplate is in general a new revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateRef>,

    /// How a changed template replaces the unclaimed sandboxes.
    #[serde(default)]
    pub update_strategy: UpdateStrategy,

    /// How fast sandboxes are brought up.
    #[serde(default)]
    pub scale_strategy: ScaleStrategy,

    /// Seconds a sandbox must have been Ready before it counts as available and may be claimed.
    #[serde(default)]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("minReadySeconds must be 0 or more"))]
    pub min_ready_seconds: i32,

    /// What holds for claims on this pool that leave a field out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_defaults: Option<ClaimDefaults>,

    /// Hooks by which other programs have a say in when a sandbox is available and when it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,

    /// Seconds a rollout may go without progress (a sandbox of the new revision that becomes available) before the
    /// condition Progressing says False with reason ProgressDeadlineExceeded. The rollout goes on all the same.
    #[serde(default = "ten_minutes")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("progressDeadlineSeconds must be 1 or more"))]
    pub progress_deadline_seconds: i32,

    /// Seconds an unclaimed sandbox may take to become available before it is replaced. As long as the replacements
    /// fail as well, the pauses between them double from 1 s to 5 min, and no more than `maxUnavailable` and
    /// `maxSurge` together are tried at once.
    #[serde(default = "five_minutes")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("warmUpDeadlineSeconds must be 1 or more"))]
    pub warm_up_deadline_seconds: i32,

    /// Number of old revisions (ControllerRevision objects) kept. Revisions that sandboxes still run are
    /// kept besides.
    #[serde(default = "ten")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("revisionHistoryLimit must be 0 or more"))]
    pub revision_history_limit: i32,
}

/// Bounds on how many sandboxes exist.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = kube::core::Rule::new("!has(self.minTotal) || !has(self.maxTotal) || self.minTotal <= self.maxTotal")
        .message("capacity.minTotal must not be above capacity.maxTotal")
)]
pub struct Capacity {
    /// Unclaimed sandboxes are trimmed only above this number. Default: `replicas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("capacity.maxWarm must be 0 or more"))]
    pub max_warm: Option<i32>,
    /// Claimed and unclaimed sandboxes together are never planned below this number. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("capacity.minTotal must be 0 or more"))]
    pub min_total: Option<i32>,
    /// Claimed, unclaimed and terminating sandboxes together never exceed this number. Default: no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("capacity.maxTotal must be 0 or more"))]
    pub max_total: Option<i32>,
}

/// How a changed template replaces the unclaimed sandboxes. Every field may be changed while a rollout is
/// under way; it goes on from where the pool is.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// RollingUpdate replaces unclaimed sandboxes of old revisions within `maxUnavailable` and `maxSurge`;
    /// Recreate deletes all of them at once; OnReplenish replaces them only as claims and failures take them.
    #[serde(default, rename = "type")]
    pub type_: UpdateStrategyType,
    /// How many of `replicas` may be unavailable during a rollout: a number, or a percentage of `replicas`
    /// rounded down (Deployment's rule). When this and `maxSurge` both come to 0, sandboxes are replaced with a
    /// surge of 1; where `capacity.maxTotal` leaves no place for the extra sandbox, this counts as 1.
    #[serde(default = "quarter")]
    #[x_kube(
        validation = kube::core::Rule::new("type(self) == string ? self.matches('^(100|[0-9]{1,2})%$') : self >= 0")
            .message("maxUnavailable must be a number of 0 or more, or a percentage from \"0%\" to \"100%\""),
        validation = kube::core::Rule::new("type(self) == string || self <= 2147483647")
            .message("maxUnavailable must not be above 2147483647")
    )]
    pub max_unavailable: IntOrString,
    /// How many sandboxes above `replicas` a rollout may create: a number, or a percentage of `replicas`
    /// rounded up. With maxUnavailable 0, no available sandbox goes before its replacement is available. When
    /// this and `maxUnavailable` both come to 0, it counts as 1.
    #[serde(default = "zero")]
    #[x_kube(
        validation = kube::core::Rule::new("type(self) == string ? self.matches('^[0-9]{1,4}%$') : self >= 0")
            .message("maxSurge must be a number of 0 or more, or a percentage like \"25%\""),
        validation = kube::core::Rule::new("type(self) == string || self <= 2147483647")
            .message("maxSurge must not be above 2147483647")
    )]
    pub max_surge: IntOrString,
    /// How many unclaimed sandboxes stay on the old revision (a canary): a number, or a percentage of
    /// `replicas` rounded up, but less than all of them unless it is "100%".
    #[serde(default = "zero")]
    #[x_kube(
        validation = kube::core::Rule::new("type(self) == string ? self.matches('^(100|[0-9]{1,2})%$') : self >= 0")
            .message("partition must be a number of 0 or more, or a percentage from \"0%\" to \"100%\""),
        validation = kube::core::Rule::new("type(self) == string || self <= 2147483647")
            .message("partition must not be above 2147483647")
    )]
    pub partition: IntOrString,
    /// Stops the rollout only: the pool is kept full, with the old revision, and claims are served.
    #[serde(default)]
    pub paused: bool,
}

impl Default for UpdateStrategy {
    fn default() -> Self {
        Self {
            type_: UpdateStrategyType::default(),
            max_unavailable: quarter(),
            max_surge: zero(),
            partition: zero(),
            paused: false,
        }
    }
}

/// The kind of rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategyType {
    /// Replace unclaimed sandboxes of old revisions within `maxUnavailable` and `maxSurge`.
    #[default]
    RollingUpdate,
    /// Delete all unclaimed sandboxes of old revisions at once.
    Recreate,
    /// Replace unclaimed sandboxes of old revisions only as claims and failures take them.
    OnReplenish,
}

/// How fast sandboxes are brought up.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleStrategy {
    /// Ceiling on the sandboxes warming (created, not yet available) at once: a number, or a percentage of
    /// `replicas` rounded up. At least 1. In a pool of 0 replicas the percentage is of what claims ask for.
    #[serde(default = "all")]
    #[x_kube(
        validation = kube::core::Rule::new("type(self) == string ? self.matches('^[0-9]{1,4}%$') : self >= 0")
            .message("maxUnavailable must be a number of 0 or more, or a percentage like \"100%\""),
        validation = kube::core::Rule::new("type(self) == string || self <= 2147483647")
            .message("maxUnavailable must not be above 2147483647")
    )]
    pub max_unavailable: IntOrString,
}

impl Default for ScaleStrategy {
    fn default() -> Self {
        Self {
            max_unavailable: all(),
        }
    }
}

/// Hooks by which other programs have a say in the life of an unclaimed sandbox.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// A sandbox is available, and may be claimed, only once ALL of these labels and finalizers are on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_normal: Option<LifecycleHook>,
    /// As long as ANY of these labels and finalizers is on an unclaimed sandbox, the operator does not delete it: it
    /// sets the label `warmpool.dev/state` to `draining` and waits for them to be taken off. A draining sandbox is
    /// not counted, and becomes warm again if it is wanted before one of them was taken off. When the pool itself
    /// is deleted, the garbage collector waits for finalizers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_delete: Option<LifecycleHook>,
}

/// Labels and finalizers that other programs set on a sandbox and take off.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleHook {
    /// Labels with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16, "additionalProperties" = {"type": "string", "maxLength": 63}))]
    #[x_kube(
        validation = kube::core::Rule::new("self.all(key, !key.startsWith('warmpool.dev/'))")
            .message("labelsHandler must not hold keys under warmpool.dev/, they belong to the operator")
    )]
    pub labels_handler: BTreeMap<String, String>,
    /// Finalizers, such as `example.com/registered`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 16, "items" = {"type": "string", "maxLength": 317}, "x-kubernetes-list-type" = "set"))]
    #[x_kube(
        validation = kube::core::Rule::new("self.all(name, name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))")
            .message("finalizersHandler must hold names like \"example.com/registered\"")
    )]
    pub finalizers_handler: Vec<String>,
}

/// Reference to a PodTemplate in the same namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TemplateRef {
    /// Name of the PodTemplate. Only the labels, annotations and spec of its template are used, and keys under
    /// `warmpool.dev/` may not be among them.
    #[schemars(length(max = 253))]
    #[x_kube(validation = kube::core::Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')")
        .message("templateRef.name must be the name of a PodTemplate like \"python-3.13\": lower-case letters, digits, '-' and '.', with a letter or digit at both ends"))]
    pub name: String,
}

/// A pod template exactly as the API server stores it. It is held as JSON and not as a typed struct, so that nothing
/// of that is lost, and no library upgrade can move the revision hash. An inline one is stored by the schema of this
/// CRD, which has the fields of Kubernetes 1.33; a PodTemplate keeps all that its API server knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodTemplate(pub serde_json::Value);

impl JsonSchema for PodTemplate {
    fn schema_name() -> Cow<'static, str> {
        "PodTemplate".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        PodTemplateSpec::json_schema(generator)
    }
}

/// What the operator last saw and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolStatus {
    /// `metadata.generation` this status speaks of.
    pub observed_generation: i64,
    /// Unclaimed sandboxes.
    pub replicas: i32,
    /// Unclaimed sandboxes whose Ready condition is True.
    pub ready: i32,
    /// Unclaimed sandboxes that a claim could take now.
    pub available: i32,
    /// Unclaimed sandboxes of the update revision.
    pub updated: i32,
    /// Available unclaimed sandboxes of the update revision.
    pub updated_available: i32,
    /// Unclaimed sandboxes that will be of the update revision when the rollout is complete.
    pub expected_updated: i32,
    /// Sandboxes that belong to claims.
    pub claimed: i32,
    /// Claimed and unclaimed sandboxes.
    pub total: i32,
    /// Unclaimed sandboxes whose deletion waits for their preDelete hooks; they are not counted elsewhere.
    pub draining: i32,
    /// Claims that wait for a sandbox of this pool.
    pub pending_claims: i32,
    /// Revision that was complete last; equals `updateRevision` when no rollout is under way, and while one back to it is.
    pub current_revision: String,
    /// Revision of the present template.
    pub update_revision: String,
    /// When the rollout made progress last: it began, was resumed, or a sandbox of the new revision became
    /// available. Absent while none is under way, and while it waits for somebody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_progress_time: Option<Time>,
    /// When the template last became another one, by going on to a new revision or back to an old one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_start_time: Option<Time>,
    /// Number of hash collisions met when naming revisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// Label selector of the unclaimed sandboxes, for the scale subresource.
    pub selector: String,
    /// Conditions: Available, Progressing, ReplicaFailure, Exhausted.
    pub conditions: Vec<Condition>,
}

impl PoolStatus {
    /// The update revision, when it is complete, or was before the pool had its fault.
    pub fn completed(&self) -> Option<&str> {
        let said = conditions::find(&self.conditions, conditions::PROGRESSING)?;
        let complete = matches!(
            said.reason.as_str(),
            progressing::COMPLETE
                | progressing::INVALID_SPEC
                | progressing::TEMPLATE_NOT_FOUND
                | progressing::TEMPLATE_INVALID
        );
        let same = self.current_revision == self.update_revision;
        Some(self.update_revision.as_str()).filter(|_| complete && same)
    }
}

fn one() -> i32 {
    1
}

fn ten() -> i32 {
    10
}

fn five_minutes() -> i32 {
    300
}

fn ten_minutes() -> i32 {
    600
}

fn zero() -> IntOrString {
    IntOrString::Int(0)
}

fn quarter() -> IntOrString {
    IntOrString::String("25%".into())
}

fn all() -> IntOrString {
    IntOrString::String("100%".into())
}
