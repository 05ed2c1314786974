//! Which of several pools serves a selector claim.

use crate::api::claim::{OnEmpty, RevisionPolicy};
use crate::api::conditions;
use crate::api::pool::UpdateStrategyType;
use crate::cache::index::Index;
use crate::cache::snapshot::{ExpectedWrite, SandboxEntry, SelectablePool, SelectorClaim, SelectorSnapshot};
use crate::cache::waiting_claim::Waiting;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::leaving_reason::LeavingReason;
use crate::model::pool::Pool;
use crate::model::sandbox_state::SandboxState;
use crate::planner::can_ever_serve::can_ever_serve;
use crate::planner::claim_order::service_order;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The pool that serves a claim; `None` while no pool matches.
pub fn serving_pool(index: &Index, claim: &Claim, now: Timestamp) -> Option<Key> {
    let select = || {
        let snapshot = index.selector_snapshot(&claim.key.namespace, now);
        select_pools(&snapshot).remove(&claim.key)
    };
    claim.named_pool().or_else(select)
}

/// For each waiting selector claim of all namespaces, the pool that serves it.
pub fn select_all_pools(index: &Index, now: Timestamp) -> BTreeMap<Key, Key> {
    let pools = index.pool_keys();
    let namespaces: BTreeSet<_> = pools.iter().map(|pool| &pool.namespace).collect();
    let of_namespace = |namespace| select_pools(&index.selector_snapshot(namespace, now));
    namespaces
        .into_iter()
        .flat_map(|namespace| of_namespace(namespace))
        .collect()
}

/// For each selector claim of a namespace, the pool that serves it: the pool whose sandboxes it already holds, or else,
/// of the pools that have or can ever have enough for it, the pool with the most available sandboxes. Sandboxes that
/// leave their nodes count only if no pool has enough others. If pools are equal, the claim stays with its pool, or else
/// takes the first by name. Pools are selected in the order of service: what an earlier claim waits for is not
/// available to a later claim.
pub fn select_pools(snapshot: &SelectorSnapshot) -> BTreeMap<Key, Key> {
    let mut candidates: BTreeMap<&Key, Candidate> = snapshot
        .pools
        .iter()
        .map(|pool| (&pool.pool.key, Candidate::of(pool, snapshot.now)))
        .collect();
    let mut selected_pools = BTreeMap::new();
    for (waiting, claim) in queue(snapshot) {
        let fixed_pool = match claim {
            Some(claim) => claim.fixed_pool.clone(),
            None => waiting.claim.named_pool(),
        };
        let best = || {
            let assigned = claim.and_then(|claim| claim.assigned_pool.as_ref());
            let fit = candidates.values().filter(|c| waiting.claim.accepts(c.pool));
            fit.min_by_key(|c| c.rank_for(waiting, assigned))
                .map(|c| c.pool.key.clone())
        };
        let Some(pool) = fixed_pool.or_else(best) else {
            continue;
        };
        if let Some(candidate) = candidates.get_mut(&pool) {
            candidate.reserve(waiting);
        }
        if claim.is_some() {
            selected_pools.insert(waiting.claim.key.clone(), pool);
        }
    }
    selected_pools
}

/// The claims that wait for one of the pools, in the order of service; with each selector claim, what is known of it.
fn queue(snapshot: &SelectorSnapshot) -> Vec<(&Waiting, Option<&SelectorClaim>)> {
    let named = snapshot.pools.iter().flat_map(|pool| &pool.claims);
    let selecting = snapshot.claims.iter();
    let mut queue: Vec<_> = named
        .map(|waiting| (waiting, None))
        .chain(selecting.map(|claim| (&claim.waiting, Some(claim))))
        .collect();
    queue.sort_by_cached_key(|(waiting, _)| service_order(waiting));
    queue
}

