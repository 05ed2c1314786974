//! Claims that wait: for which pools, and why.

use crate::api::ClaimDefaults;
use crate::api::conditions::claim as reasons;
use crate::cache::grouped::remove_from;
use crate::cache::index::{Index, ReconcileRequest};
use crate::cache::snapshot::{PoolSnapshot, WaitReason, Waiting};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Claims that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingClaims {
    /// Keys of the claims that wait in each line.
    lines: HashMap<Key, BTreeSet<Key>>,
    /// Why they wait, by UID, as the last plan of the pool that is to serve them had it.
    wait_reasons: HashMap<String, WaitReason>,
    /// UIDs of the claims whose binding the API server refused or failed to make when it was tried last.
    refused: HashSet<String>,
    /// The pool that is to serve each claim that leaves the choice, by UID, as it was told last.
    pub(crate) assigned_pools: HashMap<String, Key>,
}

/// The line that a claim waits in: that of the pool it asks for, or the one that all pools of its namespace share,
/// named as no pool is.
fn line_of(claim: &Claim) -> Key {
    claim
        .named_pool()
        .unwrap_or_else(|| selector_queue(&claim.key.namespace))
}

pub(crate) fn selector_queue(namespace: &str) -> Key {
    Key::new(namespace, "")
}

impl WaitingClaims {
    /// Why the claim with UID `uid` waits.
    pub(crate) fn wait_reason(&self, uid: &str) -> Option<&WaitReason> {
        self.wait_reasons.get(uid)
    }

    /// The claim with UID `uid` waits no more.
    pub(crate) fn forget(&mut self, uid: &str) {
        self.wait_reasons.remove(uid);
        self.refused.remove(uid);
        self.assigned_pools.remove(uid);
    }

    fn line<'a>(&'a self, line: &Key) -> impl Iterator<Item = &'a Key> + use<'a> {
        self.lines.get(line).into_iter().flatten()
    }
}

impl Index {
    /// Puts a claim among the waiting ones.
    pub(crate) fn enlist(&mut self, claim: &Claim) {
        let line = self.waiting_claims.lines.entry(line_of(claim)).or_default();
        line.insert(claim.key.clone());
    }

    /// Takes a claim out of the waiting ones. Answers the pools that it waited for.
    pub(crate) fn unlist(&mut self, key: &Key) -> Vec<ReconcileRequest> {
        let Some(claim) = self.claims.get(key).cloned() else {
            return Vec::new();
        };
        let waited = remove_from(&mut self.waiting_claims.lines, &line_of(&claim), |keys| {
            keys.remove(key)
        });
        if waited {
            self.pools_for(&claim)
        } else {
            Vec::new()
        }
    }

