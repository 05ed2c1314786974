//! Which PodDisruptionBudgets a pool keeps, and the next write that makes them so.
//!
//! The budget over unclaimed sandboxes asks for what a rollout leaves available. The budget over claimed sandboxes
//! allows no eviction at all; it exists before the first claim, so that no claimed sandbox is without it for a moment.

use crate::api::claim::Disruption;
use crate::api::labels;
use crate::cache::pod_disruption_budget_snapshot::{Access, BudgetSnapshot};
use crate::model::pod_disruption_budget::{BudgetStep, DisruptionBudget, Group};
use crate::model::pool_error::PoolError;
use crate::model::sandbox::{Owner, Sandbox};
use crate::planner::draft::Draft;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Least time before a budget is changed or deleted after the last write. With `maxTotal` each claim may change what
/// can be available; a budget that follows a few seconds later is stricter or looser by those claims alone.
const INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// The next write of a budget.
pub(crate) fn next_step(draft: &mut Draft) -> Option<BudgetStep> {
    let known = &draft.snapshot.disruption_budgets;
    if known.access != Access::Listed || matches!(draft.snapshot.pool.error, Some(PoolError::Spec(_))) {
        return None;
    }
    let now = draft.snapshot.now;
    let steps = Group::ALL.into_iter().filter_map(|group| step(draft, group));
    let due = steps.map(|step| (due(known, &step, now).max(now), step));
    // A creation comes first.
    let (due, step) = due.min_by_key(|(due, step)| (*due, !matches!(step, BudgetStep::Create(..))))?;
    let due = known.progress.next_at()?.max(due);
    draft.wake(due);
    (due <= now).then_some(step)
}

/// When `step` may be sent, whatever became of other requests. A creation waits only if it was taken back.
fn due(known: &BudgetSnapshot, step: &BudgetStep, now: Timestamp) -> Timestamp {
    let taken_back = known.taken_back.get(step.name()).copied();
    let waits = !matches!(step, BudgetStep::Create(..));
    let interval = known
        .written_at
        .filter(|_| waits)
        .and_then(|at| at.checked_add(INTERVAL).ok());
    let due = [taken_back, interval].into_iter().flatten();
    // A clock that was set back delays nothing.
    let due = due.filter(|due| due.duration_since(now) <= INTERVAL);
    due.max().unwrap_or(Timestamp::MIN)
}

/// Why the pool keeps no budget that it should keep; a clause for the condition `Available`.
pub(crate) fn remark(draft: &Draft) -> Option<String> {
    let known = &draft.snapshot.disruption_budgets;
    if known.access == Access::Denied {
        return Some(
            "no PodDisruptionBudget is kept: the operator may not list poddisruptionbudgets; add the rule to its role".into(),
        );
    }
    let mut groups = Group::ALL.into_iter();
    groups.find_map(|group| {
        let wanted = wanted(draft, group)?;
        if let Some(other) = of_user(draft, group) {
            let (name, which) = (&other.key.name, of(group));
            return Some(format!(
                "no PodDisruptionBudget of the operator covers the {which} sandboxes: PodDisruptionBudget {name} does, and \
                 the API server evicts no pod that two cover"
            ));
        }
        let name = group.budget_name(&draft.snapshot.key().name);
        match kept(known, group, draft) {
            Kept::Other => Some(format!("another PodDisruptionBudget has the name {name}; rename or delete it")),
            Kept::Ours(budget) if budget.spec == wanted => None,
            Kept::Ours(_) | Kept::None => {
                let message = known.progress.rejection()?;
                Some(format!("PodDisruptionBudget {name} is not written: {message}"))
            }
        }
    })
}

fn of(group: Group) -> &'static str {
    match group {
        Group::Unclaimed => "unclaimed",
        Group::Claimed => "claimed",
    }
}

fn step(draft: &Draft, group: Group) -> Option<BudgetStep> {
    let wanted = wanted(draft, group).filter(|_| of_user(draft, group).is_none());
    match (kept(&draft.snapshot.disruption_budgets, group, draft), wanted) {
        (Kept::None, Some(wanted)) => {
            let name = group.budget_name(&draft.snapshot.key().name);
            Some(BudgetStep::Create(name, wanted))
        }
        (Kept::Ours(budget), Some(wanted)) if budget.spec != wanted => {
            Some(BudgetStep::Change(Arc::clone(budget), wanted))
        }
        (Kept::Ours(budget), None) => Some(BudgetStep::Delete(Arc::clone(budget))),
        (Kept::None, None) | (Kept::Ours(_), Some(_)) | (Kept::Other, _) => None,
    }
}