/// What one pod of a pool is to claims; `None` for a pod that none can have, or that is about to go.
fn supply_of(entry: &SandboxEntry, candidate: &SelectablePool, now: Timestamp) -> Option<Supply> {
    let (pool, sandbox) = (&candidate.pool, &entry.sandbox);
    let state = sandbox.state_at(&pool.uid, &pool.spec.availability_rule, now);
    let unclaimed = !matches!(
        state,
        SandboxState::Claimed | SandboxState::Terminating | SandboxState::Foreign
    );
    let is_assigned = matches!(
        entry.expected,
        Some(ExpectedWrite::Bind | ExpectedWrite::Delete | ExpectedWrite::Deleted)
    );
    let leaving = candidate
        .nodes
        .leaving(sandbox, now)
        .map(|leaving| leaving.reason);
    let goes = matches!(
        leaving,
        Some(LeavingReason::EvictRequested | LeavingReason::NodeGone)
    );
    let available = state == SandboxState::Available && entry.expected.is_none();
    (unclaimed && !is_assigned && !goes).then(|| Supply {
        available: usize::from(available),
        leaving: usize::from(available && leaving.is_some()),
        warm: usize::from(matches!(state, SandboxState::Warming | SandboxState::Available)),
        most: 1,
    })
}

/// How a pool compares for a claim: it has too few and can never have enough; the claim has to wait; its available
/// sandboxes, those that stay on their nodes before the others; it does not serve the claim so far; its name.
type Rank<'a> = (bool, bool, (Reverse<usize>, Reverse<usize>), bool, &'a str);

/// A pool and what it has for claims that no pool is selected for yet.
struct Candidate<'a> {
    pool: &'a Pool,
    selectable: &'a SelectablePool,
    now: Timestamp,
    any: Supply,
    /// Of the update revision.
    updated: Supply,
}

/// Unclaimed sandboxes that a claim could have.
#[derive(Clone, Copy, Default)]
struct Supply {
    /// Sandboxes that could be bound now.
    available: usize,
    /// Of `available`, the sandboxes that leave their nodes, which claims take last.
    leaving: usize,
    /// Available and warming sandboxes.
    warm: usize,
    /// The most that there may be, once warming sandboxes are available and those that may be created are created.
    most: usize,
}

impl Supply {
    fn add(&mut self, other: Self) {
        self.available += other.available;
        self.leaving += other.leaving;
        self.warm += other.warm;
        self.most += other.most;
    }

    /// Sandboxes that could be bound now and do not leave their nodes.
    fn staying(self) -> usize {
        self.available.saturating_sub(self.leaving)
    }

    fn less(self, taken: Self) -> Self {
        Self {
            available: self.available.saturating_sub(taken.available),
            leaving: self.leaving.saturating_sub(taken.leaving),
            warm: self.warm.saturating_sub(taken.warm),
            most: self.most.saturating_sub(taken.most),
        }
    }

    fn up_to(self, count: usize) -> Self {
        Self {
            available: self.available.min(count),
            leaving: self.available.min(count) - self.staying().min(count),
            warm: self.warm.min(count),
            most: self.most.min(count),
        }
    }
}

impl<'a> Candidate<'a> {
    fn of(candidate: &'a SelectablePool, now: Timestamp) -> Self {
        let (pool, sandboxes) = (&*candidate.pool, &candidate.sandboxes);
        let (mut any, mut updated) = (Supply::default(), Supply::default());
        for entry in sandboxes {
            let Some(supply) = supply_of(entry, candidate, now) else {
                continue;
            };
            any.add(supply);
            if entry.sandbox.revision == pool.status.update_revision {
                updated.add(supply);
            }
        }
        let rejected = conditions::find(&pool.status.conditions, conditions::REPLICA_FAILURE).is_some();
        if !rejected && pool.error.is_none() {
            let headroom = pool.spec.total_capacity_left(sandboxes.len());
            any.most = any.most.saturating_add(headroom);
        }
        let rolls = pool.status.current_revision != pool.status.update_revision;
        // A paused rollout makes no sandbox of the update revision.
        if !(pool.spec.paused && rolls) {
            updated.most = any.most;
        }
        Candidate {
            pool,
            selectable: candidate,
            now,
            any,
            updated,
        }
    }

