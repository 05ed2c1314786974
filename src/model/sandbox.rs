//! A sandbox: a pod of a pool or claim, reduced to what decisions need.

use crate::api::{API_VERSION, labels};
use crate::model::disruption_mark::DisruptionMark;
use crate::model::scheduling::Scheduling;
use crate::model::stored::{self, StoredPod, StoredPodCondition};
use crate::model::toleration::Tolerations;
use crate::model::{Key, not_running_reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// The controller owner reference of a pod. Labels alone never give a pod to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Unclaimed: the Pool with this UID.
    Pool {
        /// UID of the Pool.
        uid: SmolStr,
    },
    /// Claimed: the SandboxClaim with this name and UID.
    Claim {
        /// Name of the SandboxClaim.
        name: SmolStr,
        /// UID of the SandboxClaim.
        uid: SmolStr,
    },
    /// Another controller, or none.
    Other,
}

/// Pod phase, in the order of removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPhase {
    /// Accepted, containers not all started.
    Pending,
    /// The node does not answer, or a phase this version does not know.
    Unknown,
    /// Running.
    Running,
    /// Ended with success.
    Succeeded,
    /// Ended with an error, or evicted by the kubelet.
    Failed,
}

/// A pod of a pool or claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: SmolStr,
    /// Resource version of the decoded state.
    pub resource_version: SmolStr,
    /// Name of the pool, from the label.
    pub pool: SmolStr,
    /// Template revision, from the label.
    pub revision: SmolStr,
    /// Value of the state label.
    pub state: SmolStr,
    /// Controller owner.
    pub owner: Owner,
    /// Index of the controller among the owner references; the binding patch tests and replaces it.
    pub owner_index: usize,
    /// Creation time.
    pub created: Timestamp,
    /// Has a deletion timestamp.
    pub terminating: bool,
    /// A user requested a replacement with label `warmpool.dev/evict`.
    pub evict: bool,
    /// The claim lets the sandbox be evicted, as label `warmpool.dev/disruption` says.
    pub allows_disruption: bool,
    /// When the grace of its tenant ends, as annotation `warmpool.dev/disruption-deadline` says.
    pub disruption_deadline: Option<Timestamp>,
    /// On which version of its claim it was chosen as a replacement, as annotation `warmpool.dev/chosen-on` says; empty
    /// unless it was.
    pub chosen_on: SmolStr,
    /// Pod phase.
    pub phase: PodPhase,
    /// Node, once scheduled.
    pub node: Option<SmolStr>,
    /// Whether it has a node, and why not.
    pub scheduling: Scheduling,
    /// Taints that it tolerates.
    pub tolerations: Tolerations,
    /// Since when condition `DisruptionTarget` is True, if it is: somebody is about to terminate the pod.
    pub disruption_target: Option<Timestamp>,
    /// Pod IP, once known.
    pub ip: SmolStr,
    /// Index of the Ready condition in the status; the binding patch tests it.
    pub ready_index: Option<usize>,
    /// Since when Ready is True, if it is.
    pub ready_since: Option<Timestamp>,
    /// When condition Ready changed last; `None` without the condition.
    pub ready_changed: Option<Timestamp>,
    /// Pod deletion cost (KEP-2255); lower goes first.
    pub deletion_cost: i32,
    /// Restarts of all containers.
    pub restarts: i32,
    /// Why the pod does not run, as [`not_running_reason::of`] says.
    pub not_running_reason: Option<String>,
    /// More about that reason, shortened; empty without any.
    pub not_running_detail: Box<str>,
    /// Labels that the operator does not own.
    pub labels: BTreeMap<String, String>,
    /// Finalizers, in stored order.
    pub finalizers: Vec<String>,
    /// The pod has annotations. A JSON Patch can add to a map only where the map exists.
    pub annotated: bool,
}

