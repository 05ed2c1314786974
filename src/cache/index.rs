//! The state of the cluster, indexed as the planner needs it. An event returns what to reconcile.

use crate::cache::disruption_budgets::DisruptionBudgets;
use crate::cache::expectations::Expectations;
use crate::cache::grouped::remove_from;
use crate::cache::memory::Memory;
use crate::cache::nodes::Nodes;
use crate::cache::pod_templates::Templates;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::reports_over_limit::ReportsOverLimit;
use crate::cache::request_limits::RequestQueue;
use crate::cache::stale_answers::{WatchProgress, newer};
use crate::cache::waiting_claims::WaitingClaims;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::revision::Revision;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::shard_selector::ShardSelector;
use crate::model::stored::{self, StoredClaim, StoredPod, StoredPodTemplate, StoredPool, StoredRevision};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Everything that this process knows of the cluster. A clone is a copy of the operator's whole state.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// The pools that this operator serves.
    pub shard: ShardSelector,
    pub(crate) pools: HashMap<Key, Arc<Pool>>,
    pub(crate) claims: HashMap<Key, Arc<Claim>>,
    /// Which claims wait, by queue.
    pub(crate) waiting_claims: WaitingClaims,
    /// Pods by pool, then by name.
    pub(crate) sandboxes: HashMap<Key, BTreeMap<SmolStr, Arc<Sandbox>>>,
    /// The pool under which a pod is kept.
    pub(crate) pool_of: HashMap<Key, Key>,
    /// Keys of pods by the UID of the claim that owns them.
    pub(crate) owned: HashMap<SmolStr, BTreeSet<Key>>,
    /// Revisions by pool, then by name.
    pub(crate) revisions: HashMap<Key, BTreeMap<SmolStr, Arc<Revision>>>,
    /// PodTemplates and the pools that use them.
    pub(crate) templates: Templates,
    /// PodDisruptionBudgets of pools and users.
    pub(crate) disruption_budgets: DisruptionBudgets,
    /// Nodes and the pools with pods there.
    pub(crate) nodes: Nodes,
    /// How far the watches have got.
    pub(crate) watch_progress: WatchProgress,
    /// The claims were listed once, so a claim that no event has shown is new.
    claims_listed: bool,
    /// Sequence number of the last claim that arrived.
    sequence: u64,
    /// Writes that the watch has not shown.
    pub expectations: Expectations,
    /// Requests that wait to be sent.
    pub requests: RequestQueue,
    /// Claims whose report waits for others to be sent.
    pub(crate) reports_over_limit: ReportsOverLimit,
    /// What is remembered of each pool and claim.
    pub(crate) memory: Memory,
}

impl Index {
    /// A pool was created or changed.
    pub fn apply_pool(&mut self, stored: &StoredPool) -> Vec<ReconcileRequest> {
        let key = stored::key(&stored.metadata);
        let uid = stored::uid(&stored.metadata);
        if self.pools.get(&key).is_some_and(|known| known.uid != uid) {
            self.remove_pool(&key);
        }
        let pool = Arc::new(self.templates.attach(Pool::read(stored)));
        let before = self.pools.insert(key.clone(), Arc::clone(&pool));
        if before
            .as_ref()
            .is_some_and(|before| before.generation != pool.generation)
        {
            self.cancel_creations(&pool);
        }
        let changing_hands = self.claims_changing_hands(before.as_ref(), Some(&pool));
        let known = before.is_some_and(|b| {
            (&b.error, &b.labels, &b.claim_defaults, b.terminating)
                == (&pool.error, &pool.labels, &pool.claim_defaults, pool.terminating)
        });
        let mut to_reconcile = vec![ReconcileRequest::Pool(key.clone())];
        if !known {
            if self.templates.knows_that_of(&pool) {
                self.log_error_of(&pool);
            }
            to_reconcile.extend(self.waiting_on(&key));
        }
        to_reconcile.extend(changing_hands);
        to_reconcile
    }

    /// Whether the pool, as an event of the watch shows it, is known at this version or a later one: an answer to a write
    /// showed it before.
    pub(crate) fn knows_pool(&self, stored: &StoredPool) -> bool {
        let known = self.pools.get(&stored::key(&stored.metadata));
        known.is_some_and(|known| is_known(&known.uid, &known.resource_version, &stored.metadata))
    }

    /// Whether the claim, as an event of the watch shows it, is known at this version or a later one.
    pub fn knows_claim(&self, stored: &StoredClaim) -> bool {
        let known = self.claims.get(&stored::key(&stored.metadata));
        known.is_some_and(|known| is_known(&known.uid, &known.resource_version, &stored.metadata))
    }