    /// The sandboxes that were rejected for the claim.
    fn rejected_for(&self, waiting: &Waiting) -> Supply {
        let mut rejected = Supply::default();
        if !waiting.rejected_sandboxes.is_empty() {
            let entries = self.selectable.sandboxes.iter();
            entries
                .filter(|entry| waiting.rejected_sandboxes.contains(&entry.sandbox.uid))
                .filter_map(|entry| supply_of(entry, self.selectable, self.now))
                .for_each(|supply| rejected.add(supply));
        }
        rejected
    }

    /// What the pool has for a claim of its revision policy.
    fn supply_for(&self, waiting: &Waiting) -> Supply {
        match waiting.resolved_spec.revision_policy {
            RevisionPolicy::Latest => self.updated,
            RevisionPolicy::PreferLatest | RevisionPolicy::Any => self.any,
        }
    }

    /// The rank of the pool for a claim that `assigned` served so far; the lowest is the best.
    fn rank_for(&self, waiting: &Waiting, assigned: Option<&Key>) -> Rank<'a> {
        let rejected = self.rejected_for(waiting);
        let waiting = waiting.on(self.pool);
        let supply = self.supply_for(&waiting);
        // Where a pool keeps no sandbox and makes none for a claim, what is there now is all that there ever will be.
        let makes_none = waiting.resolved_spec.on_empty != OnEmpty::Create && self.pool.spec.most_warm() == 0;
        let most = if makes_none { supply.warm } else { supply.most };
        let elsewhere = assigned != Some(&self.pool.key);
        let untried = supply.less(rejected);
        let waits = untried.available < waiting.needs();
        // A pool may have more than it ever keeps: it was made smaller a moment ago.
        let too_few = waits && (most < waiting.needs() || !can_ever_serve(&self.pool.spec, &waiting));
        let most_first = (Reverse(untried.staying()), Reverse(untried.available));
        (too_few, waits, most_first, elsewhere, &self.pool.key.name)
    }

    /// What a claim takes or waits for is not available to a later claim.
    fn reserve(&mut self, waiting: &Waiting) {
        let waiting = waiting.on(self.pool);
        let is_short = self.supply_for(&waiting).available < waiting.needs();
        if is_short && !can_ever_serve(&self.pool.spec, &waiting) {
            return;
        }
        let of_updated = self
            .updated
            .up_to(waiting.needs().saturating_sub(self.old_first(&waiting)));
        self.any = self.any.less(match waiting.resolved_spec.revision_policy {
            // It takes no old sandbox, and none is kept for it.
            RevisionPolicy::Latest => of_updated,
            RevisionPolicy::PreferLatest | RevisionPolicy::Any => self.any.up_to(waiting.needs()),
        });
        if waiting.resolved_spec.revision_policy != RevisionPolicy::Any {
            self.updated = self.updated.less(of_updated);
        }
        self.updated.available = self.updated.available.min(self.any.available);
        self.updated.leaving = self.updated.leaving.min(self.any.leaving);
    }

    /// How many available old sandboxes the claim takes before any of the update revision, as
    /// [`crate::planner::choose_sandbox`] serves it.
    fn old_first(&self, waiting: &Waiting) -> usize {
        let spec = &self.pool.spec;
        let takes_old = spec.strategy == UpdateStrategyType::OnReplenish && !spec.paused;
        if !takes_old || waiting.resolved_spec.has_revision_policy {
            return 0;
        }
        let old = self.any.warm.saturating_sub(self.updated.warm);
        let available = self.any.available.saturating_sub(self.updated.available);
        available.min(old.saturating_sub(spec.partition))
    }
}
