//! Checks I7: a claim is served soon after a sandbox is available.

use super::claim::{Claim, QueuePosition};
use super::world::{Pool, Step, World};
use super::{Figures, Finding, Scene};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// A binding shows in the watch at most this long after the API server has answered it.
const SHOWN_WITHIN: SignedDuration = SignedDuration::from_secs(1);

/// The claims that wait, pool by pool. One is *within reach* while as many sandboxes that it may take are available
/// as it needs, beside those that the claims before it will take.
#[derive(Default)]
pub struct WorkConservation {
    queues: BTreeMap<String, BTreeMap<QueuePosition, QueuedClaim>>,
    /// The pool and the position in its queue of every claim that waits, by UID.
    positions: BTreeMap<String, (String, QueuePosition)>,
    /// Claims that the event at hand may have moved.
    touched: Vec<String>,
    /// When a sandbox becomes available by the passing of time alone.
    ripens: Option<Timestamp>,
}

/// A claim in its queue.
struct QueuedClaim {
    uid: String,
    name: String,
    came: Timestamp,
    /// Sandboxes that it holds already: one more is progress, too.
    held: usize,
    /// How long it was within reach, up to the last time that it was not.
    waited: SignedDuration,
    within: Option<Within>,
}

#[derive(Clone, Copy)]
struct Within {
    since: Timestamp,
    /// When a claim created by `since` got a sandbox last; else `since`.
    idle_since: Timestamp,
}

impl QueuedClaim {
    fn waited(&self, now: Timestamp) -> SignedDuration {
        self.within.map_or(self.waited, |within| {
            self.waited + now.duration_since(within.since)
        })
    }

    fn set_within_reach(&mut self, within_reach: bool, now: Timestamp) {
        if within_reach {
            let begins = Within {
                since: now,
                idle_since: now,
            };
            self.within.get_or_insert(begins);
        } else {
            self.waited = self.waited(now);
            self.within = None;
        }
    }
}

impl WorkConservation {
    /// Judges the time up to the event; what the event changes is for [`WorkConservation::note`].
    pub fn judge(&mut self, scene: &Scene, step: &Step, out: &mut Vec<Finding>, figures: &mut Figures) {
        self.advance_time(scene, out, figures);
        match step {
            Step::Pod(before, after) => {
                let pods = [before, after].into_iter().flatten();
                self.touched
                    .extend(pods.filter_map(|pod| pod.claim()).map(String::from));
            }
            Step::Claim(before, after) => {
                let either = after.as_ref().or(before.as_ref());
                self.touched.extend(either.map(|claim| claim.uid.clone()));
            }
            Step::Pool(_) => {}
        }
    }

    /// Sets the queues by the world as it is from now on.
    pub fn note(&mut self, world: &World, now: Timestamp, figures: &mut Figures) {
        for uid in std::mem::take(&mut self.touched) {
            self.update_queue(world, &uid, now, figures);
        }
        for (pool, queue) in &mut self.queues {
            let mut stock = world
                .pools
                .get(pool)
                .map_or(Stock::default(), |pool| Stock::of(world, pool, now));
            for queued in queue.values_mut() {
                let claim = world.claims.get(&queued.uid);
                let within_reach = claim.is_some_and(|claim| stock.take(world, claim));
                queued.set_within_reach(within_reach, now);
            }
        }
        self.ripens = ripens(world, now);
    }

    /// Checks the time up to the end of the history, and records the waits of claims that still wait.
    pub fn finish(&mut self, scene: &Scene, out: &mut Vec<Finding>, figures: &mut Figures) {
        self.advance_time(scene, out, figures);
        for queued in self.queues.values().flat_map(BTreeMap::values) {
            figures.waited(&queued.name, queued.waited(scene.now));
        }
    }

    fn advance_time(&mut self, scene: &Scene, out: &mut Vec<Finding>, figures: &mut Figures) {
        while let Some(at) = self.ripens.filter(|at| *at <= scene.now) {
            self.note(scene.world, at, figures);
        }
        self.report_idle_claims(scene, out);
    }