    /// A pool is gone.
    pub fn delete_pool(&mut self, stored: &StoredPool) -> Vec<ReconcileRequest> {
        let key = stored::key(&stored.metadata);
        let changing_hands = self.claims_changing_hands(self.pools.get(&key), None);
        self.remove_pool(&key);
        // The last reconcile finds nothing, and so drops the pool's timer.
        let mut to_reconcile = vec![ReconcileRequest::Pool(key.clone())];
        to_reconcile.extend(self.waiting_on(&key));
        to_reconcile.extend(changing_hands);
        to_reconcile
    }

    fn remove_pool(&mut self, key: &Key) {
        self.templates.detach(key);
        if let Some(pool) = self.pools.remove(key) {
            self.memory.forget(&pool.uid);
            self.cancel_creations(&pool);
        }
    }

    /// A claim was created or changed. `live`: an event of the watch showed it, and not a list, which does not show when the
    /// claim arrived.
    pub fn apply_claim(&mut self, stored: &StoredClaim, live: bool, now: Timestamp) -> Vec<ReconcileRequest> {
        let key = stored::key(&stored.metadata);
        let uid = stored::uid(&stored.metadata);
        let mut to_reconcile = match self.claims.get(&key) {
            Some(known) if known.uid != uid => self.remove_claim(&key),
            _ => Vec::new(),
        };
        let seen = live.then_some(now);
        let is_new = !self.claims.contains_key(&key) && (live || self.claims_listed);
        let claim = if let Some(known) = self.claims.get(&key) {
            Claim::read(stored, known.sequence, known.arrived).seen_after(known, seen)
        } else {
            self.sequence += 1;
            let arrived = seen.unwrap_or_else(|| stored::created(&stored.metadata));
            Claim::read(stored, self.sequence, arrived)
        };
        let claim = Arc::new(claim);
        to_reconcile.extend(self.dequeue(&key));
        if !claim.waiting() {
            self.cancel_bindings(&claim.uid);
        }
        if claim.waiting() {
            if is_new {
                self.memory.claim_mut(&claim.uid).is_new = true;
            }
            self.waiting_claims.add(&claim);
            to_reconcile.extend(self.pools_for(&claim));
        } else {
            self.memory.stop_waiting(&claim.uid);
        }
        to_reconcile.push(ReconcileRequest::Claim(key.clone()));
        self.claims.insert(key, claim);
        to_reconcile
    }

    /// A claim is gone. The garbage collector deletes its pods.
    pub fn delete_claim(&mut self, stored: &StoredClaim) -> Vec<ReconcileRequest> {
        self.remove_claim(&stored::key(&stored.metadata))
    }

    fn remove_claim(&mut self, key: &Key) -> Vec<ReconcileRequest> {
        let mut to_reconcile = self.dequeue(key);
        // As for a pool: the timer of a claim may be years away.
        to_reconcile.push(ReconcileRequest::Claim(key.clone()));
        if let Some(claim) = self.claims.remove(key) {
            self.memory.forget(&claim.uid);
            self.cancel_bindings(&claim.uid);
            self.reports_over_limit.remove(&claim);
        }
        to_reconcile
    }

    /// Takes a claim out of its queue. Returns the pools that it waited for.
    fn dequeue(&mut self, key: &Key) -> Vec<ReconcileRequest> {
        match self.claims.get(key).cloned() {
            Some(claim) if self.waiting_claims.remove(&claim) => self.pools_for(&claim),
            _ => Vec::new(),
        }
    }

    /// A pod was created or changed.
    pub fn apply_pod(&mut self, stored: &StoredPod) -> Vec<ReconcileRequest> {
        self.watch_progress.pods.up_to(&stored.metadata);
        self.take_over_pod(stored)
    }

    /// A list showed the pod.
    pub(crate) fn apply_sandbox(&mut self, sandbox: Sandbox) {
        self.watch_progress.pods.up_to_version(&sandbox.resource_version);
        self.take_over_sandbox(sandbox);
    }

    /// Stores a pod that a watch or an answer showed.
    pub(crate) fn take_over_pod(&mut self, stored: &StoredPod) -> Vec<ReconcileRequest> {
        match Sandbox::read(stored) {
            Some(sandbox) => self.take_over_sandbox(sandbox),
            None => self.remove_pod(&stored::key(&stored.metadata)),
        }
    }