impl Sandbox {
    /// Decodes a stored pod; `None` without the pool label.
    pub fn read(pod: &StoredPod) -> Option<Self> {
        let metadata = &pod.metadata;
        let label = |name: &str| metadata.labels.as_ref()?.get(name).map(SmolStr::from);
        let conditions = pod.status.conditions.as_deref().unwrap_or_default();
        let ready = conditions.iter().enumerate().find(|(_, c)| c.type_ == "Ready");
        let changed = |(_, condition): (usize, &StoredPodCondition)| {
            let at = condition.last_transition_time.as_ref();
            at.map_or_else(|| stored::created(metadata), |t| t.0)
        };
        let targets = |c: &&StoredPodCondition| c.type_ == "DisruptionTarget" && c.status == "True";
        let target = conditions.iter().find(targets);
        let annotations = metadata.annotations.as_ref();
        let (owner_index, owner) = owner(&pod.metadata);
        let not_running = not_running_reason::of(pod);
        let detail = not_running.as_ref().map(|why| why.detail.as_str());
        Some(Self {
            key: stored::key(metadata),
            uid: stored::uid(metadata),
            resource_version: stored::resource_version(metadata),
            pool: label(labels::POOL)?,
            revision: label(labels::REVISION).unwrap_or_default(),
            state: label(labels::STATE).unwrap_or_default(),
            owner,
            owner_index,
            created: stored::created(metadata),
            terminating: metadata.deletion_timestamp.is_some(),
            evict: label(labels::EVICT).as_deref() == Some("true"),
            disruption_deadline: DisruptionMark::deadline_of(metadata),
            allows_disruption: label(labels::DISRUPTION).as_deref() == Some(labels::ALLOW),
            chosen_on: stored::annotation(metadata, labels::CHOSEN_ON)
                .map(SmolStr::from)
                .unwrap_or_default(),
            phase: match pod.status.phase.as_deref() {
                None | Some("" | "Pending") => PodPhase::Pending,
                Some("Running") => PodPhase::Running,
                Some("Succeeded") => PodPhase::Succeeded,
                Some("Failed") => PodPhase::Failed,
                Some(_) => PodPhase::Unknown,
            },
            node: pod
                .spec
                .node_name
                .as_ref()
                .filter(|n| !n.is_empty())
                .map(SmolStr::from),
            scheduling: Scheduling::read(conditions),
            tolerations: Tolerations::read(pod.spec.tolerations.as_deref().unwrap_or_default()),
            disruption_target: target.map(|condition| {
                let at = condition.last_transition_time.as_ref();
                at.map_or_else(|| stored::created(metadata), |t| t.0)
            }),
            ip: pod.status.pod_ip.as_ref().map(SmolStr::from).unwrap_or_default(),
            ready_index: ready.map(|(index, _)| index),
            ready_since: ready.filter(|(_, c)| c.status == "True").map(changed),
            ready_changed: ready.map(changed),
            deletion_cost: annotations
                .and_then(|a| a.get(labels::POD_DELETION_COST))
                .and_then(|cost| cost.parse().ok())
                .unwrap_or(0),
            restarts: pod
                .status
                .container_statuses
                .iter()
                .flatten()
                .map(|c| c.restart_count)
                .sum(),
            not_running_detail: detail.unwrap_or_default().into(),
            not_running_reason: not_running.map(|why| why.reason),
            labels: metadata
                .labels
                .iter()
                .flatten()
                .filter(|(key, _)| !key.starts_with(labels::PREFIX))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            annotated: annotations.is_some_and(|a| !a.is_empty()),
        })
    }

    /// Whether it is in all but its resource version as it was `before`.
    pub(crate) fn is_as(&mut self, before: &Self) -> bool {
        let version = std::mem::replace(&mut self.resource_version, before.resource_version.clone());
        let is_same = self == before;
        self.resource_version = version;
        is_same
    }

    /// Namespace and name of the pool.
    pub fn pool_key(&self) -> Key {
        Key::new(self.key.namespace.clone(), self.pool.clone())
    }

    /// What the pod says now.
    pub fn disruption_mark(&self) -> DisruptionMark {
        DisruptionMark {
            deadline: self.disruption_deadline,
            allowed: self.allows_disruption,
        }
    }

    /// The phase is final: Succeeded or Failed.
    pub fn finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }
}

/// The controller owner reference, and its place among the others.
pub(crate) fn owner(metadata: &ObjectMeta) -> (usize, Owner) {
    let references = metadata.owner_references.as_deref().unwrap_or_default();
    let controller = references
        .iter()
        .enumerate()
        .find(|(_, r)| r.controller == Some(true));
    let Some((index, reference)) = controller.filter(|(_, r)| r.api_version == API_VERSION) else {
        return (0, Owner::Other);
    };
    let owner = match reference.kind.as_str() {
        "Pool" => Owner::Pool {
            uid: reference.uid.as_str().into(),
        },
        "SandboxClaim" => Owner::Claim {
            name: reference.name.as_str().into(),
            uid: reference.uid.as_str().into(),
        },
        _ => Owner::Other,
    };
    (index, owner)
}