    /// Updates the position of the claim in the queue of its pool.
    fn update_queue(&mut self, world: &World, uid: &str, now: Timestamp, figures: &mut Figures) {
        let claim = world.claims.get(uid);
        let here = claim
            .filter(|c| c.waits())
            .map(|c| (c, (c.pool.clone(), c.queue_position())));
        if self.positions.get(uid) == here.as_ref().map(|(_, position)| position) {
            let queued = here.and_then(|(_, (pool, position))| {
                let queued = self.queues.get_mut(&pool)?.get_mut(&position)?;
                let held = world.held_by(uid);
                let more = held > std::mem::replace(&mut queued.held, held);
                more.then_some((pool, queued.came))
            });
            if let Some((pool, came)) = queued {
                self.record_progress(&pool, came, now);
            }
            return;
        }
        let left = self
            .positions
            .remove(uid)
            .and_then(|(pool, position)| Some((self.queues.get_mut(&pool)?.remove(&position)?, pool)));
        if let Some((queued, pool)) = left {
            figures.waited(&queued.name, queued.waited(now));
            if claim.is_some_and(|c| c.served_at.is_some()) {
                self.record_progress(&pool, queued.came, now);
            }
        }
        if let Some((claim, (pool, position))) = here {
            let queued = QueuedClaim {
                uid: uid.into(),
                name: claim.name.clone(),
                came: now,
                held: world.held_by(uid),
                waited: SignedDuration::ZERO,
                within: None,
            };
            self.queues
                .entry(pool.clone())
                .or_default()
                .insert(position.clone(), queued);
            self.positions.insert(uid.into(), (pool, position));
        }
    }

    /// A claim created at `came` got a sandbox. That excuses the wait of claims that came within reach after it, but
    /// not of older ones: later claims that go first could otherwise starve them forever.
    fn record_progress(&mut self, pool: &str, came: Timestamp, now: Timestamp) {
        let queued = self
            .queues
            .get_mut(pool)
            .into_iter()
            .flat_map(BTreeMap::values_mut);
        for within in queued.filter_map(|queued| queued.within.as_mut()) {
            if came <= within.since {
                within.idle_since = now;
            }
        }
    }

    fn report_idle_claims(&mut self, scene: &Scene, out: &mut Vec<Finding>) {
        let Some(limit) = scene.rules.idle else { return };
        for (pool, queue) in &mut self.queues {
            let idle = |within: &Within| {
                let since = scene.rules.operator_up_since(within.idle_since, scene.now);
                scene.rules.elapsed(since, scene.now)
            };
            // One finding stands for all claims behind it.
            let Some(queued) = queue
                .values()
                .find(|queued| queued.within.is_some_and(|w| idle(&w) > limit))
            else {
                continue;
            };
            // An operator that has requested a binding is not idle, however long the API server takes.
            let free = || scene.world.pods.values().filter(|pod| pod.is_unclaimed(pool));
            let mut names = free().map(|pod| pod.name.as_str());
            let requests = &scene.rules.requests;
            if requests.is_patch_on_its_way(&mut names, scene.now, SHOWN_WITHIN) {
                continue;
            }
            let ms = queued.within.map_or(0, |w| idle(&w).as_millis());
            let sentence = format!(
                "for {ms} ms no claim on pool {pool} was served, while {} waited and a sandbox was available for it",
                queued.name
            );
            let about: Vec<&str> = free()
                .map(|p| p.uid.as_str())
                .chain([queued.uid.as_str()])
                .collect();
            out.push(Finding::new("I7", &about, sentence));
            for within in queue.values_mut().filter_map(|queued| queued.within.as_mut()) {
                within.idle_since = scene.now;
            }
        }
    }
}

/// Available sandboxes, minus those that earlier claims in the queue will take.
#[derive(Default)]
struct Stock {
    updated: usize,
    old: usize,
}

impl Stock {
    fn of(world: &World, pool: &Pool, now: Timestamp) -> Self {
        let mut stock = Self::default();
        for pod in world.pods.values().filter(|pod| pod.is_available(pool, now)) {
            if pod.revision == pool.update_revision {
                stock.updated += 1;
            } else {
                stock.old += 1;
            }
        }
        stock
    }

    /// Takes what the claim still needs, and answers whether there is enough. What there is waits for a claim for
    /// several, unless the pool can never serve it.
    fn take(&mut self, world: &World, claim: &Claim) -> bool {
        let (needs, old) = (world.needs(claim), if claim.latest { 0 } else { self.old });
        let enough = self.updated + old >= needs;
        if enough || world.can_ever_serve(claim) {
            let updated = needs.min(self.updated);
            self.updated -= updated;
            self.old -= old.min(needs - updated);
        }
        enough
    }
}

fn ripens(world: &World, now: Timestamp) -> Option<Timestamp> {
    let pods = world.pods.values();
    let moments = pods.filter_map(|pod| pod.ripe_at(world.pools.get(&pod.pool)?));
    moments.filter(|at| *at > now).min()
}
