//! Lifecycle hooks: labels and finalizers by which somebody else has a say in when a sandbox is available and
//! when it goes.

use crate::api::pool::{Lifecycle, LifecycleHook};
use crate::model::sandbox::Sandbox;
use crate::model::stored;
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeMap;

/// Handlers that a sandbox may carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hook {
    /// Labels with these values.
    pub labels: BTreeMap<String, String>,
    /// Finalizers.
    pub finalizers: Vec<String>,
}

impl Hook {
    /// Every handler is on `sandbox`.
    pub fn all_on(&self, sandbox: &Sandbox) -> bool {
        self.on(sandbox).all(|on| on)
    }

    /// One or more of the handlers are on `sandbox`.
    pub fn any_on(&self, sandbox: &Sandbox) -> bool {
        self.on(sandbox).any(|on| on)
    }

    /// Every handler, in words, and whether it is on `sandbox`.
    pub fn told<'a>(&'a self, sandbox: &'a Sandbox) -> impl Iterator<Item = (String, bool)> + 'a {
        let labels = self
            .labels
            .iter()
            .map(|(key, value)| format!("label {key}={value}"));
        let finalizers = self.finalizers.iter().map(|f| format!("finalizer {f}"));
        labels.chain(finalizers).zip(self.on(sandbox))
    }

    fn on<'a>(&'a self, sandbox: &'a Sandbox) -> impl Iterator<Item = bool> + 'a {
        let labels = self
            .labels
            .iter()
            .map(|(key, value)| sandbox.labels.get(key) == Some(value));
        labels.chain(self.finalizers.iter().map(|f| sandbox.finalizers.contains(f)))
    }
}

impl From<LifecycleHook> for Hook {
    fn from(hook: LifecycleHook) -> Self {
        Self {
            labels: hook.labels_handler,
            finalizers: hook.finalizers_handler,
        }
    }
}

/// What a running sandbox has to have to be available.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AvailabilityRule {
    /// How long it must have been Ready.
    pub min_ready: SignedDuration,
    /// Handlers that must all be there.
    pub pre_normal: Hook,
}

impl AvailabilityRule {
    /// The gate of a spec that does not decode as a whole. It is shut where its own fields are not understood
    /// either, so that nothing counts as available too soon.
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
