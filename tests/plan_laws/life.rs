//! Applies writes to a world, reconciles its claims and lets time pass.

use crate::world::World;
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::sync::Arc;
use warmpool::api::labels;
use warmpool::cache::snapshot::{ClaimSnapshot, PoolPresence};
use warmpool::model::sandbox::{Owner, Sandbox};
use warmpool::planner::{self, Action, Step};

impl World {
    /// Applies one write. As in the API server, a write that does not fit the stored object changes nothing.
    pub fn apply(&mut self, action: &Action) {
        match &action.step {
            Step::CreatePod { name, revision } => {
                let sandbox = self.warming(name, revision);
                self.sandboxes.insert(name.clone(), sandbox);
            }
            Step::DeletePod { sandbox } => {
                let stored = self.sandboxes.get(&sandbox.key.name);
                if stored.is_some_and(|s| s.resource_version == sandbox.resource_version) {
                    self.sandboxes.remove(&sandbox.key.name);
                }
            }
            Step::DrainPod { sandbox } => self.relabel(sandbox, labels::WARM, labels::DRAINING),
            Step::RestorePod { sandbox } => self.relabel(sandbox, labels::DRAINING, labels::WARM),
            Step::BindClaim { claim, sandbox } => {
                self.counter += 1;
                let claimable = |s: &&mut Sandbox| {
                    s.uid == sandbox.uid
                        && s.state == labels::WARM
                        && s.ready_since.is_some()
                        && !s.terminating
                };
                let Some(pod) = self.sandboxes.get_mut(&sandbox.key.name).filter(claimable) else {
                    return;
                };
                self.recent_claims.push(self.now);
                pod.state = labels::CLAIMED.into();
                pod.owner = Owner::Claim {
                    name: claim.key.name.clone(),
                    uid: claim.uid.clone(),
                };
                if claim.was_bound() {
                    pod.chosen_on = claim.resource_version.clone();
                }
                pod.resource_version = self.counter.to_string().into();
                self.reconcile_claim(&claim.key.name);
            }
            Step::FailClaim { claim, message } => {
                let snapshot = self.claim_snapshot(&claim.key.name);
                let status = planner::claim::failure(
                    &snapshot.claim,
                    &snapshot.pool,
                    &snapshot.resolved_spec,
                    action.reason,
                    message,
                    self.now,
                );
                if let Some(stored) = self
                    .claims
                    .get_mut(&claim.key.name)
                    .filter(|c| c.uid == claim.uid)
                {
                    stored.status = status;
                }
            }
        }
    }

    /// Reconciles a claim as the claim controller does.
    pub fn reconcile_claim(&mut self, claim: &str) {
        if !self.claims.contains_key(claim) {
            return;
        }
        let plan = planner::claim::plan(&self.claim_snapshot(claim));
        for sandbox in &plan.release {
            self.sandboxes.remove(&sandbox.key.name);
        }
        if plan.delete {
            self.delete_claim(claim);
        } else if let (Some(status), Some(stored)) = (plan.status, self.claims.get_mut(claim)) {
            stored.status = *status;
        }
    }

    /// The snapshot of a claim with every pod that the claim owns.
    pub fn claim_snapshot(&self, name: &str) -> ClaimSnapshot {
        let claim = Arc::new(self.claims[name].clone());
        let is_owned = |s: &&Sandbox| matches!(&s.owner, Owner::Claim { uid, .. } if *uid == claim.uid);
        let owned = self.sandboxes.values().filter(is_owned);
        ClaimSnapshot {
            now: self.now,
            sandboxes: owned.map(|s| Arc::new(s.clone())).collect(),
            nodes: self.nodes.clone(),
            binding: false,
            write: None,
            bound_at_once: false,
            availability_rule: Some(self.pool().spec.availability_rule),
            invalid_metadata: None,
            reads: BTreeMap::new(),
            pool_presence: PoolPresence::Present,
            pool: self.pool().key.name,
            resolved_spec: claim.resolved_spec(Some(&self.pool().claim_defaults)),
            wait_reason: None,
            disruption_budgets: self.budgets.clone(),
            claim,
        }
    }

    fn relabel(&mut self, sandbox: &Sandbox, from: &str, to: &str) {
        self.counter += 1;
        if let Some(pod) = self
            .sandboxes
            .get_mut(&sandbox.key.name)
            .filter(|p| p.state == from)
        {
            pod.state = to.into();
            pod.resource_version = self.counter.to_string().into();
        }
    }

    /// Lets a second pass. Warming sandboxes that `ready` selects become Ready.
    pub fn pass_second(&mut self, ready: impl Fn(&Sandbox) -> bool) {
        self.now = self.now.checked_add(SignedDuration::from_secs(1)).unwrap();
        for name in self.sandboxes.keys().cloned().collect::<Vec<_>>() {
            self.counter += 1;
            let mut sandbox = self.sandboxes.get(&name).cloned().unwrap();
            let comes_up = !sandbox.finished() && !sandbox.terminating && self.has_place(&sandbox);
            if sandbox.ready_since.is_none() && comes_up && ready(&sandbox) {
                self.make_ready(&mut sandbox);
                sandbox.resource_version = self.counter.to_string().into();
                self.sandboxes.insert(name, sandbox);
            }
        }
    }

    /// Deletes a claim. The garbage collector deletes its sandboxes.
    pub fn delete_claim(&mut self, name: &str) {
        if let Some(claim) = self.claims.remove(name) {
            self.sandboxes
                .retain(|_, s| !matches!(&s.owner, Owner::Claim { uid, .. } if *uid == claim.uid));
        }
    }

    /// Steps until nothing changes and no deadline is due within a minute. Panics after 400 steps.
    pub fn converge(&mut self) {
        self.converge_where(|_| true);
    }

    /// Like [`Self::converge`], but only sandboxes that `ready` selects become Ready.
    pub fn converge_where(&mut self, ready: impl Fn(&Sandbox) -> bool) {
        for _ in 0..400 {
            let plan = self.step();
            let soon = self.now.checked_add(SignedDuration::from_secs(60)).unwrap();
            let nothing_due = plan.next.is_none_or(|next| next > soon);
            let quiet = plan.actions.is_empty() && plan.revisions.store.is_none() && nothing_due;
            let before = self.sandboxes.clone();
            self.pass_second(&ready);
            if quiet && before == self.sandboxes && self.plan().status == plan.status {
                return;
            }
        }
        panic!("the world does not converge: {:#?}", self.plan().actions);
    }
}
