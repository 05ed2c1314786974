//! The draft that all phases work on: the sandboxes, one budget, the actions so far.

use crate::cache::recent_claims::LATELY;
use crate::cache::snapshot::{ExpectedWrite, PoolSnapshot, SandboxEntry, WarmUpFailures};
use crate::cache::waiting_claim::Waiting;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::sandbox_state::SandboxState;
use crate::planner::actions::{Action, PlanPhase, Shortfall, Step, WaitsFor};
use crate::planner::observed_counts::ObservedCounts;
use crate::planner::removal_order;
use crate::planner::revise::{Revisions, rollout_start};
use crate::planner::unavailability_budget::Budget;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A plan in the making.
pub(crate) struct Draft<'a> {
    pub(crate) snapshot: &'a PoolSnapshot,
    pub(crate) revisions: &'a Revisions,
    /// Unclaimed sandboxes that stay unless a phase removes them; in order of removal after [`Draft::order`].
    pub(crate) unclaimed: Vec<UnclaimedSandbox<'a>>,
    is_ordered: bool,
    /// Unclaimed sandboxes that have ended.
    pub(crate) finished: Vec<Arc<Sandbox>>,
    /// Draining sandboxes that a preDelete hook holds, those most worth keeping first.
    pub(crate) draining: Vec<Arc<Sandbox>>,
    /// Draining sandboxes that no preDelete hook holds any more.
    pub(crate) drained: Vec<Arc<Sandbox>>,
    /// Draining sandboxes that are being made warm again.
    pub(crate) returning: usize,
    /// Of `returning`, the sandboxes of the update revision.
    pub(crate) returning_updated: usize,
    /// Unclaimed sandboxes that are being bound or deleted. No replacement is made before the API server has confirmed
    /// that, so that a rejected write leaves no sandbox too many.
    pub(crate) unconfirmed: usize,
    /// Of `unconfirmed`, the sandboxes of the update revision that have yet to become available.
    pub(crate) unconfirmed_unproven: usize,
    /// Sandboxes of claims, without those that terminate.
    pub(crate) claimed: usize,
    /// Of `claimed`, the sandboxes of the update revision that were made since the rollout to it began.
    pub(crate) claimed_updated: usize,
    /// Sandboxes of the pool whose state is not understood, by name. The operator never removes them, so they take up
    /// `maxTotal` for good.
    pub(crate) set_aside: Vec<&'a Sandbox>,
    /// When the rollout to the update revision began; `None` when that is not known any more.
    pub(crate) rollout_start: Option<Timestamp>,
    /// A sandbox of the update revision has become available, and may have been claimed since.
    pub(crate) proven: bool,
    /// Since when each available sandbox and each claimed sandbox is available, with its revision.
    pub(crate) came_up: Vec<(&'a str, Timestamp)>,
    /// Failures in a row to bring up a sandbox, by revision.
    pub(crate) failures: BTreeMap<String, WarmUpFailures>,
    /// Every pod that exists or is being created, terminating pods included: what `maxTotal` bounds.
    pub(crate) existing: usize,
    /// Waiting claims that no available sandbox was left for, in order of service.
    pub(crate) unserved: Vec<&'a Waiting>,
    /// Sandboxes that `unserved` claims need and that creation may serve.
    pub(crate) demand: usize,
    /// Of `demand`, the sandboxes that only the update revision can serve.
    pub(crate) demand_latest: usize,
    /// Bindings in flight, with those that this plan adds.
    pub(crate) being_bound: usize,
    /// The sandboxes as the watch shows them, for the status.
    pub(crate) observed: ObservedCounts,
    /// Creations that the demand or refill requested and `maxTotal` forbade.
    pub(crate) forbidden: usize,
    /// What the phase *scale* found missing.
    pub(crate) shortfall: Shortfall,
    /// Available sandboxes that may still be taken away.
    pub(crate) budget: Budget,
    pub(crate) actions: Vec<Action>,
    pub(crate) next: Option<Timestamp>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(snapshot: &'a PoolSnapshot, revisions: &'a Revisions) -> Self {
        let mut draft = Self {
            snapshot,
            revisions,
            unclaimed: Vec::new(),
            is_ordered: false,
            finished: Vec::new(),
            draining: Vec::new(),
            drained: Vec::new(),
            returning: 0,
            returning_updated: 0,
            unconfirmed: 0,
            unconfirmed_unproven: 0,
            claimed: 0,
            claimed_updated: 0,
            set_aside: Vec::new(),
            rollout_start: rollout_start(snapshot, revisions),
            proven: false,
            came_up: Vec::new(),
            failures: BTreeMap::new(),
            existing: snapshot.creating.len(),
            unserved: Vec::new(),
            demand: 0,
            being_bound: 0,
            demand_latest: 0,
            observed: ObservedCounts::default(),
            forbidden: 0,
            shortfall: Shortfall::default(),
            budget: Budget::new(0, 0),
            actions: Vec::new(),
            next: None,
        };
        for entry in &snapshot.sandboxes {
            draft.sort_in(entry);
        }
        let forgotten = snapshot
            .recent_claims
            .first()
            .and_then(|at| at.checked_add(LATELY).ok());
        if let Some(at) = forgotten {
            draft.wake(at);
        }
        draft.finished.sort_by(|a, b| a.key.cmp(&b.key));
        draft.set_aside.sort_by(|a, b| a.key.cmp(&b.key));
        draft
            .draining
            .sort_by(|a, b| (a.ready_since.is_none(), &a.key).cmp(&(b.ready_since.is_none(), &b.key)));
        let mut unclaimed = draft.unclaimed.iter();
        draft.proven = draft.claimed_updated > 0 || unclaimed.any(|u| u.updated && u.available);
        // A sandbox with a version conflict may be going: the answer to a deletion was lost, and the next try met the
        // conflict.
        let available = draft
            .unclaimed
            .iter()
            .filter(|u| u.available && !u.conflicted)
            .count();
        let min_available = snapshot
            .pool
            .spec
            .min_available_beside(draft.claimed + draft.set_aside.len());
        draft.budget = Budget::new(available, min_available);
        draft
    }

    fn sort_in(&mut self, entry: &'a SandboxEntry) {
        let (pool, sandbox) = (&self.snapshot.pool, &entry.sandbox);
        let state = sandbox.state_at(&pool.uid, &pool.spec.availability_rule, self.snapshot.now);
        self.observed.count(entry, state, &self.revisions.update.hash);
        self.existing += usize::from(state != SandboxState::Foreign);
        if let Owner::Claim { .. } = sandbox.owner {
            self.sort_in_claimed(sandbox, state);
            return;
        }
        use ExpectedWrite::{Bind, Delete, Deleted, Drain, Restore};
        use SandboxState::{Available, Draining, Finished, SetAside, Warming};
        match (state, entry.expected) {
            (_, Some(Deleted)) => {}
            (Warming | Available | Finished, Some(Bind | Delete | Drain)) => self.expect_to_leave(sandbox),
            (Warming | Available, _) => {
                self.sort_in_warm(entry, state == Available);
            }
            (Finished, None) => self.finished.push(Arc::clone(sandbox)),
            (Draining, None) => self.draining.push(Arc::clone(sandbox)),
            (Draining, Some(Restore)) => self.expect_to_return(sandbox),
            (SetAside, _) => self.set_aside.push(sandbox),
            _ => {}
        }
    }

    fn sort_in_claimed(&mut self, sandbox: &'a Sandbox, state: SandboxState) {
        let new = self.is_of_rollout(sandbox);
        let up = sandbox.ready_since.filter(|_| new);
        self.came_up.extend(up.map(|at| (sandbox.revision.as_str(), at)));
        if state == SandboxState::Claimed {
            self.claimed += 1;
            self.claimed_updated += usize::from(new && sandbox.revision == self.revisions.update.hash);
        }
    }

    /// A claimed sandbox was made since the rollout began. What was claimed before says nothing of the rollout,
    /// whenever its tenant makes it Ready again.
    pub(crate) fn is_of_rollout(&self, sandbox: &Sandbox) -> bool {
        let since = |start: Timestamp| sandbox.created.as_second() >= start.as_second();
        self.rollout_start.is_none_or(since)
    }

    fn sort_in_warm(&mut self, entry: &'a SandboxEntry, available: bool) {
        let sandbox = &entry.sandbox;
        let available_at = sandbox.available_at(&self.snapshot.pool.spec.availability_rule);
        if let Some(at) = available_at {
            self.wake(at);
        }
        let since = available_at.filter(|_| available);
        self.came_up
            .extend(since.map(|at| (sandbox.revision.as_str(), at)));
        self.unclaimed.push(UnclaimedSandbox {
            available,
            updated: sandbox.revision == self.revisions.update.hash,
            leaving: None,
            overdue: false,
            conflicted: entry.expected == Some(ExpectedWrite::Conflicted),
            node: self.snapshot.nodes.of(sandbox),
            sandbox,
        });
    }

    /// Sorts the unclaimed sandboxes into the order of removal, unless they are. That takes as long as all the rest of
    /// a plan, and most plans neither remove a sandbox nor give one to a claim.
    pub(crate) fn order(&mut self) {
        if !std::mem::replace(&mut self.is_ordered, true) {
            removal_order::by_removal(&mut self.unclaimed, &self.snapshot.nodes);
        }
    }

    /// A draining sandbox is being made warm again.
    pub(crate) fn expect_to_return(&mut self, sandbox: &Sandbox) {
        self.returning += 1;
        self.returning_updated += usize::from(sandbox.revision == self.revisions.update.hash);
    }

    /// An unclaimed sandbox is being bound or deleted.
    pub(crate) fn expect_to_leave(&mut self, sandbox: &Sandbox) {
        let unproven = sandbox.revision == self.revisions.update.hash
            && !sandbox.is_available(&self.snapshot.pool.spec.availability_rule, self.snapshot.now);
        self.unconfirmed += 1;
        self.unconfirmed_unproven += usize::from(unproven);
    }

    /// Notes a moment in the future at which time alone changes the plan.
    pub(crate) fn wake(&mut self, at: Timestamp) {
        if at > self.snapshot.now {
            self.next = Some(self.next.map_or(at, |next| next.min(at)));
        }
    }

    pub(crate) fn act(&mut self, phase: PlanPhase, reason: &'static str, step: Step) {
        self.act_once(phase, reason, step, None);
    }

    /// As [`Draft::act`], once what the write waits for has happened.
    pub(crate) fn act_once(
        &mut self,
        phase: PlanPhase,
        reason: &'static str,
        step: Step,
        waits_for: Option<WaitsFor>,
    ) {
        self.actions.push(Action {
            phase,
            step,
            reason,
            waits_for,
        });
    }

    /// The rollout is paused, and what is missing is made from the old revision.
    pub(crate) fn rollout_is_paused(&self) -> bool {
        self.snapshot.pool.spec.paused && self.revisions.previous.is_some()
    }

    /// Creations in flight of the update revision.
    pub(crate) fn creating_updated(&self) -> usize {
        self.snapshot
            .creating
            .iter()
            .filter(|c| c.revision == self.revisions.update.hash)
            .count()
    }
}
