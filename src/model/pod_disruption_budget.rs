//! A PodDisruptionBudget: who keeps it, which pods it covers, what it asks for.

use crate::api::labels;
use crate::model::Key;
use crate::model::failure::Class;
use crate::model::retry::Tries;
use crate::model::sandbox::{self, Owner};
use crate::model::stored::{self, StoredDisruptionBudget};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::{Selector, SelectorExt};
use smol_str::{SmolStr, format_smolstr};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pause after a write that the API server rejects: only a person can help.
const REJECTED_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// A PodDisruptionBudget as decisions need it.
#[derive(Clone, Debug, PartialEq)]
pub struct DisruptionBudget {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: SmolStr,
    /// Resource version of the decoded state.
    pub resource_version: SmolStr,
    /// The pool or claim that controls it. A budget of another owner is a user's.
    pub owner: Owner,
    /// What it asks for.
    pub spec: PodDisruptionBudgetSpec,
    /// `None`: it covers no pod.
    selector: Option<Selector>,
}

impl DisruptionBudget {
    /// Decodes a stored PodDisruptionBudget. A spec that cannot be read covers no pod, as for the API server.
    pub fn read(stored: &StoredDisruptionBudget) -> Self {
        let metadata = &stored.metadata;
        let spec: PodDisruptionBudgetSpec = stored::decode("spec", &stored.spec).unwrap_or_default();
        Self {
            key: stored::key(metadata),
            uid: stored::uid(metadata),
            resource_version: stored::resource_version(metadata),
            owner: sandbox::owner(metadata).1,
            selector: spec
                .selector
                .clone()
                .and_then(|selector| selector.try_into().ok()),
            spec,
        }
    }

    /// Whether the pool with this UID controls it.
    pub fn is_of_pool(&self, pool: &str) -> bool {
        matches!(&self.owner, Owner::Pool { uid } if uid == pool)
    }

    /// Whether the claim with this UID controls it.
    pub fn is_of_claim(&self, claim: &str) -> bool {
        matches!(&self.owner, Owner::Claim { uid, .. } if uid == claim)
    }

    /// Whether neither a pool nor a claim controls it.
    pub fn is_of_user(&self) -> bool {
        self.owner == Owner::Other
    }

    /// Whether it covers a pod with these labels.
    pub fn covers(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector
            .as_ref()
            .is_some_and(|selector| selector.matches(labels))
    }
}

/// The sandboxes of a pool that one budget of the operator covers. No pod is in two groups: the API server evicts no
/// pod that two budgets cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The unclaimed sandboxes.
    Unclaimed,
    /// The claimed sandboxes that must not be evicted.
    Claimed,
}

impl Group {
    /// Both groups.
    pub const ALL: [Self; 2] = [Self::Unclaimed, Self::Claimed];

    /// Name of the budget over the group in the pool with this name.
    pub fn budget_name(self, pool: &str) -> SmolStr {
        format_smolstr!("{pool}{}", self.suffix())
    }

    /// Whether a budget of this name is the one over the group in the pool with name `pool`.
    pub fn is_named(self, budget: &str, pool: &str) -> bool {
        budget.strip_prefix(pool) == Some(self.suffix())
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Unclaimed => "-unclaimed",
            Self::Claimed => "-claimed",
        }
    }

    /// The budget that keeps `min_available` sandboxes of the group. `minAvailable` is a whole number, because
    /// Kubernetes resolves anything else by the scale of the pods' owners, and a claim has none.
    pub fn budget(self, pool: &str, min_available: usize) -> PodDisruptionBudgetSpec {
        let (state, requirements, unhealthy) = match self {
            Self::Unclaimed => (labels::WARM, None, "AlwaysAllow"),
            Self::Claimed => (labels::CLAIMED, Some(vec![not_allowed()]), "IfHealthyBudget"),
        };
        let equal = [(labels::POOL, pool), (labels::STATE, state)];
        budget(equal, requirements, min_available, unhealthy)
    }
}