/// What the budget over a group should ask for; `None` where every sandbox of the group may go.
fn wanted(draft: &Draft, group: Group) -> Option<PodDisruptionBudgetSpec> {
    let pool = &draft.snapshot.pool;
    let min_available = match group {
        Group::Unclaimed if !pool.spec.pod_disruption_budget => 0,
        Group::Unclaimed => pool
            .spec
            .min_available_beside(draft.claimed + draft.set_aside.len()),
        Group::Claimed if guards_claims(draft) => usize::MAX,
        Group::Claimed => 0,
    };
    (min_available > 0).then(|| group.budget(&pool.key.name, min_available))
}

/// A claimed sandbox of the pool must not be evicted, or the next claim may ask for that.
fn guards_claims(draft: &Draft) -> bool {
    let snapshot = draft.snapshot;
    let default = snapshot.pool.claim_defaults.disruption.unwrap_or_default();
    let mut waiting = snapshot
        .claims
        .iter()
        .map(|waiting| waiting.resolved_spec.disruption);
    default != Disruption::Allow
        || waiting.any(|disruption| disruption != Disruption::Allow)
        || members(draft, Group::Claimed).next().is_some()
}

/// The budget that has the name of the one over a group.
enum Kept<'a> {
    None,
    Ours(&'a Arc<DisruptionBudget>),
    /// The pool does not control it.
    Other,
}

fn kept<'a>(known: &'a BudgetSnapshot, group: Group, draft: &Draft) -> Kept<'a> {
    let pool = &draft.snapshot.pool;
    let mut budgets = known.budgets.iter();
    match budgets.find(|budget| group.is_named(&budget.key.name, &pool.key.name)) {
        None => Kept::None,
        Some(budget) if budget.is_of_pool(&pool.uid) => Kept::Ours(budget),
        Some(_) => Kept::Other,
    }
}

/// A user's budget over the sandboxes of a group, or over those that the pool is about to make.
fn of_user<'a>(draft: &Draft<'a>, group: Group) -> Option<&'a DisruptionBudget> {
    let budgets = draft.snapshot.disruption_budgets.budgets.iter();
    let mut of_users = budgets
        .map(Arc::as_ref)
        .filter(|budget| budget.is_of_user())
        .peekable();
    of_users.peek()?;
    let labels = labels_in(draft, group);
    of_users.find(|budget| labels.iter().any(|labels| budget.covers(labels)))
}

/// The labels of the sandboxes in a group, those to come included. Sandboxes of one template mostly have the same. What
/// claims add to theirs does not count: a claim could leave the others without their budget.
fn labels_in(draft: &Draft, group: Group) -> Vec<BTreeMap<String, String>> {
    let mut all = vec![labels_to_come(draft, group)];
    if group == Group::Unclaimed {
        all.extend(members(draft, group).map(Sandbox::all_labels));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The labels of a sandbox of the update revision.
fn labels_to_come(draft: &Draft, group: Group) -> BTreeMap<String, String> {
    let update = &draft.revisions.update;
    let of_template = update
        .template
        .value
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let of_template = of_template.into_iter().flatten();
    let of_template = of_template.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_string())));
    let of_pool = [
        (labels::POOL, draft.snapshot.key().name.as_str()),
        (labels::REVISION, update.hash.as_str()),
    ];
    let of_group: &[(&str, &str)] = match group {
        Group::Unclaimed => &[(labels::STATE, labels::WARM)],
        Group::Claimed => &[
            (labels::STATE, labels::CLAIMED),
            (labels::CLAIM, ""),
            (labels::CLAIM_UID, ""),
        ],
    };
    let of_operator = of_pool.into_iter().chain(of_group.iter().copied());
    of_template
        .chain(of_operator.map(|(key, value)| (key.to_string(), value.to_string())))
        .collect()
}

/// The sandboxes that the budget over a group covers.
fn members<'a>(draft: &Draft<'a>, group: Group) -> impl Iterator<Item = &'a Sandbox> + use<'a> {
    let pool = &draft.snapshot.pool;
    let sandboxes = draft
        .snapshot
        .sandboxes
        .iter()
        .map(|entry| entry.sandbox.as_ref());
    sandboxes.filter(move |sandbox| {
        !sandbox.terminating
            && match (group, &sandbox.owner) {
                (Group::Unclaimed, Owner::Pool { uid }) => *uid == pool.uid && sandbox.state == labels::WARM,
                (Group::Claimed, Owner::Claim { .. }) => !sandbox.allows_disruption,
                _ => false,
            }
    })
}
