//! The kind `Pool`: its spec, status and validation rules.

use crate::api::ClaimDefaults;
use crate::api::autoscaling::{Autoscaling, AutoscalingStatus};
use crate::api::conditions::{self, progressing};
use crate::api::disruption::Disruption;
use crate::api::pool_defaults;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    printcolumn(name = "Desired", type_ = "integer", json_path = ".status.desiredReplicas"),
    printcolumn(name = "Total", type_ = "integer", json_path = ".status.total"),
    printcolumn(name = "Claimed", type_ = "integer", json_path = ".status.claimed"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.available"),
    printcolumn(name = "Updated", type_ = "integer", json_path = ".status.updated"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.ready", priority = 1),
    printcolumn(name = "Pending", type_ = "integer", json_path = ".status.pendingClaims", priority = 1),
    printcolumn(name = "Revision", type_ = "string", json_path = ".status.updateRevision", priority = 1),
    printcolumn(name = "Strategy", type_ = "string", json_path = ".spec.updateStrategy.type", priority = 1),
    printcolumn(name = "Paused", type_ = "boolean", json_path = ".spec.updateStrategy.paused", priority = 1),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Progressing\")].reason", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = kube::core::Rule::new("self.metadata.name.size() <= 63")
        .message("metadata.name must be at most 63 characters, because it becomes the value of a pod label")
        .field_path(".metadata.name"),
    validation = kube::core::Rule::new("!has(self.spec.capacity) || !has(self.spec.capacity.maxWarm) || self.spec.capacity.maxWarm >= self.spec.replicas")
        .message("spec.capacity.maxWarm must not be below spec.replicas")
        .field_path(".spec.capacity.maxWarm"),
    validation = kube::core::Rule::new("!has(self.spec.autoscaling) || self.spec.autoscaling.maxReplicas >= self.spec.replicas")
        .message("spec.autoscaling.maxReplicas must not be below spec.replicas")
        .field_path(".spec.autoscaling.maxReplicas"),
    validation = kube::core::Rule::new("self.spec.progressDeadlineSeconds > self.spec.minReadySeconds")
        .message("spec.progressDeadlineSeconds must be greater than spec.minReadySeconds")
        .field_path(".spec.progressDeadlineSeconds"),
    validation = kube::core::Rule::new("self.spec.warmUpDeadlineSeconds > self.spec.minReadySeconds")
        .message("spec.warmUpDeadlineSeconds must be greater than spec.minReadySeconds")
        .field_path(".spec.warmUpDeadlineSeconds")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = kube::core::Rule::new("has(self.template) || has(self.templateRef)")
        .message("a pool needs a template: write spec.template, or name a PodTemplate in spec.templateRef"),
    validation = kube::core::Rule::new("!has(self.template) || !has(self.templateRef)")
        .message("spec.template and spec.templateRef exclude each other; keep one of them")
)]
pub struct PoolSpec {
    /// Number of unclaimed sandboxes to keep warm. Claimed sandboxes are not counted. `kubectl scale`, a
    /// HorizontalPodAutoscaler and KEDA can change it.
    #[serde(default = "pool_defaults::replicas")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("replicas must be 0 or more"))]
    pub replicas: i32,

    /// Lets the pool choose its size from the claims that arrive. `replicas` is then the minimum, and every percentage
    /// of `replicas` is one of the chosen size. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,

    /// Limits on the number of sandboxes, in addition to `replicas`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,

    /// The pod to warm: labels, annotations and a PodSpec, as in a Deployment. A change is rolled out to the
    /// unclaimed sandboxes as `updateStrategy` says, and never affects claimed sandboxes. Set exactly one of
    /// `template` and `templateRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<PodTemplate>,

    /// A PodTemplate (core/v1) in the namespace of the pool, used in place of `template`. Several pools can use the
    /// same PodTemplate; a change of it is rolled out in each of them like a change of `template`. While it is
    /// missing or invalid, the pool keeps its sandboxes, serves claims with them, and says why in its condition
    /// Progressing. The API server writes defaults into a PodTemplate, so moving `template` to a PodTemplate usually
    /// makes a new revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateRef>,

