//! What a pool's spec comes to in whole sandboxes: percentages resolved, numbers checked.

use crate::api::disruption::DrainPolicy;
use crate::api::pool::{PoolSpec, UpdateStrategyType};
use crate::model::autoscaling::ResolvedAutoscaling;
use crate::model::availability::AvailabilityRule;
use crate::model::int_or_percent::{IntOrPercent, Rounding};
use crate::model::lifecycle_hook::Hook;
use jiff::SignedDuration;

/// A pool's spec in whole sandboxes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedPoolSpec {
    /// Unclaimed sandboxes to keep warm: `spec.replicas`, or in a snapshot the size that `autoscaling` chose.
    pub replicas: usize,
    /// How the pool chooses its size, or a sentence on the field that is invalid; `None`: it keeps `spec.replicas`.
    pub autoscaling: Option<Result<ResolvedAutoscaling, String>>,
    /// What depends on `replicas`, as written.
    pub as_written: AsWritten,
    /// Unclaimed sandboxes are trimmed only above this; never below `replicas`.
    pub max_warm: usize,
    /// Claimed and unclaimed together are never planned below this.
    pub min_total: usize,
    /// Claimed, unclaimed and terminating together never exceed this.
    pub max_total: Option<usize>,
    /// What happens to sandboxes of old revisions.
    pub strategy: UpdateStrategyType,
    /// Sandboxes of `replicas` that may be unavailable in a rollout, as written.
    pub max_unavailable: usize,
    /// Sandboxes above `replicas` that a rollout or an eviction may create, as written; see
    /// [`rollout_budget`](Self::rollout_budget).
    pub max_surge: usize,
    /// Unclaimed sandboxes that stay on the old revision; at most `replicas`.
    pub partition: usize,
    /// The rollout stands still.
    pub paused: bool,
    /// How many sandboxes may be warming at once; see [`warming_ceiling`](Self::warming_ceiling).
    pub warming: IntOrPercent,
    /// What a running sandbox has to have to be available.
    pub availability_rule: AvailabilityRule,
    /// A PodDisruptionBudget is kept over the unclaimed sandboxes.
    pub pod_disruption_budget: bool,
    /// Handlers whose presence puts off the deletion of an unclaimed sandbox.
    pub pre_delete: Hook,
    /// How long an unclaimed sandbox may take to become available.
    pub warm_up: SignedDuration,
    /// How long a rollout may go without progress.
    pub progress: SignedDuration,
    /// Old revisions kept beside the live ones.
    pub history_limit: usize,
    /// Whether an available sandbox on a leaving node waits for its replacement.
    pub drain_policy: DrainPolicy,
    /// How long it waits.
    pub drain_deadline: SignedDuration,
}

/// Numbers that depend on the number of sandboxes to keep warm, as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsWritten {
    max_warm: Option<usize>,
    max_unavailable: IntOrPercent,
    max_surge: IntOrPercent,
    partition: IntOrPercent,
}

