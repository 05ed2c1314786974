//! The field `autoscaling` of a pool, and what its status says of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lets the pool choose its size between `replicas` and `maxReplicas`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = kube::core::Rule::new("!has(self.schedules) || self.schedules.all(schedule, schedule.minReplicas <= self.maxReplicas)")
        .message("autoscaling.schedules: minReplicas must not be above autoscaling.maxReplicas")
)]
pub struct Autoscaling {
    /// Maximum number of unclaimed sandboxes to keep warm. `replicas` is the minimum.
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("autoscaling.maxReplicas must be 1 or more"))]
    pub max_replicas: i32,
    /// Share of claims that find a sandbox available, as a percentage above 0 and below 100 such as "99%" or "99.9%".
    #[serde(default = "default_target_hit_rate")]
    #[schemars(length(max = 8))]
    #[x_kube(
        validation = kube::core::Rule::new("self.matches('^[0-9]{1,2}([.][0-9]{1,2})?%$') && self.matches('[1-9]')")
            .message("autoscaling.targetHitRate must be a percentage above 0% and below 100%, like \"99%\" or \"99.9%\"")
    )]
    pub target_hit_rate: String,
    /// Seconds for which a smaller size must have been enough before the pool shrinks.
    #[serde(default = "default_stabilization_window_seconds")]
    #[x_kube(
        validation = kube::core::Rule::new("self >= 0 && self <= 3600")
            .message("autoscaling.stabilizationWindowSeconds must be from 0 to 3600")
    )]
    pub stabilization_window_seconds: i32,
    /// Minimum sizes by time of day, in addition to `replicas`. Of the schedules that are active, the highest counts.
    /// Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub schedules: Vec<Schedule>,
}

/// A minimum size that holds for a time after each moment of a cron schedule.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// Name of the schedule, unique in the pool.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// When the schedule becomes active, in cron syntax: minute, hour, day of month, month, day of week.
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(
        validation = kube::core::Rule::new("self.matches('^ *[^ ,]+(,[^ ,]+)*( +[^ ,]+(,[^ ,]+)*){4} *$')")
            .message("autoscaling.schedules: schedule must have five fields: minute, hour, day of month, month, day of week, like \"0 8 * * 1-5\"")
    )]
    pub schedule: String,
    /// Seconds for which it stays active.
    #[x_kube(
        validation = kube::core::Rule::new("self >= 1 && self <= 31536000")
            .message("autoscaling.schedules: durationSeconds must be from 1 to 31536000")
    )]
    pub duration_seconds: i32,
    /// Time zone of `schedule`, by its name in the IANA database, like Europe/Berlin.
    #[serde(default = "default_time_zone")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
    /// Minimum number of unclaimed sandboxes while it is active.
    #[x_kube(
        validation = kube::core::Rule::new("self >= 0")
            .message("autoscaling.schedules: minReplicas must be 0 or more")
    )]
    pub min_replicas: i32,
}

fn default_target_hit_rate() -> String {
    "99%".into()
}

/// As of a HorizontalPodAutoscaler.
fn default_stabilization_window_seconds() -> i32 {
    300
}

fn default_time_zone() -> String {
    "UTC".into()
}

/// What the pool has learned of its claims, and why it has its size. Written when the size or another part of the
/// status changes. A restarted operator continues from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoscalingStatus {
    /// Why the pool has its size.
    pub message: String,
    /// Time of the last change of the size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_scale_time: Option<Time>,
    /// Sandboxes per hour that claims requested recently.
    pub arrivals_per_hour: i64,
    /// Milliseconds from a claim until the sandbox that replaces the claimed one is available: that of 9 of 10 recent
    /// sandboxes, or a default until enough of them were seen.
    pub warm_up_milliseconds: i64,
    /// Share of recent claims that found a sandbox available. Absent before the first claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<String>,
    /// Number of claims that `sizes` is based on. Older claims count less.
    pub claims: i64,
    /// The size that recent claims needed for each hit rate.
    pub sizes: Vec<SizeForHitRate>,
}

/// The size with which a share of the claims finds a sandbox available.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SizeForHitRate {
    /// The share, as a percentage.
    pub hit_rate: String,
    /// Unclaimed sandboxes.
    pub replicas: i32,
}
