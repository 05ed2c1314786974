//! Claims that wait: for which pools, why, and which of several pools is to serve one.

use super::Key;
use super::claim::Claim;
use super::grouped::remove_from;
use super::index::{Index, Trigger};
use super::pool::Pool;
use super::sandbox::{Owner, Sandbox};
use super::view::{PoolView, Verdict, Waiting};
use crate::api::claim::RevisionPolicy;
use crate::api::conditions;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Claims that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Keys of the claims that wait in each line.
    lines: HashMap<Key, BTreeSet<Key>>,
    /// Why they wait, by UID, as the last plan of the pool that is to serve them had it.
    verdicts: HashMap<String, Verdict>,
    /// The pool that is to serve each claim that leaves the choice, by UID, as it was told last.
    servers: HashMap<String, Key>,
}

/// The line that a claim waits in: that of the pool it asks for, or the one that all pools of its namespace share,
/// named as no pool is.
fn line_of(claim: &Claim) -> Key {
    claim
        .named_pool()
        .unwrap_or_else(|| shared_line(&claim.key.namespace))
}

fn shared_line(namespace: &str) -> Key {
    Key::new(namespace, "")
}

impl Queue {
    /// Why the claim with UID `uid` waits.
    pub(super) fn verdict(&self, uid: &str) -> Option<&Verdict> {
        self.verdicts.get(uid)
    }

    /// The claim with UID `uid` waits no more.
    pub(super) fn forget(&mut self, uid: &str) {
        self.verdicts.remove(uid);
        self.servers.remove(uid);
    }

    fn line<'a>(&'a self, line: &Key) -> impl Iterator<Item = &'a Key> + use<'a> {
        self.lines.get(line).into_iter().flatten()
    }
}

impl Index {
    /// Puts a claim among the waiting ones.
    pub(super) fn enlist(&mut self, claim: &Claim) {
        let line = self.queue.lines.entry(line_of(claim)).or_default();
        line.insert(claim.key.clone());
    }

    /// Takes a claim out of the waiting ones. Answers the pools that it waited for.
    pub(super) fn unlist(&mut self, key: &Key) -> Vec<Trigger> {
        let Some(claim) = self.claims.get(key).cloned() else {
            return Vec::new();
        };
        let waited = remove_from(&mut self.queue.lines, &line_of(&claim), |keys| keys.remove(key));
        if waited {
            self.pools_for(&claim)
        } else {
            Vec::new()
        }
    }

