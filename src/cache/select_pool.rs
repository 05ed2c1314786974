//! Which of several pools is to serve a claim that leaves the choice.

use crate::api::claim::{OnEmpty, RevisionPolicy};
use crate::api::conditions;
use crate::api::{ClaimDefaults, labels};
use crate::cache::index::{Index, ReconcileRequest};
use crate::cache::snapshot::Waiting;
use crate::cache::waiting_claims::selector_queue;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::sandbox::{Owner, Sandbox};
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Index {
    /// The pool that is to serve a claim; `None` when none that will do is there.
    pub fn server(&self, claim: &Claim, now: Timestamp) -> Option<Key> {
        claim
            .named_pool()
            .or_else(|| self.selected_pools(&claim.key.namespace, now).remove(&claim.key))
    }

    /// For each claim of a namespace that leaves the choice, the pool that is to serve it: the one whose sandboxes it holds
    /// already, or else, of those that may come to have as many as it needs, the one with the most available that
    /// will do; among equals it stays where it was, or else goes by name. Claims choose in the order of service, and what
    /// those before one are waiting for is none that it could have.
    pub(crate) fn selected_pools(&self, namespace: &str, now: Timestamp) -> BTreeMap<Key, Key> {
        // One that is being served has chosen.
        let selector_claims: Vec<_> = self
            .in_line(&selector_queue(namespace))
            .filter(|claim| !self.is_busy(claim))
            .collect();
        if selector_claims.is_empty() {
            return BTreeMap::new();
        }
        let will_do =
            |pool: &&Arc<Pool>| !pool.terminating && selector_claims.iter().any(|claim| claim.accepts(pool));
        let pools = self.pools.values().filter(will_do);
        let mut candidates: BTreeMap<&Key, Candidate> =
            pools.map(|pool| (&pool.key, self.candidate(pool, now))).collect();
        let mut selected_pools = BTreeMap::new();
        for (one, at) in self.line_before(&candidates, &selector_claims) {
            let best = || {
                let fit = candidates.values().filter(|c| one.claim.accepts(c.pool));
                let told = self.assigned_pool(&one.claim.uid);
                fit.min_by_key(|c| c.rank_for(&one, self.refused_by(c.pool, &one, now), told))
                    .map(|c| c.pool.key.clone())
            };
            let Some(server) = at.or_else(best) else {
                continue;
            };
            if let Some(candidate) = candidates.get_mut(&server) {
                candidate.reserve(&one);
            }
            if one.claim.named_pool().is_none() {
                selected_pools.insert(one.claim.key.clone(), server);
            }
        }
        selected_pools
    }

    /// All that wait for one of these pools, in the order of service, each with the pool that it cannot change any more.
    fn line_before(
        &self,
        candidates: &BTreeMap<&Key, Candidate>,
        selector_claims: &[&Arc<Claim>],
    ) -> Vec<(Waiting, Option<Key>)> {
        let being_bound = self.being_bound();
        let mut line = Vec::new();
        for (key, candidate) in candidates {
            let waiting = |claim| self.waiting(claim, &candidate.pool.claim_defaults, &being_bound);
            line.extend(
                self.in_line(key)
                    .map(|claim| (waiting(claim), Some((*key).clone()))),
            );
        }
        // The defaults of a pool hold only once it is chosen.
        let none = ClaimDefaults::default();
        for claim in selector_claims {
            let binding = || Some(self.pod(self.expectations.binding_of(&claim.uid)?)?.pool_key());
            let at = self.pool_held_of(claim).or_else(binding);
            line.push((self.waiting(claim, &none, &being_bound), at));
        }
        line.sort_by_cached_key(|(one, _)| one.service_order());
        line
    }

    /// How many free sandboxes of `pool` were refused to `one`.
    fn refused_by(&self, pool: &Pool, one: &Waiting, now: Timestamp) -> usize {
        if one.rejected_sandboxes.is_empty() {
            return 0;
        }
        let all = self.sandboxes_of(&pool.key);
        let free = all.filter(|s| is_unclaimed(s, pool) && self.is_free(s, pool, now));
        free.filter(|s| one.rejected_sandboxes.contains(&s.uid)).count()
    }

    fn is_free(&self, sandbox: &Sandbox, pool: &Pool, now: Timestamp) -> bool {
        sandbox.is_available(&pool.spec.availability_rule, now)
            && self.expectations.on(&sandbox.uid).is_none()
    }

    fn candidate<'a>(&self, pool: &'a Pool, now: Timestamp) -> Candidate<'a> {
        let all = self.sandboxes_of(&pool.key);
        let coming = all
            .clone()
            .filter(|s| is_unclaimed(s, pool) && !self.expectations.is_assigned(&s.uid));
        let free = |s: &&Arc<Sandbox>| self.is_free(s, pool, now);
        let may_come = |s: &&Arc<Sandbox>| s.state == labels::WARM && !s.finished();
        let updated = |s: &&Arc<Sandbox>| s.revision == pool.status.update_revision;
        let refused = conditions::find(&pool.status.conditions, conditions::REPLICA_FAILURE).is_some();
        let room = if refused || pool.error.is_some() {
            0
        } else {
            pool.spec.total_capacity_left(all.count())
        };
        let rolls = pool.status.current_revision != pool.status.update_revision;
        let stands_still = pool.spec.paused && rolls;
        let most = coming.clone().count().saturating_add(room);
        Candidate {
            pool,
            any: Supply {
                available: coming.clone().filter(free).count(),
                there: coming.clone().filter(may_come).count(),
                most,
            },
            updated: Supply {
                available: coming.clone().filter(free).filter(updated).count(),
                there: coming.clone().filter(may_come).filter(updated).count(),
                most: if stands_still {
                    coming.filter(updated).count()
                } else {
                    most
                },
            },
        }
    }

    /// Takes over which pools are to serve claims that leave the choice. Answers those that are to serve one that another
    /// was to serve before, and those others. To have a pool looked at every time would have two pools, each with a claim
    /// that is the other's, look in turns for ever.
    pub fn assign_pools(&mut self, selected_pools: &BTreeMap<Key, Key>) -> Vec<ReconcileRequest> {
        let mut to_reconcile = BTreeSet::new();
        for (claim, server) in selected_pools {
            let Some(claim) = self.claims.get(claim).filter(|claim| claim.waiting()) else {
                continue;
            };
            let known = self
                .waiting_claims
                .assigned_pools
                .insert(claim.uid.clone(), server.clone());
            if known.as_ref() != Some(server) {
                to_reconcile.extend(known);
                to_reconcile.insert(server.clone());
            }
        }
        to_reconcile.into_iter().map(ReconcileRequest::Pool).collect()
    }

    /// Has the claim choose anew if it leaves the choice and the pool that was to serve it is being deleted or gone, or has
    /// other labels. Answers the pool that is to serve it now.
    pub fn reassign_pool(&mut self, claim: &Claim, now: Timestamp) -> Vec<ReconcileRequest> {
        let will_do = |pool: &Arc<Pool>| !pool.terminating && claim.accepts(pool);
        let serves = |key: &Key| self.pools.get(key).is_some_and(will_do);
        let known = self.waiting_claims.assigned_pools.get(&claim.uid);
        if known.is_none_or(serves) {
            return Vec::new();
        }
        let server = self.server(claim, now).map(|pool| (claim.key.clone(), pool));
        self.assign_pools(&server.into_iter().collect())
    }
}