fn budget(
    equal: [(&str, &str); 2],
    requirements: Option<Vec<LabelSelectorRequirement>>,
    min_available: usize,
    unhealthy: &str,
) -> PodDisruptionBudgetSpec {
    PodDisruptionBudgetSpec {
        max_unavailable: None,
        min_available: Some(IntOrString::Int(i32::try_from(min_available).unwrap_or(i32::MAX))),
        selector: Some(LabelSelector {
            match_expressions: requirements,
            match_labels: Some(equal.map(|(key, value)| (key.into(), value.into())).into()),
        }),
        unhealthy_pod_eviction_policy: Some(unhealthy.into()),
    }
}

/// The pod does not say that it may be evicted.
fn not_allowed() -> LabelSelectorRequirement {
    LabelSelectorRequirement {
        key: labels::DISRUPTION.into(),
        operator: "NotIn".into(),
        values: Some(vec![labels::ALLOW.into()]),
    }
}

/// Name of the budget of a claim that has outlived its pool.
pub fn orphan_budget_name(claim: &str) -> SmolStr {
    format_smolstr!("{claim}-orphaned")
}

/// The budget that lets none of the sandboxes of the claim with this UID be evicted. It covers what the budget over the
/// claimed sandboxes of its pool covered.
pub fn orphan_budget(claim_uid: &str) -> PodDisruptionBudgetSpec {
    let equal = [(labels::CLAIM_UID, claim_uid), (labels::STATE, labels::CLAIMED)];
    budget(equal, Some(vec![not_allowed()]), usize::MAX, "IfHealthyBudget")
}

/// What to do about a PodDisruptionBudget of a pool.
#[derive(Clone, Debug, PartialEq)]
pub enum BudgetStep {
    /// Create it under this name.
    Create(SmolStr, PodDisruptionBudgetSpec),
    /// Have it ask for this.
    Change(Arc<DisruptionBudget>, PodDisruptionBudgetSpec),
    /// Delete it.
    Delete(Arc<DisruptionBudget>),
}

impl BudgetStep {
    /// Name of the budget.
    pub fn name(&self) -> &str {
        match self {
            Self::Create(name, _) => name,
            Self::Change(budget, _) | Self::Delete(budget) => &budget.key.name,
        }
    }
}

/// What is known of the last request about the budgets of a pool. A pool sends one at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BudgetProgress {
    /// Nothing is under way.
    #[default]
    Idle,
    /// The request is under way.
    Sent(Option<Tries>),
    /// The request failed.
    Failed(Tries),
}

impl BudgetProgress {
    /// The progress after one more request, sent now.
    #[must_use]
    pub fn sent(self) -> Self {
        match self {
            Self::Idle => Self::Sent(None),
            Self::Sent(tries) => Self::Sent(tries),
            Self::Failed(tries) => Self::Sent(Some(tries)),
        }
    }

    /// When the next request may be sent; `None` while one is under way.
    pub fn next_at(&self) -> Option<Timestamp> {
        match self {
            Self::Idle => Some(Timestamp::MIN),
            Self::Sent(_) => None,
            Self::Failed(tries) if is_final(tries.failure.class) => {
                Some(tries.at.checked_add(REJECTED_PAUSE).unwrap_or(Timestamp::MAX))
            }
            Self::Failed(tries) => Some(tries.next_at()),
        }
    }

    /// The API server's message, if it rejects the budget.
    pub fn rejection(&self) -> Option<&str> {
        match self {
            Self::Failed(tries) | Self::Sent(Some(tries)) if is_final(tries.failure.class) => {
                Some(&tries.failure.message)
            }
            _ => None,
        }
    }

    /// Forgets when requests failed: the clock was set back.
    pub fn forget_moments(&mut self) {
        if let Self::Sent(Some(tries)) | Self::Failed(tries) = self {
            tries.forget_moments();
        }
    }
}

/// Whether the same request would fail again.
fn is_final(class: Class) -> bool {
    matches!(class, Class::Rejected | Class::Denied | Class::Invalid)
}
