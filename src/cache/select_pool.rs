//! Which of several pools serves a selector claim.

use crate::api::ClaimDefaults;
use crate::api::claim::{OnEmpty, RevisionPolicy};
use crate::api::conditions;
use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::Waiting;
use crate::cache::waiting_claims::selector_queue;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::sandbox::Sandbox;
use crate::model::sandbox_state::SandboxState;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Index {
    /// The pool that serves a claim; `None` while no pool would do.
    pub fn serving_pool(&self, claim: &Claim, now: Timestamp) -> Option<Key> {
        claim
            .named_pool()
            .or_else(|| self.selected_pools(&claim.key.namespace, now).remove(&claim.key))
    }

    /// For each selector claim of a namespace, the pool that serves it: the pool whose sandboxes it holds already, or else,
    /// of the pools that may come to have as many as it needs, the one with the most available. Among equals it stays
    /// where it was, or else goes by name. Pools are selected in the order of service, and what an earlier claim waits for
    /// is not available to a later one.
    pub(crate) fn selected_pools(&self, namespace: &str, now: Timestamp) -> BTreeMap<Key, Key> {
        // A claim that is being bound keeps its pool.
        let selector_claims: Vec<_> = self
            .queued(&selector_queue(namespace))
            .filter(|claim| !self.is_busy(claim))
            .collect();
        if selector_claims.is_empty() {
            return BTreeMap::new();
        }
        let would_do =
            |pool: &&Arc<Pool>| !pool.terminating && selector_claims.iter().any(|claim| claim.accepts(pool));
        let pools = self.pools.values().filter(would_do);
        let mut candidates: BTreeMap<&Key, Candidate> =
            pools.map(|pool| (&pool.key, self.candidate(pool, now))).collect();
        let mut selected_pools = BTreeMap::new();
        for (waiting, fixed_pool) in self.queue_of(&candidates, &selector_claims) {
            let best = || {
                let fit = candidates.values().filter(|c| waiting.claim.accepts(c.pool));
                let assigned = self.assigned_pool(&waiting.claim.uid);
                fit.min_by_key(|c| c.rank_for(&waiting, self.rejected_by(c.pool, &waiting, now), assigned))
                    .map(|c| c.pool.key.clone())
            };
            let Some(pool) = fixed_pool.or_else(best) else {
                continue;
            };
            if let Some(candidate) = candidates.get_mut(&pool) {
                candidate.reserve(&waiting);
            }
            if waiting.claim.named_pool().is_none() {
                selected_pools.insert(waiting.claim.key.clone(), pool);
            }
        }
        selected_pools
    }

    /// The claims that wait for one of the candidates, in the order of service, each with the pool that it cannot change any
    /// more.
    fn queue_of(
        &self,
        candidates: &BTreeMap<&Key, Candidate>,
        selector_claims: &[&Arc<Claim>],
    ) -> Vec<(Waiting, Option<Key>)> {
        let being_bound = self.being_bound();
        let mut queue = Vec::new();
        for (key, candidate) in candidates {
            let waiting = |claim| self.waiting(claim, &candidate.pool.claim_defaults, &being_bound);
            queue.extend(
                self.queued(key)
                    .map(|claim| (waiting(claim), Some((*key).clone()))),
            );
        }
        // The defaults of a pool hold only once it is selected.
        let no_defaults = ClaimDefaults::default();
        for claim in selector_claims {
            let bound_from = || Some(self.pod(self.expectations.binding_of(&claim.uid)?)?.pool_key());
            let fixed_pool = self.pool_held_of(claim).or_else(bound_from);
            queue.push((self.waiting(claim, &no_defaults, &being_bound), fixed_pool));
        }
        queue.sort_by_cached_key(|(waiting, _)| waiting.service_order());
        queue
    }

    /// How many of the sandboxes of `pool` that could be bound now were rejected for the claim.
    fn rejected_by(&self, pool: &Pool, waiting: &Waiting, now: Timestamp) -> usize {
        if waiting.rejected_sandboxes.is_empty() {
            return 0;
        }
        self.sandboxes_of(&pool.key)
            .filter(|sandbox| waiting.rejected_sandboxes.contains(&sandbox.uid))
            .filter(|sandbox| !sandbox.evict && self.may_be_bound(sandbox, state(sandbox, pool, now)))
            .count()
    }

    fn may_be_bound(&self, sandbox: &Sandbox, state: SandboxState) -> bool {
        state == SandboxState::Available && self.expectations.on(&sandbox.uid).is_none()
    }

    fn candidate<'a>(&self, pool: &'a Pool, now: Timestamp) -> Candidate<'a> {
        let (mut any, mut updated) = (Supply::default(), Supply::default());
        let mut existing = 0;
        for sandbox in self.sandboxes_of(&pool.key) {
            existing += 1;
            let state = state(sandbox, pool, now);
            let unclaimed = !matches!(
                state,
                SandboxState::Claimed | SandboxState::Terminating | SandboxState::Foreign
            );
            if !unclaimed || sandbox.evict || self.expectations.is_assigned(&sandbox.uid) {
                continue;
            }
            let supply = Supply {
                available: usize::from(self.may_be_bound(sandbox, state)),
                warm: usize::from(matches!(state, SandboxState::Warming | SandboxState::Available)),
                most: 1,
            };
            any.add(supply);
            if sandbox.revision == pool.status.update_revision {
                updated.add(supply);
            }
        }
        let rejected = conditions::find(&pool.status.conditions, conditions::REPLICA_FAILURE).is_some();
        if !rejected && pool.error.is_none() {
            let headroom = pool.spec.total_capacity_left(existing);
            any.most = any.most.saturating_add(headroom);
        }
        let rolls = pool.status.current_revision != pool.status.update_revision;
        // A paused rollout makes no sandbox of the update revision.
        if !(pool.spec.paused && rolls) {
            updated.most = any.most;
        }
        Candidate { pool, any, updated }
    }

    /// Assigns the selected pools to the claims. Returns the pools that now serve another claim than before, and those
    /// that served it. If every pool were planned each time, two pools that each hold a claim of the other would have each
    /// other planned for ever.
    pub fn assign_pools(&mut self, selected_pools: &BTreeMap<Key, Key>) -> Vec<ReconcileRequest> {
        let mut to_reconcile = BTreeSet::new();
        for (claim, pool) in selected_pools {
            let Some(claim) = self.claims.get(claim).filter(|claim| claim.waiting()) else {
                continue;
            };
            let memory = self.memory.claim_mut(&claim.uid);
            let known = memory.assigned_pool.replace(pool.clone());
            if known.as_ref() != Some(pool) {
                to_reconcile.extend(known);
                to_reconcile.insert(pool.clone());
            }
        }
        to_reconcile.into_iter().map(ReconcileRequest::Pool).collect()
    }

    /// Selects a pool anew for a selector claim whose pool is gone, is being deleted or has other labels. Returns the pool
    /// that now serves the claim.
    pub fn reassign_pool(&mut self, claim: &Claim, now: Timestamp) -> Vec<ReconcileRequest> {
        let would_do = |pool: &Arc<Pool>| !pool.terminating && claim.accepts(pool);
        let serves = |key: &Key| self.pools.get(key).is_some_and(would_do);
        let known = self.assigned_pool(&claim.uid);
        if known.is_none_or(serves) {
            return Vec::new();
        }
        let selected = self
            .serving_pool(claim, now)
            .map(|pool| (claim.key.clone(), pool));
        self.assign_pools(&selected.into_iter().collect())
    }
}

