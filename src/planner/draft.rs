//! The draft that the phases fold over: the pool's sandboxes sorted into sets, one budget, the actions so far.

use crate::api::{conditions, labels};
use crate::cache::recent_claims::LATELY;
use crate::cache::snapshot::{ExpectedWrite, PoolSnapshot, Waiting, WarmUpFailures};
use crate::model::pool_spec::RolloutBudget;
use crate::model::revision::letter;
use crate::model::sandbox::{Owner, Sandbox};
use crate::planner::budget::Budget;
use crate::planner::removal_order;
use crate::planner::revise::Revisions;
use crate::planner::scale::Shortfall;
use crate::planner::{Action, Phase, Step, warm_up};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// An unclaimed sandbox that stays, unless a phase takes it.
#[derive(Clone)]
pub(crate) struct UnclaimedSandbox {
    pub(crate) sandbox: Arc<Sandbox>,
    /// A claim could take it now, as the API defines `available`.
    pub(crate) available: bool,
    /// It is of the update revision.
    pub(crate) updated: bool,
    /// It had its time to become available.
    pub(crate) overdue: bool,
    /// The last own write on it was refused; it waits for the watch to show why.
    pub(crate) refused: bool,
}

impl UnclaimedSandbox {
    /// A claim may take it now. One that somebody wants replaced is kept from claims.
    pub(crate) fn may_be_claimed(&self) -> bool {
        self.available && !self.refused && !self.sandbox.evict && self.sandbox.ready_index.is_some()
    }
}

/// What bounds the removal of available sandboxes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// `replicas - maxUnavailable` stay available.
    Budget,
    /// The user asked for all at once, or `maxTotal` leaves no choice.
    None,
}