impl ResolvedPoolSpec {
    /// Resolves percentages and checks every number.
    ///
    /// # Errors
    /// A sentence that names the field and says what to write instead. The schema rejects such values, but an object
    /// stored under a looser schema may hold them. An invalid value must never widen a budget.
    pub fn resolve(spec: &PoolSpec) -> Result<Self, String> {
        let capacity = spec.capacity.clone().unwrap_or_default();
        let lifecycle = spec.lifecycle.clone().unwrap_or_default();
        let replicas = count("spec.replicas", spec.replicas)?;
        let optional = |field: &str, value: Option<i32>| value.map(|v| count(field, v)).transpose();
        let max_warm = optional("spec.capacity.maxWarm", capacity.max_warm)?;
        let min_total = optional("spec.capacity.minTotal", capacity.min_total)?.unwrap_or(0);
        let max_total = optional("spec.capacity.maxTotal", capacity.max_total)?;
        if max_total.is_some_and(|max| min_total > max) {
            return Err("spec.capacity.minTotal: must not be above spec.capacity.maxTotal".into());
        }
        let field = "spec.updateStrategy.maxUnavailable";
        let written = IntOrPercent::parse(field, &spec.update_strategy.max_unavailable)?;
        if written.above_all() {
            return Err(format!(
                "{field}: {written} is more than 100%; write at most \"100%\""
            ));
        }
        let surge = IntOrPercent::parse("spec.updateStrategy.maxSurge", &spec.update_strategy.max_surge)?;
        let field = "spec.updateStrategy.partition";
        let partition = IntOrPercent::parse(field, &spec.update_strategy.partition)?;
        if partition.above_all() {
            return Err(format!(
                "{field}: {partition} is more than 100%; write at most \"100%\""
            ));
        }
        let field = "spec.scaleStrategy.maxUnavailable";
        let ceiling = IntOrPercent::parse(field, &spec.scale_strategy.max_unavailable)?;
        let as_written = AsWritten {
            max_warm,
            max_unavailable: written,
            max_surge: surge,
            partition,
        };
        let spec = Self {
            as_written,
            autoscaling: spec
                .autoscaling
                .as_ref()
                .map(|written| ResolvedAutoscaling::resolve(written, replicas)),
            min_total,
            max_total,
            strategy: spec.update_strategy.type_,
            paused: spec.update_strategy.paused,
            warming: ceiling,
            availability_rule: AvailabilityRule {
                min_ready: seconds("spec.minReadySeconds", spec.min_ready_seconds, 0)?,
                pre_normal: lifecycle.pre_normal.unwrap_or_default().into(),
            },
            pod_disruption_budget: spec.disruption.pod_disruption_budget,
            pre_delete: lifecycle.pre_delete.unwrap_or_default().into(),
            warm_up: seconds("spec.warmUpDeadlineSeconds", spec.warm_up_deadline_seconds, 1)?,
            progress: seconds("spec.progressDeadlineSeconds", spec.progress_deadline_seconds, 1)?,
            history_limit: count("spec.revisionHistoryLimit", spec.revision_history_limit)?,
            drain_policy: spec.disruption.drain_policy,
            drain_deadline: seconds(
                "spec.disruption.drainDeadlineSeconds",
                spec.disruption.drain_deadline_seconds,
                1,
            )?,
            ..Self::default()
        };
        Ok(spec.at_size(replicas))
    }

    /// The spec of the pool when it keeps `replicas` unclaimed sandboxes warm.
    #[must_use]
    pub fn at_size(self, replicas: usize) -> Self {
        let written = self.as_written;
        Self {
            replicas,
            max_warm: written.max_warm.unwrap_or(replicas).max(replicas),
            max_unavailable: written.max_unavailable.of(replicas, Rounding::MAX_UNAVAILABLE),
            max_surge: written.max_surge.of(replicas, Rounding::MAX_SURGE),
            partition: written.partition.kept_of(replicas),
            ..self
        }
    }

    /// The most unclaimed sandboxes that are ever made where no claim asks for more. Up to `max_warm` only stay.
    pub fn most_warm(&self) -> usize {
        let autoscaling = self
            .autoscaling
            .as_ref()
            .and_then(|resolved| resolved.as_ref().ok());
        let chosen = autoscaling.map_or(0, |autoscaling| autoscaling.max_replicas);
        self.replicas.max(self.min_total).max(chosen)
    }

    /// Sandboxes that may be warming at once when `desired` are wanted, and `surge` above them; at least 1. A
    /// percentage is of `replicas` and the surge, or else sandboxes that never become available would keep a rollout
    /// from its surge. In a pool that keeps none it is of what is wanted, since it would serve its claims one by one
    /// otherwise.
    pub fn warming_ceiling(&self, desired: usize, surge: usize) -> usize {
        let base = if self.replicas == 0 {
            desired
        } else {
            self.replicas + surge
        };
        self.warming.of(base, Rounding::WARMING).max(1)
    }

    /// Unclaimed sandboxes that `maxTotal` allows beside `claimed` ones; `usize::MAX` without a bound.
    pub fn total_capacity_left(&self, claimed: usize) -> usize {
        self.max_total
            .map_or(usize::MAX, |max| max.saturating_sub(claimed))
    }
}

fn count(field: &str, value: i32) -> Result<usize, String> {
    usize::try_from(value).map_err(|_| format!("{field}: {value} is negative; write 0 or more"))
}

fn seconds(field: &str, value: i32, least: i32) -> Result<SignedDuration, String> {
    if value < least {
        return Err(format!("{field}: {value} is too small; write {least} or more"));
    }
    Ok(SignedDuration::from_secs(value.into()))
}
