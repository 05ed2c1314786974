//! Which taints of a node a pod tolerates.

use serde::Deserialize;
use smol_str::SmolStr;
use std::sync::Arc;

/// The taint of a node that is cordoned.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// The taint of a node whose kubelet says that it is not ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The taint of a node whose kubelet does not answer.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No such pod is scheduled to the node any more.
    NoSchedule,
    /// Such pods are evicted from the node.
    NoExecute,
    /// The scheduler prefers other nodes.
    PreferNoSchedule,
}

impl Effect {
    /// The effect as the API writes it; `None` for one that this version does not know.
    pub fn read(written: &str) -> Option<Self> {
        match written {
            "NoSchedule" => Some(Self::NoSchedule),
            "NoExecute" => Some(Self::NoExecute),
            "PreferNoSchedule" => Some(Self::PreferNoSchedule),
            _ => None,
        }
    }
}

/// A toleration as the API server stores it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StoredToleration {
    /// Key of the taint; empty for all keys.
    pub key: Option<String>,
    /// `Exists` or `Equal`, which is the default.
    pub operator: Option<String>,
    /// Value of the taint.
    pub value: Option<String>,
    /// Effect of the taint; empty for all effects.
    pub effect: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Toleration {
    key: SmolStr,
    /// `None`: any value.
    value: Option<SmolStr>,
    /// `None`: any effect.
    effect: Option<Effect>,
}

/// The tolerations of a pod. The two that the API server adds to every pod are left out: most pods have no other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tolerations(Option<Arc<[Toleration]>>);

impl Tolerations {
    /// Reads the tolerations of a pod. One with an operator or effect that is not understood tolerates nothing.
    pub fn read(stored: &[StoredToleration]) -> Self {
        let own: Vec<_> = stored.iter().filter_map(Toleration::read).collect();
        Self((!own.is_empty()).then(|| own.into()))
    }

    /// Whether the pod tolerates this taint.
    pub fn tolerate(&self, key: &str, value: &str, effect: Effect) -> bool {
        let all = self.0.as_deref().unwrap_or_default();
        all.iter().any(|toleration| {
            (toleration.key.is_empty() || toleration.key == key)
                && toleration.value.as_ref().is_none_or(|of| of == value)
                && toleration.effect.is_none_or(|of| of == effect)
        })
    }
}

impl Toleration {
    fn read(stored: &StoredToleration) -> Option<Self> {
        let text = |field: &Option<String>| SmolStr::from(field.as_deref().unwrap_or_default());
        let key = text(&stored.key);
        let effect = match text(&stored.effect).as_str() {
            "" => None,
            written => Some(Effect::read(written)?),
        };
        let value = match text(&stored.operator).as_str() {
            "Exists" => None,
            "" | "Equal" => Some(text(&stored.value)),
            _ => return None,
        };
        let is_default =
            [NOT_READY, UNREACHABLE].contains(&key.as_str()) && effect == Some(Effect::NoExecute);
        // Only the operator Exists goes without a key.
        let matches_nothing = key.is_empty() && value.is_some();
        (!is_default && !matches_nothing).then_some(Self { key, value, effect })
    }
}