/// A plan in the making.
pub(crate) struct Draft<'a> {
    pub(crate) snapshot: &'a PoolSnapshot,
    pub(crate) revisions: &'a Revisions,
    /// Unclaimed sandboxes that stay, in order of removal.
    pub(crate) unclaimed: Vec<UnclaimedSandbox>,
    /// Unclaimed sandboxes that have ended.
    pub(crate) finished: Vec<Arc<Sandbox>>,
    /// Draining sandboxes, those most worth keeping first.
    pub(crate) draining: Vec<Arc<Sandbox>>,
    /// Draining sandboxes that are being made warm again.
    pub(crate) returning: usize,
    /// Of those, the ones of the update revision.
    pub(crate) returning_updated: usize,
    /// Unclaimed sandboxes on their way out: being bound or deleted, not confirmed yet. No replacement is
    /// made before the API server has confirmed, so that a refused write leaves no sandbox too many.
    pub(crate) leaving: usize,
    /// Of those, the ones of the update revision that have yet to become available.
    pub(crate) leaving_unproven: usize,
    /// Sandboxes of claims.
    pub(crate) claimed: usize,
    /// Sandboxes of the pool whose state is not understood. Nobody removes them, so they take up `maxTotal` for good.
    pub(crate) set_aside: usize,
    /// Of those, the ones of the update revision that were made since the rollout to it began.
    pub(crate) taken: usize,
    /// When the rollout to the update revision began; `None` when nobody knows any more.
    pub(crate) rollout_start: Option<Timestamp>,
    /// A sandbox of the update revision has become available, and may have been claimed since.
    pub(crate) proven: bool,
    /// Since when each available sandbox and each claimed one is available, with its revision.
    pub(crate) came_up: Vec<(&'a str, Timestamp)>,
    /// Failures in a row to bring up a sandbox, by revision.
    pub(crate) failures: BTreeMap<String, WarmUpFailures>,
    /// Every pod that exists or is being created, terminating ones included: what `maxTotal` bounds.
    pub(crate) existing: usize,
    /// Waiting claims that no available sandbox was left for, in order of service.
    pub(crate) unserved: Vec<Waiting>,
    /// Sandboxes that those need and that creation may serve.
    pub(crate) demand: usize,
    /// Of those, the ones that only the update revision can serve.
    pub(crate) demand_latest: usize,
    /// Creations that the demand or refill asked for and `maxTotal` forbade.
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
            finished: Vec::new(),
            draining: Vec::new(),
            returning: 0,
            returning_updated: 0,
            leaving: 0,
            leaving_unproven: 0,
            claimed: 0,
            set_aside: 0,
            taken: 0,
            rollout_start: rollout_start(snapshot, revisions),
            proven: false,
            came_up: Vec::new(),
            failures: BTreeMap::new(),
            existing: snapshot.creating.len(),
            unserved: Vec::new(),
            demand: 0,
            demand_latest: 0,
            forbidden: 0,
            shortfall: Shortfall::default(),
            budget: Budget::new(0, 0),
            actions: Vec::new(),
            next: None,
        };
        for entry in &snapshot.sandboxes {
            let sandbox = &entry.sandbox;
            match &sandbox.owner {
                Owner::Claim { .. } => {
                    draft.existing += 1;
                    // What was claimed before says nothing of this rollout, whenever its tenant makes it Ready again.
                    let since = |start: Timestamp| sandbox.created.as_second() >= start.as_second();
                    let new = draft.rollout_start.is_none_or(since);
                    let up = sandbox.ready_since.filter(|_| new);
                    draft.came_up.extend(up.map(|at| (sandbox.revision.as_str(), at)));
                    if !sandbox.terminating {
                        draft.claimed += 1;
                        draft.taken += usize::from(new && sandbox.revision == revisions.update.hash);
                    }
                }
                Owner::Pool { uid } if *uid == snapshot.pool.uid => {
                    draft.existing += 1;
                    draft.sort_in(sandbox, entry.expected);
                }
                Owner::Pool { .. } | Owner::Other => {}
            }
        }
        let forgotten = snapshot
            .recent_claims
            .first()
            .and_then(|at| at.checked_add(LATELY).ok());
        if let Some(at) = forgotten {
            draft.wake(at);
        }
        removal_order::by_removal(&mut draft.unclaimed);
        draft.finished.sort_by(|a, b| a.key.cmp(&b.key));
        draft
            .draining
            .sort_by(|a, b| (a.ready_since.is_none(), &a.key).cmp(&(b.ready_since.is_none(), &b.key)));
        warm_up::recall(&mut draft);
        draft.proven = draft.taken > 0 || draft.unclaimed.iter().any(|i| i.updated && i.available);
        // One that has changed in a way not seen yet may be going: the answer to a deletion was lost, and the next try refused.
        let available = draft
            .unclaimed
            .iter()
            .filter(|i| i.available && !i.refused)
            .count();
        let min_available = snapshot
            .pool
            .spec
            .min_available_beside(draft.claimed + draft.set_aside);
        draft.budget = Budget::new(available, min_available);
        draft
    }

    fn sort_in(&mut self, sandbox: &'a Arc<Sandbox>, pending: Option<ExpectedWrite>) {
        if sandbox.terminating || pending == Some(ExpectedWrite::Deleted) {
            return;
        }
        match (sandbox.state.as_str(), pending) {
            (labels::DRAINING, None) => self.draining.push(Arc::clone(sandbox)),
            (labels::DRAINING, Some(ExpectedWrite::Restore)) => self.restore(sandbox),
            (labels::WARM, Some(ExpectedWrite::Bind | ExpectedWrite::Delete | ExpectedWrite::Drain)) => {
                self.leave(sandbox)
            }
            (labels::WARM, pending) => self.sort_in_warm(sandbox, pending),
            (labels::DRAINING, _) => {}
            // A state that is not understood, or set by hand, is left alone: it is nobody's to give or delete.
            _ => self.set_aside += 1,
        }
    }

    /// A draining sandbox is being made warm again.
    pub(crate) fn restore(&mut self, sandbox: &Sandbox) {
        self.returning += 1;
        self.returning_updated += usize::from(sandbox.revision == self.revisions.update.hash);
    }

    fn leave(&mut self, sandbox: &Sandbox) {
        let unproven = sandbox.revision == self.revisions.update.hash
            && !sandbox.is_available(&self.snapshot.pool.spec.availability_rule, self.snapshot.now);
        self.leaving += 1;
        self.leaving_unproven += usize::from(unproven);
    }

    fn sort_in_warm(&mut self, sandbox: &'a Arc<Sandbox>, pending: Option<ExpectedWrite>) {
        if sandbox.finished() {
            if pending.is_none() {
                self.finished.push(Arc::clone(sandbox));
            }
            return;
        }
        let spec = &self.snapshot.pool.spec;
        let at = sandbox.available_at(&spec.availability_rule);
        let overdue_at = sandbox.overdue_at(spec.warm_up);
        self.wake(at.unwrap_or(overdue_at));
        let available = sandbox.is_available(&spec.availability_rule, self.snapshot.now);
        self.came_up
            .extend(at.filter(|_| available).map(|at| (sandbox.revision.as_str(), at)));
        self.unclaimed.push(UnclaimedSandbox {
            available,
            overdue: at.is_none() && overdue_at <= self.snapshot.now,
            updated: sandbox.revision == self.revisions.update.hash,
            refused: pending == Some(ExpectedWrite::Conflicted),
            sandbox: Arc::clone(sandbox),
        });
    }

    /// Notes a moment in the future at which time alone changes the plan.
    pub(crate) fn wake(&mut self, at: Timestamp) {
        if at > self.snapshot.now {
            self.next = Some(self.next.map_or(at, |next| next.min(at)));
        }
    }

    pub(crate) fn act(&mut self, phase: Phase, reason: &'static str, step: Step) {
        self.actions.push(Action { phase, step, reason });
    }

    /// Unclaimed sandboxes that will be there once every write on its way is seen.
    pub(crate) fn active(&self) -> usize {
        self.unclaimed.len() + self.snapshot.creating.len() + self.returning
    }

    /// `maxUnavailable` and `maxSurge` as they count now.
    pub(crate) fn rollout_budget(&self) -> RolloutBudget {
        let spec = &self.snapshot.pool.spec;
        spec.rollout_budget(self.claimed + self.set_aside)
    }

    /// The rollout stands still, and what is missing is made from the old revision.
    pub(crate) fn rollout_is_paused(&self) -> bool {
        self.snapshot.pool.spec.paused && self.revisions.previous.is_some()
    }

    /// Has an unclaimed sandbox deleted, or drained first if one of its hooks asks for that.
    pub(crate) fn discard(&mut self, phase: Phase, reason: &'static str, sandbox: Arc<Sandbox>) {
        let step = if self.snapshot.pool.spec.pre_delete.any_on(&sandbox) {
            Step::DrainPod { sandbox }
        } else {
            Step::DeletePod { sandbox }
        };
        self.act(phase, reason, step);
    }

    /// Creations on their way of the update revision.
    pub(crate) fn creating_updated(&self) -> usize {
        self.snapshot
            .creating
            .iter()
            .filter(|c| c.revision == self.revisions.update.hash)
            .count()
    }

    /// Unclaimed sandboxes of the update revision that are not available, creations included.
    pub(crate) fn updated_unavailable(&self) -> usize {
        self.unclaimed
            .iter()
            .filter(|i| i.updated && !i.available)
            .count()
            + self.creating_updated()
    }

    /// Unclaimed sandboxes wanted: `replicas` and a sandbox for each waiting claim that creation may serve,
    /// and never fewer than `minTotal` leaves to the unclaimed ones. What a claim for the update revision waits for comes on
    /// top of the old ones that stay.
    pub(crate) fn desired(&self) -> usize {
        let beside_old = match self.demand_latest {
            0 => 0,
            latest => self.old().min(self.upper_of_old()) + latest,
        };
        self.desired_for(self.demand).max(beside_old)
    }

    fn desired_for(&self, demand: usize) -> usize {
        let spec = &self.snapshot.pool.spec;
        (spec.replicas + demand).max(spec.min_total.saturating_sub(self.claimed))
    }

    /// Unclaimed sandboxes of old revisions, creations on their way included.
    pub(crate) fn old(&self) -> usize {
        let unclaimed = self.unclaimed.iter().filter(|i| i.updated).count();
        self.active() - unclaimed - self.creating_updated() - self.returning_updated
    }

    /// Sandboxes of old revisions that would be there without the claims that they cannot serve.
    pub(crate) fn upper_of_old(&self) -> usize {
        let desired = self.desired_for(self.demand - self.demand_latest);
        self.within_total(self.snapshot.pool.spec.max_warm.max(desired))
    }

    /// Unclaimed sandboxes above which the pool is trimmed.
    pub(crate) fn upper(&self) -> usize {
        self.within_total(self.snapshot.pool.spec.max_warm.max(self.desired()))
    }

    /// `unclaimed` sandboxes, as far as `maxTotal` leaves room for them beside the claimed ones.
    pub(crate) fn within_total(&self, unclaimed: usize) -> usize {
        unclaimed.min(self.snapshot.pool.spec.total_capacity_left(self.claimed))
    }

    /// Sandboxes that may start to warm up now, under `scaleStrategy.maxUnavailable`.
    pub(crate) fn ceiling(&self) -> usize {
        let warming = self.unclaimed.iter().filter(|i| !i.available).count() + self.snapshot.creating.len();
        let spec = &self.snapshot.pool.spec;
        spec.warming_ceiling(self.desired()).saturating_sub(warming)
    }

    /// Discards up to `count` of the idle sandboxes that `of` selects, in order of removal: not available ones
    /// freely, available ones within `limit`. Returns how many.
    pub(crate) fn remove(
        &mut self,
        phase: Phase,
        reason: &'static str,
        count: usize,
        limit: Limit,
        of: impl Fn(&UnclaimedSandbox) -> bool,
    ) -> usize {
        if count == 0 {
            return 0;
        }
        let mut removed = 0;
        let mut kept = Vec::with_capacity(self.unclaimed.len());
        for unclaimed in std::mem::take(&mut self.unclaimed) {
            let wanted = removed < count && !unclaimed.refused && of(&unclaimed);
            if wanted && (!unclaimed.available || limit == Limit::None || self.budget.take()) {
                removed += 1;
                self.leave(&unclaimed.sandbox);
                self.discard(phase, reason, unclaimed.sandbox);
            } else {
                kept.push(unclaimed);
            }
        }
        self.unclaimed = kept;
        removed
    }

    /// Fresh pod names `<pool>-<revision>-<suffix>`, derived from the seed of the view.
    pub(crate) fn fresh_names(&self) -> impl FnMut(&str) -> String + use<> {
        let pool = self.snapshot.pool.key.name.clone();
        let mut taken: HashSet<String> = self
            .snapshot
            .sandboxes
            .iter()
            .map(|s| s.sandbox.key.name.clone())
            .collect();
        taken.extend(self.snapshot.creating.iter().map(|c| c.name.clone()));
        let mut state = self.snapshot.seed;
        move |revision| loop {
            let suffix: String = (0..5).map(|_| letter(split_mix(&mut state))).collect();
            let name = format!("{pool}-{revision}-{suffix}");
            if taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// When the rollout to the update revision began, as the status says: now, if that speaks of another one.
fn rollout_start(snapshot: &PoolSnapshot, revisions: &Revisions) -> Option<Timestamp> {
    let status = &snapshot.pool.status;
    if status.update_revision == revisions.update.hash {
        status.rollout_start_time.as_ref().map(|time| time.0)
    } else {
        Some(conditions::whole_seconds(snapshot.now))
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): a stream of well-mixed numbers from any seed.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