    /// How a changed template replaces the unclaimed sandboxes.
    #[serde(default)]
    pub update_strategy: UpdateStrategy,

    /// How fast sandboxes are created.
    #[serde(default)]
    pub scale_strategy: ScaleStrategy,

    /// Seconds that a sandbox must be Ready before it counts as available and can be claimed.
    #[serde(default)]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("minReadySeconds must be 0 or more"))]
    pub min_ready_seconds: i32,

    /// Defaults for claims on this pool that omit a field. Default: those of the claim's fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_defaults: Option<ClaimDefaults>,

    /// Hooks with which other controllers delay when an unclaimed sandbox is available and when it is deleted. Default:
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,

    /// What happens to the unclaimed sandboxes of a node that is drained, cordoned, tainted or about to be deleted.
    #[serde(default)]
    pub disruption: Disruption,

    /// Seconds that a rollout can take until the next sandbox of the new revision becomes available. After that, the
    /// condition Progressing becomes False with reason ProgressDeadlineExceeded. The rollout continues.
    #[serde(default = "pool_defaults::progress_deadline_seconds")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("progressDeadlineSeconds must be 1 or more"))]
    pub progress_deadline_seconds: i32,

    /// Seconds that an unclaimed sandbox can take to become available before it is replaced. While replacements fail,
    /// too, the delay between them doubles from 1 s to 5 min, and at most `maxUnavailable` and `maxSurge` together
    /// warm up at once.
    #[serde(default = "pool_defaults::warm_up_deadline_seconds")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("warmUpDeadlineSeconds must be 1 or more"))]
    pub warm_up_deadline_seconds: i32,

    /// Number of old revisions (ControllerRevision objects) to keep. Revisions that sandboxes still run are kept in
    /// addition.
    #[serde(default = "pool_defaults::revision_history_limit")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("revisionHistoryLimit must be 0 or more"))]
    pub revision_history_limit: i32,
}

/// Limits on the number of sandboxes.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = kube::core::Rule::new("!has(self.minTotal) || !has(self.maxTotal) || self.minTotal <= self.maxTotal")
        .message("capacity.minTotal must not be above capacity.maxTotal")
)]
pub struct Capacity {
    /// Unclaimed sandboxes are deleted only above this number. Default: `replicas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("capacity.maxWarm must be 0 or more"))]
    pub max_warm: Option<i32>,
    /// Minimum number of claimed and unclaimed sandboxes together. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("capacity.minTotal must be 0 or more"))]
    pub min_total: Option<i32>,
    /// Claimed, unclaimed and terminating sandboxes together never exceed this number. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("capacity.maxTotal must be 0 or more"))]
    pub max_total: Option<i32>,
}