    fn take_over_sandbox(&mut self, mut sandbox: Sandbox) -> Vec<ReconcileRequest> {
        let key = sandbox.key.clone();
        let before = self.pod(&key);
        if before
            .as_ref()
            .is_some_and(|b| b.uid == sandbox.uid && newer(&b.resource_version, &sandbox.resource_version))
        {
            return Vec::new();
        }
        let bound = self.expectations.claim_of(&sandbox.uid).map(of_binding);
        let confirmed = self.expectations.seen(&sandbox);
        let pool = Key::new(key.namespace.clone(), sandbox.pool.clone());
        let same = before.as_ref().is_some_and(|before| sandbox.is_as(before));
        let mut to_reconcile = Vec::new();
        if !same {
            to_reconcile = self.remove_pod(&key);
        }
        if !same || confirmed {
            to_reconcile.push(ReconcileRequest::Pool(pool.clone()));
            to_reconcile.extend(bound);
        }
        self.share_pool_uid(&pool, &mut sandbox);
        let sandbox = Arc::new(sandbox);
        if let Owner::Claim { name, uid } = &sandbox.owner {
            self.owned.entry(uid.clone()).or_default().insert(key.clone());
            if !same || confirmed {
                to_reconcile.push(ReconcileRequest::Claim(Key::new(
                    key.namespace.clone(),
                    name.clone(),
                )));
            }
        }
        if !same {
            self.nodes.add_pod(&pool, &sandbox);
        }
        self.pool_of.insert(key.clone(), pool.clone());
        self.sandboxes.entry(pool).or_default().insert(key.name, sandbox);
        to_reconcile
    }

    /// Has all sandboxes of a pool share one copy of its UID, which each would allocate and each plan would compare.
    fn share_pool_uid(&self, pool: &Key, sandbox: &mut Sandbox) {
        if let (Owner::Pool { uid }, Some(pool)) = (&mut sandbox.owner, self.pools.get(pool))
            && *uid == pool.uid
        {
            uid.clone_from(&pool.uid);
        }
    }

    /// A pod is gone.
    pub fn delete_pod(&mut self, stored: &StoredPod) -> Vec<ReconcileRequest> {
        self.watch_progress.pods.up_to(&stored.metadata);
        let key = stored::key(&stored.metadata);
        let uid = stored::uid(&stored.metadata);
        let bound = self.expectations.claim_of(&uid);
        let mut to_reconcile: Vec<_> = bound.map(of_binding).into_iter().collect();
        self.expectations.gone(&key, &uid);
        to_reconcile.extend(self.remove_pod(&key));
        to_reconcile
    }

    /// A ControllerRevision was created or changed.
    pub fn apply_revision(&mut self, stored: &StoredRevision) -> Vec<ReconcileRequest> {
        self.watch_progress.revisions.up_to(&stored.metadata);
        self.take_over_revision(stored)
    }

    /// Stores a revision that a watch or an answer showed.
    pub(crate) fn take_over_revision(&mut self, stored: &StoredRevision) -> Vec<ReconcileRequest> {
        let Some(revision) = Revision::read(stored) else {
            return Vec::new();
        };
        let pool = Key::new(revision.key.namespace.clone(), revision.pool.clone());
        let of_pool = self.revisions.entry(pool.clone()).or_default();
        let known = of_pool.get(&revision.key.name);
        // The number only grows: an event with a lower one is older than the operator's last write.
        if known.is_some_and(|k| k.uid == revision.uid && k.number > revision.number) {
            return Vec::new();
        }
        of_pool.insert(revision.key.name.clone(), Arc::new(revision));
        vec![ReconcileRequest::Pool(pool)]
    }

    /// A ControllerRevision is gone.
    pub fn delete_revision(&mut self, stored: &StoredRevision) -> Vec<ReconcileRequest> {
        self.watch_progress.revisions.up_to(&stored.metadata);
        let Some(revision) = Revision::read(stored) else {
            return Vec::new();
        };
        let pool = Key::new(revision.key.namespace.clone(), revision.pool.clone());
        remove_from(&mut self.revisions, &pool, |of_pool| {
            of_pool.remove(&revision.key.name).is_some()
        });
        vec![ReconcileRequest::Pool(pool)]
    }

    /// A PodTemplate was created or changed.
    pub fn apply_template(&mut self, stored: &StoredPodTemplate) -> Vec<ReconcileRequest> {
        let content = stored.template.to_string();
        self.put_template(&stored::key(&stored.metadata), Some(content.into()))
    }

    /// A PodTemplate is gone.
    pub fn delete_template(&mut self, stored: &StoredPodTemplate) -> Vec<ReconcileRequest> {
        self.put_template(&stored::key(&stored.metadata), None)
    }