    /// The pools that are there and will do for `claim`.
    pub(crate) fn accepted_by<'a>(&'a self, claim: &Claim) -> impl Iterator<Item = &'a Arc<Pool>> {
        let named = claim.named_pool();
        let all = named.is_none().then(|| self.pools.values());
        let any = all.into_iter().flatten().filter(|pool| claim.accepts(pool));
        named.and_then(|key| self.pools.get(&key)).into_iter().chain(any)
    }

    /// The pools that may serve `claim`; one that it names is among them before it is there, and one whose sandboxes it
    /// holds whatever labels that has by now.
    pub fn pools_for(&self, claim: &Claim) -> Vec<ReconcileRequest> {
        if let Some(pool) = claim.named_pool() {
            return vec![ReconcileRequest::Pool(pool)];
        }
        let accepted = self.accepted_by(claim).map(|pool| pool.key.clone());
        let pools: BTreeSet<_> = accepted.chain(self.pool_held_of(claim)).collect();
        pools.into_iter().map(ReconcileRequest::Pool).collect()
    }

    /// Claims that wait for `pool`, or may be waiting for it.
    pub(crate) fn waiting_on(&self, pool: &Key) -> Vec<ReconcileRequest> {
        let shared = selector_queue(&pool.namespace);
        let keys = self
            .waiting_claims
            .line(pool)
            .chain(self.waiting_claims.line(&shared));
        keys.cloned().map(ReconcileRequest::Claim).collect()
    }

    /// The waiting claims that `pool` is to serve, and of those that leave the choice, and that it would do for, the
    /// pool that is to serve each.
    pub(crate) fn claims_of(&self, pool: &Pool, now: Timestamp) -> (Vec<Waiting>, BTreeMap<Key, Key>) {
        let being_bound = self.being_bound();
        let as_waiting = |claim: &Arc<Claim>| self.waiting(claim, &pool.claim_defaults, &being_bound);
        let mut waiting: Vec<_> = self.in_line(&pool.key).map(as_waiting).collect();
        let mut selected_pools = self.selected_pools(&pool.key.namespace, now);
        selected_pools.retain(|claim, server| {
            // One that holds sandboxes of this pool stays with it, whatever labels the pool has by now.
            let here = *server == pool.key;
            let claim = self.claims.get(claim).filter(|claim| here || claim.accepts(pool));
            let served_here = claim.filter(|_| here);
            waiting.extend(served_here.map(as_waiting));
            claim.is_some()
        });
        let tried_here = self
            .in_line(&selector_queue(&pool.key.namespace))
            .filter(|claim| self.tried_again_at(claim) == Some(&pool.key));
        waiting.extend(tried_here.map(as_waiting));
        (waiting, selected_pools)
    }

    /// The claims that wait in a line.
    pub(crate) fn in_line<'a>(&'a self, line: &Key) -> impl Iterator<Item = &'a Arc<Claim>> + use<'a> {
        self.waiting_claims
            .line(line)
            .filter_map(|key| self.claims.get(key))
    }

    /// How many sandboxes are being bound to each claim, by UID.
    pub(crate) fn being_bound(&self) -> HashMap<&str, usize> {
        let mut being_bound = HashMap::new();
        for uid in self.expectations.bound_to() {
            *being_bound.entry(uid).or_default() += 1;
        }
        being_bound
    }

    /// A claim as it waits for a pool with these defaults.
    pub(crate) fn waiting(
        &self,
        claim: &Arc<Claim>,
        defaults: &ClaimDefaults,
        being_bound: &HashMap<&str, usize>,
    ) -> Waiting {
        let coming = being_bound.get(claim.uid.as_str()).copied().unwrap_or(0);
        Waiting {
            resolved_spec: claim.resolved_spec(Some(defaults)),
            held: self.held_by(claim).count() + coming,
            busy: self.is_busy(claim),
            refused: self.waiting_claims.refused.contains(&claim.uid),
            rejected_sandboxes: self.rejected_sandboxes.of(claim),
            claim: Arc::clone(claim),
        }
    }

    /// Every claim that waits and is not being served just now. One whose task pauses waits, too, and so does one whose
    /// binding is tried again and again.
    pub(crate) fn waiting_claims(&self) -> impl Iterator<Item = &Arc<Claim>> {
        let keys = self.waiting_claims.lines.values().flatten();
        keys.filter_map(|key| self.claims.get(key))
            .filter(|claim| !self.is_busy(claim) || self.is_tried_again(claim))
    }

    /// A task has the claim whose binding was refused, or could not be made, before, or pauses.
    fn is_tried_again(&self, claim: &Claim) -> bool {
        let refused = self.waiting_claims.refused.contains(&claim.uid);
        self.is_busy(claim) && (refused || self.expectations.is_pausing(&claim.uid))
    }

    /// The pool where such a claim that leaves the choice is tried.
    pub(crate) fn tried_again_at(&self, claim: &Claim) -> Option<&Key> {
        self.assigned_pool(&claim.uid)
            .filter(|_| self.is_tried_again(claim))
    }

    /// A task is binding or ending the claim, or has, and the watch is still to show it.
    pub fn is_busy(&self, claim: &Claim) -> bool {
        self.expectations.is_in_flight(&claim.uid)
            || self.published.get(&claim.uid).is_some_and(|w| w.confirmed)
    }

    /// The sandboxes whose owner is the claim. An owner is of the same namespace, whatever a pod of another one says.
    pub(crate) fn owned_by(&self, claim: &Claim) -> impl Iterator<Item = Arc<Sandbox>> {
        let owned = self.owned.get(&claim.uid).into_iter().flatten();
        owned
            .filter(|key| key.namespace == claim.key.namespace)
            .filter_map(|key| self.pod(key))
    }

    /// The sandboxes that a claim holds and may keep.
    pub fn held_by(&self, claim: &Claim) -> impl Iterator<Item = Arc<Sandbox>> {
        self.owned_by(claim).filter(|pod| claim.keeps(pod))
    }

    /// The pool that was told last that it is to serve the claim with UID `uid`.
    pub fn assigned_pool(&self, uid: &str) -> Option<&Key> {
        self.waiting_claims.assigned_pools.get(uid)
    }

    /// The API server refuses to bind `claim`. That is why it waits, also while there is nothing that could be tried. Answers
    /// the pools that have one more to count as waiting.
    #[must_use]
    pub fn note_rejection(&mut self, claim: &Claim, message: &str) -> Vec<ReconcileRequest> {
        let wait_reason = WaitReason {
            uid: claim.uid.clone(),
            reason: reasons::BINDING_REFUSED,
            message: message.to_string(),
        };
        self.waiting_claims
            .wait_reasons
            .insert(claim.uid.clone(), wait_reason);
        if self.waiting_claims.refused.insert(claim.uid.clone()) {
            self.pools_for(claim)
        } else {
            Vec::new()
        }
    }

    /// The API server does not refuse to bind `claim` any more, as far as is known.
    pub fn end_rejection(&mut self, claim: &Claim) {
        self.waiting_claims.refused.remove(&claim.uid);
    }

    /// Takes over why the claims of a view wait. Answers the claims whose reason is new.
    pub fn record_wait_reasons(
        &mut self,
        snapshot: &PoolSnapshot,
        wait_reasons: Vec<WaitReason>,
    ) -> Vec<ReconcileRequest> {
        if wait_reasons.is_empty() {
            return Vec::new();
        }
        let mut to_reconcile = Vec::new();
        let keys: HashMap<&str, &Key> = snapshot
            .claims
            .iter()
            .map(|w| (w.claim.uid.as_str(), &w.claim.key))
            .collect();
        for wait_reason in wait_reasons {
            let Some(key) = keys.get(wait_reason.uid.as_str()) else {
                continue;
            };
            let claim = self.claims.get(*key);
            let still = claim.is_some_and(|c| c.uid == wait_reason.uid && c.waiting());
            let said = self.waiting_claims.wait_reason(&wait_reason.uid);
            let refused = self.waiting_claims.refused.contains(&wait_reason.uid);
            if still && said.is_none_or(|said| says_more(&wait_reason, said, refused)) {
                to_reconcile.push(ReconcileRequest::Claim((*key).clone()));
                self.waiting_claims
                    .wait_reasons
                    .insert(wait_reason.uid.clone(), wait_reason);
            }
        }
        to_reconcile
    }
}

/// Whether `verdict` is news to a claim that says `said`. One that is `refused`, and finds nothing to try for a moment, would
/// say the one and the other in turns.
fn says_more(wait_reason: &WaitReason, said: &WaitReason, refused: bool) -> bool {
    let nothing_there = [reasons::NONE_AVAILABLE, reasons::EXHAUSTED].contains(&wait_reason.reason);
    let says_so = refused && said.reason == reasons::BINDING_REFUSED;
    wait_reason.reason != said.reason && !(says_so && nothing_there)
}