fn state(sandbox: &Sandbox, pool: &Pool, now: Timestamp) -> SandboxState {
    sandbox.state_at(&pool.uid, &pool.spec.availability_rule, now)
}

/// A pool and what it has for claims that no pool is selected for yet.
struct Candidate<'a> {
    pool: &'a Pool,
    any: Supply,
    /// Of the update revision.
    updated: Supply,
}

/// Unclaimed sandboxes that a claim could have.
#[derive(Clone, Copy, Default)]
struct Supply {
    /// Sandboxes that could be bound now.
    available: usize,
    /// Available and warming sandboxes.
    warm: usize,
    /// The most that there may be, once warming sandboxes are available and those that may be created are created.
    most: usize,
}

impl Supply {
    fn add(&mut self, other: Self) {
        self.available += other.available;
        self.warm += other.warm;
        self.most += other.most;
    }

    fn less(self, taken: Self) -> Self {
        Self {
            available: self.available.saturating_sub(taken.available),
            warm: self.warm.saturating_sub(taken.warm),
            most: self.most.saturating_sub(taken.most),
        }
    }

    fn up_to(self, count: usize) -> Self {
        Self {
            available: self.available.min(count),
            warm: self.warm.min(count),
            most: self.most.min(count),
        }
    }
}

impl<'a> Candidate<'a> {
    /// The rank of the pool for a claim; the lowest is the best. `rejected` of its available sandboxes were rejected for the
    /// claim, and `assigned` is the pool that served it so far.
    fn rank_for(
        &self,
        waiting: &Waiting,
        rejected: usize,
        assigned: Option<&Key>,
    ) -> (bool, Reverse<usize>, bool, &'a str) {
        let waiting = waiting.on(self.pool);
        let supply = match waiting.resolved_spec.revision_policy {
            RevisionPolicy::Latest => self.updated,
            RevisionPolicy::PreferLatest | RevisionPolicy::Any => self.any,
        };
        // Where a pool keeps no sandbox and makes none for a claim, what is there now is all that there ever will be.
        let makes_none = waiting.resolved_spec.on_empty != OnEmpty::Create && self.pool.spec.most_warm() == 0;
        let most = if makes_none { supply.warm } else { supply.most };
        let too_few = most < waiting.needs() || !waiting.may_ever_be_served_by(&self.pool.spec);
        let elsewhere = assigned != Some(&self.pool.key);
        let untried = supply.available.saturating_sub(rejected);
        (too_few, Reverse(untried), elsewhere, &self.pool.key.name)
    }

    /// What a claim takes or waits for is not available to a later claim.
    fn reserve(&mut self, waiting: &Waiting) {
        let waiting = waiting.on(self.pool);
        if !waiting.may_ever_be_served_by(&self.pool.spec) {
            return;
        }
        let of_updated = self.updated.up_to(waiting.needs());
        self.any = self.any.less(match waiting.resolved_spec.revision_policy {
            // It takes no old sandbox, and none is kept for it.
            RevisionPolicy::Latest => of_updated,
            RevisionPolicy::PreferLatest | RevisionPolicy::Any => self.any.up_to(waiting.needs()),
        });
        if waiting.resolved_spec.revision_policy != RevisionPolicy::Any {
            self.updated = self.updated.less(of_updated);
        }
        self.updated.available = self.updated.available.min(self.any.available);
    }
}
