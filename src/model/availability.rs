//! When a sandbox is available: Running, Ready for long enough, with every preNormal handler.

use crate::api::labels;
use crate::api::pool::Lifecycle;
use crate::model::lifecycle_hook::Hook;
use crate::model::sandbox::{PodPhase, Sandbox};
use crate::model::stored;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// What a running sandbox needs to be available.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AvailabilityRule {
    /// How long it must have been Ready.
    pub min_ready: SignedDuration,
    /// Handlers that must all be present.
    pub pre_normal: Hook,
}

impl AvailabilityRule {
    /// The rule of a spec that does not decode as a whole. Where the rule's own fields do not decode either, nothing
    /// counts as available.
    pub fn salvage(spec: &Value) -> Self {
        let min_ready = match spec.get("minReadySeconds") {
            None => Some(SignedDuration::ZERO),
            Some(value) => value.as_i64().filter(|s| *s >= 0).map(SignedDuration::from_secs),
        };
        let lifecycle: Result<Option<Lifecycle>, String> =
            stored::decode("spec.lifecycle", spec.get("lifecycle").unwrap_or(&Value::Null));
        match (min_ready, lifecycle) {
            (Some(min_ready), Ok(lifecycle)) => Self {
                min_ready,
                pre_normal: lifecycle.and_then(|l| l.pre_normal).unwrap_or_default().into(),
            },
            _ => Self {
                min_ready: SignedDuration::MAX,
                ..Self::default()
            },
        }
    }
}

impl Sandbox {
    /// A claim could take the sandbox at `now`. Without minReadySeconds a Ready sandbox is available at once, whatever
    /// the clock of its node says.
    pub fn is_available(&self, availability_rule: &AvailabilityRule, now: Timestamp) -> bool {
        self.available_at(availability_rule)
            .is_some_and(|at| at <= now || availability_rule.min_ready.is_zero())
    }

    /// When the sandbox is available if nothing about it changes; `None`: never.
    pub fn available_at(&self, availability_rule: &AvailabilityRule) -> Option<Timestamp> {
        self.up_at(availability_rule)
            .filter(|_| self.state == labels::WARM)
    }

    /// [`available_at`](Self::available_at) whatever the state label says: Running, Ready for long enough, and with
    /// every preNormal handler.
    pub fn up_at(&self, availability_rule: &AvailabilityRule) -> Option<Timestamp> {
        let runs = !self.terminating && self.phase == PodPhase::Running;
        let since = self
            .ready_since
            .filter(|_| runs && availability_rule.pre_normal.all_on(self))?;
        Some(
            since
                .checked_add(availability_rule.min_ready)
                .unwrap_or(Timestamp::MAX),
        )
    }
}
