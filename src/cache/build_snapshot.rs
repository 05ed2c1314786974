//! Gathers what the planner looks at, from the index, into the snapshot of a pool or a claim.

use crate::api::ClaimDefaults;
use crate::cache::index::Index;
use crate::cache::snapshot::{ClaimSnapshot, PoolSnapshot, SandboxEntry};
use crate::cache::waiting_claim::Waiting;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::retry::{NextWrite, Purpose};
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Index {
    /// The snapshot of a pool; `None` when the pool is gone. `selected_pools` holds the pool that serves each selector
    /// claim of the namespace.
    pub fn pool_snapshot(
        &self,
        key: &Key,
        now: Timestamp,
        seed: u64,
        selected_pools: BTreeMap<Key, Key>,
    ) -> Option<PoolSnapshot> {
        let pool = Arc::clone(self.pools.get(key)?);
        let memory = self.pool_memory(&pool);
        let (claims, selected_pools) = self.claims_of(&pool, now, selected_pools);
        Some(PoolSnapshot {
            now,
            seed,
            sandboxes: self.entries_of(key),
            nodes: self.nodes_of(self.sandboxes_of(key)),
            creating: self.expectations.creations_of(key),
            claims,
            selected_pools,
            revisions: self
                .revisions
                .get(key)
                .into_iter()
                .flat_map(BTreeMap::values)
                .map(Arc::clone)
                .collect(),
            failures: memory
                .map(|memory| memory.warm_up_failures.clone())
                .unwrap_or_default(),
            recent_claims: memory
                .map(|memory| memory.recent_claims.lately(now))
                .unwrap_or_default(),
            demand: memory.and_then(|memory| memory.demand.clone()),
            sizing: None,
            status_write: memory.and_then(|memory| memory.status_write.clone()),
            status_written_at: memory.and_then(|memory| memory.status_written_at),
            revision_request: memory
                .map(|memory| memory.revision_request.clone())
                .unwrap_or_default(),
            disruption_budgets: self.budget_snapshot(&pool),
            creation_proven: memory
                .is_some_and(|memory| memory.accepted_creation.is_creation_proven(pool.generation, now)),
            creation: memory
                .map(|memory| memory.creation_backoff.state(&pool, now))
                .unwrap_or_default(),
            pool,
        })
    }

    /// The pods with the label of a pool, each with the write on it that the watch has not shown.
    pub(crate) fn entries_of(&self, pool: &Key) -> Vec<SandboxEntry> {
        let entry = |sandbox: &Arc<Sandbox>| SandboxEntry {
            sandbox: Arc::clone(sandbox),
            expected: self.expectations.on(&sandbox.uid),
        };
        self.sandboxes_of(pool).map(entry).collect()
    }

    /// The waiting claims that `pool` serves, and for each selector claim that accepts `pool`, the pool that serves it.
    fn claims_of(
        &self,
        pool: &Pool,
        now: Timestamp,
        mut selected_pools: BTreeMap<Key, Key>,
    ) -> (Vec<Waiting>, BTreeMap<Key, Key>) {
        let as_waiting = |claim: &Arc<Claim>| self.waiting(claim, &pool.claim_defaults, now);
        let mut waiting: Vec<_> = self.queued(&pool.key).map(as_waiting).collect();
        selected_pools.retain(|claim, serving_pool| {
            // A claim that holds sandboxes of this pool stays with it, whatever labels the pool has now.
            let here = *serving_pool == pool.key;
            let claim = self.claims.get(claim).filter(|claim| here || claim.accepts(pool));
            let served_here = claim.filter(|_| here);
            waiting.extend(served_here.map(as_waiting));
            claim.is_some()
        });
        (waiting, selected_pools)
    }

    /// The snapshot of a claim; `None` when the claim is gone.
    pub fn claim_snapshot(&self, key: &Key, now: Timestamp) -> Option<ClaimSnapshot> {
        let claim = self.claims.get(key)?;
        let memory = self.memory.claim(&claim.uid);
        let served_by = self.queue_or_pool_of(claim);
        let pool = self.pools.get(&served_by);
        // A claim that waits again is not published with a sandbox that is already being deleted.
        let going = |pod: &Sandbox| claim.waiting() && self.expectations.is_deleting(&pod.uid);
        let sandboxes: Vec<_> = self.owned_by(claim).filter(|pod| !going(pod)).collect();
        let presence = self.pool_presence_of(claim);
        Some(ClaimSnapshot {
            now,
            claim: Arc::clone(claim),
            nodes: self.nodes_of(sandboxes.iter()),
            sandboxes,
            binding: self.expectations.bound_to(&claim.uid) > 0,
            write: memory.and_then(|memory| memory.write.as_deref().cloned()),
            bound_at_once: memory.is_some_and(|memory| memory.bound_at_once),
            availability_rule: pool.map(|pool| pool.spec.availability_rule.clone()),
            invalid_metadata: memory.and_then(|memory| memory.invalid_metadata.clone()),
            reads: memory.map(|memory| memory.reads.clone()).unwrap_or_default(),
            disruption_budgets: self.orphan_budgets(claim, presence),
            pool_presence: presence,
            resolved_spec: claim.resolved_spec(pool.map(|p| &p.claim_defaults)),
            pool: served_by.name,
            wait_reason: self.wait_reason(&claim.uid).cloned(),
        })
    }

    /// A claim that waits for a pool with these defaults.
    pub(crate) fn waiting(&self, claim: &Arc<Claim>, defaults: &ClaimDefaults, now: Timestamp) -> Waiting {
        let memory = self.memory.claim(&claim.uid);
        let rejection = memory.and_then(|memory| memory.rejection.as_ref());
        let (is_written, written_at) = self.next_write(claim, now);
        let rejected_until = rejection.map(|rejection| rejection.until);
        let binding = self.expectations.bound_to(&claim.uid);
        Waiting {
            resolved_spec: claim.resolved_spec(Some(defaults)),
            is_new: memory.is_some_and(|memory| memory.is_new),
            held: self.held_by(claim).count() + binding,
            binding,
            busy: is_written || memory.is_some_and(|memory| memory.invalid_metadata.is_some()),
            retry_at: rejected_until.max(written_at).filter(|at| *at > now),
            is_rejected: rejection.is_some(),
            rejected_sandboxes: self.rejected_sandboxes(claim),
            claim: Arc::clone(claim),
        }
    }

    /// Whether a write on the claim is under way, and when a failed one may be repeated.
    pub(crate) fn next_write(&self, claim: &Claim, now: Timestamp) -> (bool, Option<Timestamp>) {
        let write = self
            .memory
            .claim(&claim.uid)
            .and_then(|memory| memory.write.as_deref());
        // A claim can be bound while a report of why it waits is being written, or younger claims would overtake it.
        let write = write.filter(|write| write.purpose != Purpose::Report);
        match write.map(|write| write.next(write.purpose, &claim.resource_version, now)) {
            None | Some(NextWrite::Write) => (false, None),
            Some(NextWrite::Wait(at)) => (false, Some(at)),
            Some(NextWrite::Await | NextWrite::Read) => (true, None),
        }
    }
}
