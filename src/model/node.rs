//! A node, reduced to whether sandboxes can stay on it.

use crate::model::leaving_reason::{Leaving, LeavingReason};
use crate::model::node_taints::{Taint, is_hint, is_repeated};
use crate::model::stored::StoredNode;
use crate::model::toleration::{Effect, NOT_READY, Tolerations, UNSCHEDULABLE};
use jiff::Timestamp;
use smol_str::SmolStr;

/// Label: the zone of a node.
const ZONE: &str = "topology.kubernetes.io/zone";
/// A node as decisions need it. Two versions that differ in nothing else, as after a heartbeat, are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: SmolStr,
    /// Zone; empty without one.
    pub zone: SmolStr,
    /// Since when it is cordoned, if it is.
    cordoned: Option<Timestamp>,
    /// Since when it is not ready, if it is not.
    not_ready: Option<Timestamp>,
    taints: Box<[Taint]>,
    /// A taint says that the node may go soon.
    hinted: bool,
}

impl Node {
    /// Decodes a stored node at `now`; `known` is its previous state. If the API server does not say when a cordon or
    /// taint began, it counts from when this process first saw it.
    pub fn read(stored: &StoredNode, known: Option<&Self>, now: Timestamp) -> Self {
        let metadata = &stored.metadata;
        let zone = metadata.labels.as_ref().and_then(|labels| labels.get(ZONE));
        let stored_taints = stored.spec.taints.as_deref().unwrap_or_default();
        let added = |key: &str| {
            let taint = stored_taints.iter().find(|taint| taint.key == key);
            taint
                .and_then(|taint| taint.time_added.as_ref())
                .map(|time| time.0)
        };
        let known_taint = |key: &str| {
            let taints = known.map(|known| &known.taints);
            let taint = taints.and_then(|taints| taints.iter().find(|taint| taint.key == key));
            taint.map(|taint| taint.since)
        };
        let conditions = stored.status.conditions.as_deref().unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        let not_ready = ready.filter(|condition| condition.status != "True");
        let taints = stored_taints.iter().filter_map(|taint| {
            let key = taint.key.as_str();
            let effect = Effect::read(&taint.effect).filter(|effect| *effect != Effect::PreferNoSchedule)?;
            (!is_hint(key) && !is_repeated(key)).then(|| Taint {
                key: key.into(),
                value: taint.value.as_deref().unwrap_or_default().into(),
                effect,
                since: added(key).or_else(|| known_taint(key)).unwrap_or(now),
            })
        });
        Self {
            name: metadata.name.as_deref().unwrap_or_default().into(),
            zone: zone.map(String::as_str).unwrap_or_default().into(),
            cordoned: (stored.spec.unschedulable == Some(true)).then(|| {
                let known = || known.and_then(|known| known.cordoned);
                added(UNSCHEDULABLE).or_else(known).unwrap_or(now)
            }),
            not_ready: not_ready.map(|condition| {
                let changed = condition.last_transition_time.as_ref().map(|time| time.0);
                let known = || known.and_then(|known| known.not_ready);
                changed.or_else(known).unwrap_or(now)
            }),
            taints: taints.collect(),
            hinted: stored_taints.iter().any(|taint| is_hint(&taint.key)),
        }
    }

    /// Whether and why a pod with these tolerations cannot stay on the node. A pod that tolerates a cordon, or the
    /// taint of a node that is not ready, might be scheduled to the same node again, so it stays.
    pub fn leaving(&self, tolerations: &Tolerations) -> Option<Leaving> {
        let tolerates = |key: &str| tolerations.tolerate(key, "", Effect::NoSchedule);
        let not_ready = self.not_ready.filter(|_| !tolerates(NOT_READY));
        let cordoned = self.cordoned.filter(|_| !tolerates(UNSCHEDULABLE));
        let tainted = self.taints.iter().filter_map(|taint| {
            if taint.announces_deletion() {
                Some((LeavingReason::NodeDeletionAnnounced, taint.since))
            } else {
                let tolerated = tolerations.tolerate(&taint.key, &taint.value, taint.effect);
                (!tolerated).then_some((LeavingReason::NodeTainted, taint.since))
            }
        });
        let all = [
            not_ready.map(|since| (LeavingReason::NodeNotReady, since)),
            cordoned.map(|since| (LeavingReason::NodeCordoned, since)),
        ];
        let (reasons, since): (Vec<_>, Vec<_>) = all.into_iter().flatten().chain(tainted).unzip();
        Some(Leaving {
            reason: reasons.into_iter().min()?,
            since: since.into_iter().min()?,
        })
    }

    /// The node may go soon: sandboxes stay, but others are better.
    pub fn is_hinted(&self) -> bool {
        self.hinted
    }

    /// The node is not ready, so a pod that is being deleted there may stay for long.
    pub fn is_not_ready(&self) -> bool {
        self.not_ready.is_some()
    }
}