    /// After a list: PodTemplates missing from it are gone.
    pub fn retain_templates(&mut self, listed: &HashSet<Key>) {
        let gone: Vec<_> = self
            .templates
            .stored
            .keys()
            .filter(|key| !listed.contains(key))
            .cloned()
            .collect();
        for key in gone {
            self.put_template(&key, None);
        }
        if !std::mem::replace(&mut self.templates.listed, true) {
            let missing = |pool: &&Arc<Pool>| {
                pool.template_ref
                    .as_ref()
                    .is_some_and(|name| !listed.contains(name))
            };
            self.pools
                .values()
                .filter(missing)
                .for_each(|pool| self.log_error_of(pool));
        }
    }

    fn put_template(&mut self, key: &Key, content: Option<Box<str>>) -> Vec<ReconcileRequest> {
        let Some((users, found)) = self.templates.put(key, content) else {
            return Vec::new();
        };
        for user in &users {
            if let Some(pool) = self.pools.get_mut(user) {
                *pool = Arc::new(Pool::clone(pool).with_template(found.clone()));
                let pool = Arc::clone(pool);
                self.log_error_of(&pool);
            }
        }
        users.into_iter().map(ReconcileRequest::Pool).collect()
    }

    /// After a list: pools missing from it are gone.
    pub fn retain_pools(&mut self, listed: &HashSet<Key>) {
        for key in absent(self.pools.keys(), listed) {
            self.remove_pool(&key);
        }
    }

    /// After a list: claims missing from it are gone.
    pub fn retain_claims(&mut self, listed: &HashSet<Key>) {
        self.claims_listed = true;
        for key in absent(self.claims.keys(), listed) {
            self.remove_claim(&key);
        }
    }

    /// After a list: pods missing from it are gone.
    pub fn retain_pods(&mut self, listed: &HashSet<Key>) {
        self.watch_progress.pods.by_list();
        for key in absent(self.pool_of.keys(), listed) {
            if let Some(sandbox) = self.pod(&key) {
                self.expectations.gone(&key, &sandbox.uid);
            }
            self.remove_pod(&key);
        }
    }

    /// After a list: revisions missing from it are gone.
    pub fn retain_revisions(&mut self, listed: &HashSet<Key>) {
        self.watch_progress.revisions.by_list();
        self.revisions
            .values_mut()
            .for_each(|of_pool| of_pool.retain(|_, r| listed.contains(&r.key)));
        self.revisions.retain(|_, of_pool| !of_pool.is_empty());
    }

    pub(crate) fn remove_pod(&mut self, key: &Key) -> Vec<ReconcileRequest> {
        let Some(pool) = self.pool_of.remove(key) else {
            return Vec::new();
        };
        let sandbox = self
            .sandboxes
            .get_mut(&pool)
            .and_then(|of_pool| of_pool.remove(&key.name));
        remove_from(&mut self.sandboxes, &pool, |_| true);
        if let Some(sandbox) = &sandbox {
            self.nodes.remove_pod(&pool, sandbox);
        }
        let mut to_reconcile = vec![ReconcileRequest::Pool(pool)];
        if let Some(Owner::Claim { name, uid }) = sandbox.map(|s| s.owner.clone()) {
            remove_from(&mut self.owned, &uid, |keys| keys.remove(key));
            to_reconcile.push(ReconcileRequest::Claim(Key::new(key.namespace.clone(), name)));
        }
        to_reconcile
    }
}

/// Whether the object with UID `uid`, known at resource version `version`, is as new as `metadata` shows it.
fn is_known(uid: &str, version: &str, metadata: &ObjectMeta) -> bool {
    let shown = stored::resource_version(metadata);
    uid == stored::uid(metadata) && (version == shown || newer(version, &shown))
}

/// Whether `metadata` shows the object with UID `uid`, known at resource version `version`, at a later version.
pub(crate) fn is_news(uid: &str, version: &str, metadata: &ObjectMeta) -> bool {
    uid == stored::uid(metadata) && newer(&stored::resource_version(metadata), version)
}

/// Reconciles the claim of a binding that is over: while a binding is in flight the claim's plan writes nothing.
pub(crate) fn of_binding(claim: &Arc<Claim>) -> ReconcileRequest {
    ReconcileRequest::Claim(claim.key.clone())
}

/// The keys of `known` that are missing from a list.
fn absent<'a>(known: impl Iterator<Item = &'a Key>, listed: &HashSet<Key>) -> Vec<Key> {
    known.filter(|key| !listed.contains(key)).cloned().collect()
}
