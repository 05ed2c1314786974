//! Lifecycle hooks: labels and finalizers by which other controllers delay availability or deletion.

use crate::api::pool::LifecycleHook;
use crate::model::sandbox::Sandbox;
use std::collections::BTreeMap;

/// The handlers of one hook.
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

    /// Every handler as text, and whether it is on `sandbox`.
    pub fn describe<'a>(&'a self, sandbox: &'a Sandbox) -> impl Iterator<Item = (String, bool)> + 'a {
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