/// How a changed template replaces the unclaimed sandboxes. Every field can be changed during a rollout.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// RollingUpdate replaces unclaimed sandboxes of old revisions within `maxUnavailable` and `maxSurge`. Recreate
    /// deletes all of them at once. OnReplenish replaces them only when they are claimed or fail.
    #[serde(default, rename = "type")]
    pub type_: UpdateStrategyType,
    /// How many of `replicas` can be unavailable during a rollout: a number, or a percentage of `replicas` rounded
    /// down, as in a Deployment. If this and `maxSurge` both result in 0, sandboxes are replaced with a surge of 1;
    /// where `capacity.maxTotal` forbids the extra sandbox, this counts as 1.
    #[serde(default = "pool_defaults::max_unavailable")]
    #[x_kube(
        validation = kube::core::Rule::new("type(self) == string ? self.matches('^(100|[0-9]{1,2})%$') : self >= 0")
            .message("maxUnavailable must be a number of 0 or more, or a percentage from \"0%\" to \"100%\""),
        validation = kube::core::Rule::new("type(self) == string || self <= 2147483647")
            .message("maxUnavailable must not be above 2147483647")
    )]
    pub max_unavailable: IntOrString,
    /// How many sandboxes above `replicas` a rollout can create: a number, or a percentage of `replicas` rounded up.
    /// With maxUnavailable 0, no available sandbox is deleted before its replacement is available. If this and
    /// `maxUnavailable` both result in 0, this counts as 1.
    #[serde(default = "pool_defaults::max_surge")]
    #[x_kube(
        validation = kube::core::Rule::new("type(self) == string ? self.matches('^[0-9]{1,4}%$') : self >= 0")
            .message("maxSurge must be a number of 0 or more, or a percentage like \"25%\""),
        validation = kube::core::Rule::new("type(self) == string || self <= 2147483647")
            .message("maxSurge must not be above 2147483647")
    )]
    pub max_surge: IntOrString,
    /// How many unclaimed sandboxes stay on the old revision, for a canary: a number, or a percentage of `replicas`
    /// rounded up. A percentage below "100%" updates at least one sandbox.
    #[serde(default = "pool_defaults::partition")]
    #[x_kube(
        validation = kube::core::Rule::new("type(self) == string ? self.matches('^(100|[0-9]{1,2})%$') : self >= 0")
            .message("partition must be a number of 0 or more, or a percentage from \"0%\" to \"100%\""),
        validation = kube::core::Rule::new("type(self) == string || self <= 2147483647")
            .message("partition must not be above 2147483647")
    )]
    pub partition: IntOrString,
    /// Pauses the rollout only. The pool still serves claims, and replaces what they take with sandboxes of the
    /// revision that they took.
    #[serde(default)]
    pub paused: bool,
}

impl Default for UpdateStrategy {
    fn default() -> Self {
        Self {
            type_: UpdateStrategyType::default(),
            max_unavailable: pool_defaults::max_unavailable(),
            max_surge: pool_defaults::max_surge(),
            partition: pool_defaults::partition(),
            paused: false,
        }
    }
}

/// Type of the update strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategyType {
    /// Replace unclaimed sandboxes of old revisions within `maxUnavailable` and `maxSurge`.
    #[default]
    RollingUpdate,
    /// Delete all unclaimed sandboxes of old revisions at once.
    Recreate,
    /// Replace unclaimed sandboxes of old revisions only when they are claimed or fail. Claims without a
    /// `revisionPolicy` take them first.
    OnReplenish,
}

/// How fast sandboxes are created.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleStrategy {
    /// Maximum number of sandboxes that warm up (created, not yet available) at once: a number, or a percentage of
    /// `replicas` and a surge under way, rounded up. At least 1. In a pool with 0 replicas, the percentage is of the
    /// sandboxes that claims want.
    #[serde(default = "pool_defaults::max_warming")]
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
            max_unavailable: pool_defaults::max_warming(),
        }
    }
}

/// Hooks with which other controllers delay the availability and the deletion of an unclaimed sandbox.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// A sandbox is available, and can be claimed, only when it has ALL of these labels and finalizers. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_normal: Option<LifecycleHook>,
    /// While an unclaimed sandbox has ANY of these labels and finalizers, the operator does not delete it: it sets
    /// the label `warmpool.dev/state` to `draining` and waits until they are removed. A draining sandbox is not
    /// counted. It becomes warm again if the pool needs it before any of them is removed. When the pool is deleted,
    /// the garbage collector waits for finalizers only. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_delete: Option<LifecycleHook>,
}