/// It is the pool's to give, now or once it is available.
fn is_unclaimed(sandbox: &Sandbox, pool: &Pool) -> bool {
    let of_pool = matches!(&sandbox.owner, Owner::Pool { uid } if *uid == pool.uid);
    of_pool && !sandbox.terminating && !sandbox.evict
}

/// A pool and what it has for claims that are still to choose.
struct Candidate<'a> {
    pool: &'a Pool,
    any: Supply,
    /// Of the update revision.
    updated: Supply,
}

/// Unclaimed sandboxes that will do for a claim.
#[derive(Clone, Copy)]
struct Supply {
    available: usize,
    /// Those and the ones that warm up.
    there: usize,
    /// The most that there may be, when those that warm up are available and those that may be created are created.
    most: usize,
}

impl Supply {
    fn less(self, taken: Self) -> Self {
        Self {
            available: self.available.saturating_sub(taken.available),
            there: self.there.saturating_sub(taken.there),
            most: self.most.saturating_sub(taken.most),
        }
    }

    fn up_to(self, count: usize) -> Self {
        Self {
            available: self.available.min(count),
            there: self.there.min(count),
            most: self.most.min(count),
        }
    }
}

impl<'a> Candidate<'a> {
    /// The least is the best.
    fn rank_for(
        &self,
        one: &Waiting,
        refused: usize,
        told: Option<&Key>,
    ) -> (bool, Reverse<usize>, bool, &'a str) {
        let one = one.on(self.pool);
        let supply = match one.resolved_spec.revision_policy {
            RevisionPolicy::Latest => self.updated,
            RevisionPolicy::PreferLatest | RevisionPolicy::Any => self.any,
        };
        // Where none is kept and none made for a claim, what is there now is all that there ever will be.
        let makes_none = one.resolved_spec.on_empty != OnEmpty::Create && self.pool.spec.most_warm() == 0;
        let most = if makes_none { supply.there } else { supply.most };
        let too_few = most < one.needs() || !one.may_ever_be_served_by(&self.pool.spec);
        let elsewhere = told != Some(&self.pool.key);
        let untried = supply.available.saturating_sub(refused);
        (too_few, Reverse(untried), elsewhere, &self.pool.key.name)
    }

    /// What `one` takes, or waits for, is nobody else's.
    fn reserve(&mut self, one: &Waiting) {
        let one = one.on(self.pool);
        if !one.may_ever_be_served_by(&self.pool.spec) {
            return;
        }
        let of_updated = self.updated.up_to(one.needs());
        self.any = self.any.less(match one.resolved_spec.revision_policy {
            // Of others it takes none, and none is kept for it.
            RevisionPolicy::Latest => of_updated,
            RevisionPolicy::PreferLatest | RevisionPolicy::Any => self.any.up_to(one.needs()),
        });
        if one.resolved_spec.revision_policy != RevisionPolicy::Any {
            self.updated = self.updated.less(of_updated);
        }
        self.updated.available = self.updated.available.min(self.any.available);
    }
}
