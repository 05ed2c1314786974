//! What happens in a world: writes are carried out, claims are followed, time passes.

use crate::world::World;
use jiff::SignedDuration;
use std::sync::Arc;
use warmpool::api::labels;
use warmpool::cache::snapshot::{ClaimSnapshot, PoolPresence};
use warmpool::model::sandbox::{Owner, Sandbox};
use warmpool::planner::{self, Action, Step};

impl World {
    /// Applies one write; one that no longer fits the stored object changes nothing, as in the API server.
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
                pod.resource_version = self.counter.to_string();
                self.follow(&claim.key.name);
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

    /// What the controller of claims does about one.
    pub fn follow(&mut self, claim: &str) {
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

    /// The snapshot of a claim over all pods of the world that it owns.
    pub fn claim_snapshot(&self, name: &str) -> ClaimSnapshot {
        let claim = Arc::new(self.claims[name].clone());
        let owned = |s: &&Sandbox| matches!(&s.owner, Owner::Claim { uid, .. } if *uid == claim.uid);
        let owned = self.sandboxes.values().filter(owned);
        ClaimSnapshot {
            now: self.now,
            sandboxes: owned.map(|s| Arc::new(s.clone())).collect(),
            binding: false,
            pool_presence: PoolPresence::Present,
            pool: self.pool().key.name,
            resolved_spec: claim.resolved_spec(Some(&self.pool().claim_defaults)),
            wait_reason: None,
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
            pod.resource_version = self.counter.to_string();
        }
    }

    /// A second passes, and every warming sandbox for which `ready` says so becomes Ready.
    pub fn pass(&mut self, ready: impl Fn(&Sandbox) -> bool) {
        self.now = self.now.checked_add(SignedDuration::from_secs(1)).unwrap();
        for name in self.sandboxes.keys().cloned().collect::<Vec<_>>() {
            self.counter += 1;
            let mut sandbox = self.sandboxes.get(&name).cloned().unwrap();
            if sandbox.ready_since.is_none() && !sandbox.finished() && !sandbox.terminating && ready(&sandbox)
            {
                self.make_ready(&mut sandbox);
                sandbox.resource_version = self.counter.to_string();
                self.sandboxes.insert(name, sandbox);
            }
        }
    }

    /// The claim goes, and the garbage collector removes its sandbox.
    pub fn delete_claim(&mut self, name: &str) {
        if let Some(claim) = self.claims.remove(name) {
            self.sandboxes
                .retain(|_, s| !matches!(&s.owner, Owner::Claim { uid, .. } if *uid == claim.uid));
        }
    }

    /// Steps until nothing is left to do but to wait for a deadline. Panics when that takes too long.
    pub fn rest(&mut self) {
        self.rest_but(|_| true);
    }

    /// The same, with only the sandboxes that `ready` selects ever becoming ready.
    pub fn rest_but(&mut self, ready: impl Fn(&Sandbox) -> bool) {
        for _ in 0..400 {
            let plan = self.step();
            let soon = self.now.checked_add(SignedDuration::from_secs(60)).unwrap();
            let waits = plan.next.is_none_or(|next| next > soon);
            let quiet = plan.actions.is_empty() && plan.revisions.store.is_none() && waits;
            let before = self.sandboxes.clone();
            self.pass(&ready);
            if quiet && before == self.sandboxes && self.plan().status == plan.status {
                return;
            }
        }
        panic!("no rest: {:#?}", self.plan().actions);
    }
}