    /// The pools that are there and will do for `claim`.
    pub(super) fn accepted_by<'a>(&'a self, claim: &Claim) -> impl Iterator<Item = &'a Arc<Pool>> {
        let named = claim.named_pool();
        let all = named.is_none().then(|| self.pools.values());
        let any = all.into_iter().flatten().filter(|pool| claim.accepts(pool));
        named.and_then(|key| self.pools.get(&key)).into_iter().chain(any)
    }

    /// The pools that may serve `claim`; one that it names is among them before it is there.
    pub fn pools_for(&self, claim: &Claim) -> Vec<Trigger> {
        match claim.named_pool() {
            Some(pool) => vec![Trigger::Pool(pool)],
            None => {
                let pools = self.accepted_by(claim);
                pools.map(|pool| Trigger::Pool(pool.key.clone())).collect()
            }
        }
    }

    /// Claims that wait for `pool`, or may be waiting for it.
    pub(super) fn waiting_on(&self, pool: &Key) -> Vec<Trigger> {
        let shared = shared_line(&pool.namespace);
        let keys = self.queue.line(pool).chain(self.queue.line(&shared));
        keys.cloned().map(Trigger::Claim).collect()
    }

    /// The waiting claims that `pool` is to serve, and of those that leave the choice, and that it would do for, the
    /// pool that is to serve each.
    pub(super) fn claims_of(&self, pool: &Pool, now: Timestamp) -> (Vec<Waiting>, BTreeMap<Key, Key>) {
        let mut being_bound: HashMap<&str, usize> = HashMap::new();
        for uid in self.pending.bound_to() {
            *being_bound.entry(uid).or_default() += 1;
        }
        let view = |claim: &Arc<Claim>| {
            let coming = being_bound.get(claim.uid.as_str()).copied().unwrap_or(0);
            Waiting {
                terms: claim.terms(Some(&pool.claim_defaults)),
                held: self.held_by(claim).count() + coming,
                busy: self.is_busy(claim),
                claim: Arc::clone(claim),
            }
        };
        let claims = |line: &Key| self.queue.line(line).filter_map(move |key| self.claims.get(key));
        let mut waiting: Vec<_> = claims(&pool.key).map(view).collect();
        let (mut chosen, mut stock) = (BTreeMap::new(), HashMap::new());
        let shared = shared_line(&pool.key.namespace);
        for claim in claims(&shared).filter(|claim| claim.accepts(pool)) {
            let Some(server) = self.server_of(claim, now, &mut stock) else {
                continue;
            };
            if server == pool.key {
                waiting.push(view(claim));
            }
            chosen.insert(claim.key.clone(), server);
        }
        (waiting, chosen)
    }

    /// Takes over which pools are to serve claims that leave the choice. Answers those that are to serve one that another
    /// was to serve before. To have a pool looked at every time would have two pools, each with a claim that is
    /// the other's, look in turns for ever.
    pub fn choose(&mut self, chosen: BTreeMap<Key, Key>) -> Vec<Trigger> {
        let mut triggers = BTreeSet::new();
        for (claim, server) in chosen {
            let Some(claim) = self.claims.get(&claim).filter(|claim| claim.waiting()) else {
                continue;
            };
            let known = self.queue.servers.insert(claim.uid.clone(), server.clone());
            if known.as_ref() != Some(&server) {
                triggers.insert(server);
            }
        }
        triggers.into_iter().map(Trigger::Pool).collect()
    }

    /// Chooses the pool that is to serve the claim anew, if it leaves the choice and waits. Answers that pool if it is
    /// another than before.
    pub fn choose_for(&mut self, claim: &Claim, now: Timestamp) -> Vec<Trigger> {
        if claim.named_pool().is_some() || !claim.waiting() {
            return Vec::new();
        }
        let server = self.server(claim, now).map(|pool| (claim.key.clone(), pool));
        self.choose(server.into_iter().collect())
    }

    /// Every claim that waits and is not being served just now.
    pub(super) fn waiting_claims(&self) -> impl Iterator<Item = &Arc<Claim>> {
        let keys = self.queue.lines.values().flatten();
        keys.filter_map(|key| self.claims.get(key))
            .filter(|claim| !self.is_busy(claim))
    }

    /// A task is binding or ending the claim, or has, and the watch is still to show it.
    pub fn is_busy(&self, claim: &Claim) -> bool {
        self.pending.is_serving(&claim.uid) || self.published.get(&claim.uid).is_some_and(|w| w.settled)
    }

    /// The sandboxes that a claim holds and may keep.
    pub fn held_by(&self, claim: &Claim) -> impl Iterator<Item = Arc<Sandbox>> {
        let owned = self.owned.get(&claim.uid).into_iter().flatten();
        owned
            .filter_map(|key| self.pod(key))
            .filter(|pod| claim.keeps(pod))
    }

    /// The pool that is to serve a claim; `None` when none that will do is there.
    pub fn server(&self, claim: &Claim, now: Timestamp) -> Option<Key> {
        self.server_of(claim, now, &mut HashMap::new())
    }

    /// Of several pools the one that is to serve a claim: the one whose sandboxes it holds already, or else, of those that
    /// can ever have as many as it wants, the one with the most available that will do; ties by name.
    pub(super) fn server_of<'a>(
        &'a self,
        claim: &Claim,
        now: Timestamp,
        stock: &mut HashMap<&'a Key, Stock>,
    ) -> Option<Key> {
        if let Some(pool) = claim.named_pool() {
            return Some(pool);
        }
        if let Some(pod) = self.held_by(claim).next() {
            return Some(Key::new(claim.key.namespace.clone(), pod.pool.clone()));
        }
        let candidate = |pool: &'a Arc<Pool>| {
            let stock = stock.entry(&pool.key).or_insert_with(|| self.stock(pool, now));
            let policy = claim.terms(Some(&pool.claim_defaults)).revision_policy;
            let supply = match policy {
                RevisionPolicy::Latest => stock.updated,
                RevisionPolicy::PreferLatest | RevisionPolicy::Any => stock.any,
            };
            let too_few = supply.most < claim.wanted();
            ((too_few, Reverse(supply.available), &pool.key.name), &pool.key)
        };
        let best = self
            .accepted_by(claim)
            .filter(|pool| !pool.terminating)
            .map(candidate)
            .min_by(|a, b| a.0.cmp(&b.0));
        best.map(|(_, key)| key.clone())
    }

    fn stock(&self, pool: &Pool, now: Timestamp) -> Stock {
        let sandboxes = self.sandboxes.get(&pool.key);
        let unclaimed = |s: &&Arc<Sandbox>| matches!(&s.owner, Owner::Pool { uid } if *uid == pool.uid);
        let free = |s: &&Arc<Sandbox>| {
            let available = s.available_at(&pool.targets.gate).is_some_and(|at| at <= now);
            available && self.pending.on(&s.uid).is_none()
        };
        let updated = |s: &&Arc<Sandbox>| s.revision == pool.status.update_revision;
        let all = sandboxes.into_iter().flat_map(BTreeMap::values);
        let coming = all.clone().filter(|s| unclaimed(s) && !s.terminating && !s.evict);
        let available = coming.clone().filter(free);
        let refused = conditions::find(&pool.status.conditions, conditions::REPLICA_FAILURE).is_some();
        let creates = pool.fault.is_none() && !refused;
        let most = |coming: usize| {
            let room = pool.targets.room_beside(all.clone().count());
            if creates {
                coming.saturating_add(room)
            } else {
                coming
            }
        };
        let rolls = pool.status.current_revision != pool.status.update_revision;
        let stands_still = pool.targets.paused && rolls;
        Stock {
            any: Supply {
                available: available.clone().count(),
                most: most(coming.clone().count()),
            },
            updated: Supply {
                available: available.filter(updated).count(),
                most: if stands_still {
                    coming.filter(updated).count()
                } else {
                    most(coming.count())
                },
            },
        }
    }

    /// Takes over why the claims of a view wait. Answers the claims whose reason is new.
    pub fn judge(&mut self, view: &PoolView, verdicts: Vec<Verdict>) -> Vec<Trigger> {
        if verdicts.is_empty() {
            return Vec::new();
        }
        let mut triggers = Vec::new();
        let keys: HashMap<&str, &Key> = view
            .claims
            .iter()
            .map(|w| (w.claim.uid.as_str(), &w.claim.key))
            .collect();
        for verdict in verdicts {
            let Some(key) = keys.get(verdict.uid.as_str()) else {
                continue;
            };
            let claim = self.claims.get(*key);
            let still = claim.is_some_and(|c| c.uid == verdict.uid && c.waiting());
            let said = self.queue.verdict(&verdict.uid);
            if still && said.is_none_or(|said| said.reason != verdict.reason) {
                triggers.push(Trigger::Claim((*key).clone()));
                self.queue.verdicts.insert(verdict.uid.clone(), verdict);
            }
        }
        triggers
    }
}

/// What a pool has for claims.
#[derive(Clone, Copy)]
pub(super) struct Stock {
    any: Supply,
    /// Of the update revision.
    updated: Supply,
}

/// Unclaimed sandboxes that will do for a claim.
#[derive(Clone, Copy)]
struct Supply {
    available: usize,
    /// The most that there may be, when those that warm up are available and those that may be created are created.
    most: usize,
}