/// Labels and finalizers that other controllers set on a sandbox and remove.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleHook {
    /// Labels with their values. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16, "additionalProperties" = {"type": "string", "maxLength": 63}))]
    #[x_kube(
        validation = kube::core::Rule::new("self.all(key, !key.startsWith('warmpool.dev/'))")
            .message("labelsHandler must not hold keys under warmpool.dev/, they belong to the operator"),
        validation = kube::core::Rule::new("self.all(key, key.size() <= 317 && key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))")
            .message("labelsHandler must have keys like \"checked\" or \"example.com/checked\"")
    )]
    pub labels_handler: BTreeMap<String, String>,
    /// Finalizers, such as `example.com/registered`. Default: none.
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
    /// Name of the PodTemplate. Only the labels, annotations and spec of its template are used. Labels and
    /// annotations must not have keys under `warmpool.dev/`.
    #[schemars(length(max = 253))]
    #[x_kube(validation = kube::core::Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')")
        .message("templateRef.name must be the name of a PodTemplate like \"python-3.13\": lower-case letters, digits, '-' and '.', with a letter or digit at both ends"))]
    pub name: String,
}

/// A pod template exactly as the API server stores it. An inline template has the fields of Kubernetes 1.33, because
/// the API server drops fields that the schema of this CRD does not have; a PodTemplate has all fields that the API
/// server knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
// JSON instead of a typed struct: no field is lost, and no library upgrade can change the revision hash.
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

/// Observed state of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolStatus {
    /// The `metadata.generation` that this status describes.
    pub observed_generation: i64,
    /// Number of unclaimed sandboxes that the pool keeps warm: `spec.replicas`, or the size that `spec.autoscaling`
    /// chose.
    pub desired_replicas: i32,
    /// Number of unclaimed sandboxes.
    pub replicas: i32,
    /// Number of unclaimed sandboxes whose condition Ready is True.
    pub ready: i32,
    /// Number of unclaimed sandboxes that can be claimed now.
    pub available: i32,
    /// Number of unclaimed sandboxes of the update revision.
    pub updated: i32,
    /// Number of available unclaimed sandboxes of the update revision.
    pub updated_available: i32,
    /// Number of unclaimed sandboxes of the update revision when the rollout is complete; while the rollout is paused,
    /// the number that the pool keeps until the rollout resumes.
    pub expected_updated: i32,
    /// Number of claimed sandboxes.
    pub claimed: i32,
    /// Number of claimed and unclaimed sandboxes, those with a state label that the operator does not understand
    /// included.
    pub total: i32,
    /// Number of unclaimed sandboxes whose deletion waits for `preDelete` hooks. No other field counts them.
    pub draining: i32,
    /// Number of claims that wait for sandboxes of this pool.
    pub pending_claims: i32,
    /// Revision of the last complete rollout. Equals `updateRevision` when no rollout is in progress, and during a
    /// rollback to it.
    pub current_revision: String,
    /// Revision of the current template.
    pub update_revision: String,
    /// Time of the last progress of the rollout: its start, its resumption, or when a sandbox of the new revision
    /// became available. Absent while no rollout is in progress, and while the rollout waits for a user or another
    /// controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_progress_time: Option<Time>,
    /// Time of the last change of the template, to a new revision or back to an old revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_start_time: Option<Time>,
    /// Number of hash collisions found while naming revisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// What `spec.autoscaling` has learned and decided. Absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Arc<AutoscalingStatus>>,
    /// Label selector of the unclaimed sandboxes, for the scale subresource.
    pub selector: String,
    /// Conditions: Available, Progressing, ReplicaFailure, Exhausted, ScalingLimited.
    pub conditions: Vec<Arc<Condition>>,
}

impl PoolStatus {
    /// The update revision if its rollout is complete, or was complete before the pool got its error.
    pub fn completed(&self) -> Option<&str> {
        let progress = conditions::find(&self.conditions, conditions::PROGRESSING)?;
        let was_complete = matches!(
            progress.reason.as_str(),
            progressing::COMPLETE
                | progressing::INVALID_SPEC
                | progressing::TEMPLATE_NOT_FOUND
                | progressing::TEMPLATE_INVALID
        );
        let same = self.current_revision == self.update_revision;
        Some(self.update_revision.as_str()).filter(|_| was_complete && same)
    }
}
