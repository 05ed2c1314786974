//! I7: work is conserved: a claim that a sandbox is available for is served, and soon.

use super::claim::{Claim, Place};
use super::world::{Pool, Step, World};
use super::{Figures, Finding, Scene};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// The claims that wait, pool by pool. One is *within reach* while as many sandboxes that it may take are available
/// as it needs, beside those that the claims before it will take.
#[derive(Default)]
pub struct Patience {
    lines: BTreeMap<String, BTreeMap<Place, Turn>>,
    /// The pool and the place in its line of every claim that waits, by UID.
    places: BTreeMap<String, (String, Place)>,
    /// Claims that the event at hand may have moved.
    touched: Vec<String>,
    /// When a sandbox becomes available by the passing of time alone.
    ripens: Option<Timestamp>,
}

/// A claim in its line.
struct Turn {
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
    /// When a claim that had come by `since` was given a sandbox last; else `since`.
    idle_since: Timestamp,
}

impl Turn {
    fn waited(&self, now: Timestamp) -> SignedDuration {
        self.within.map_or(self.waited, |within| {
            self.waited + now.duration_since(within.since)
        })
    }

    fn moves(&mut self, within_reach: bool, now: Timestamp) {
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

impl Patience {
    /// Judges the time up to the event; what the event changes is for [`Patience::note`].
    pub fn judge(&mut self, scene: &Scene, step: &Step, out: &mut Vec<Finding>, figures: &mut Figures) {
        self.time_passes(scene, out, figures);
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

    /// Sets the lines by the world as it is from now on.
    pub fn note(&mut self, world: &World, now: Timestamp, figures: &mut Figures) {
        for uid in std::mem::take(&mut self.touched) {
            self.place(world, &uid, now, figures);
        }
        for (pool, line) in &mut self.lines {
            let mut stock = world
                .pools
                .get(pool)
                .map_or(Stock::default(), |pool| Stock::of(world, pool, now));
            for turn in line.values_mut() {
                let claim = world.claims.get(&turn.uid);
                let within_reach = claim.is_some_and(|claim| stock.take(world, claim));
                turn.moves(within_reach, now);
            }
        }
        self.ripens = ripens(world, now);
    }

    /// Judges the time up to the end of the history, and takes down those who still wait.
    pub fn finish(&mut self, scene: &Scene, out: &mut Vec<Finding>, figures: &mut Figures) {
        self.time_passes(scene, out, figures);
        for turn in self.lines.values().flat_map(BTreeMap::values) {
            figures.waited(&turn.name, turn.waited(scene.now));
        }
    }

    fn time_passes(&mut self, scene: &Scene, out: &mut Vec<Finding>, figures: &mut Figures) {
        while let Some(at) = self.ripens.filter(|at| *at <= scene.now) {
            self.note(scene.world, at, figures);
        }
        self.nobody_idles(scene, out);
    }

    /// Gives the claim its place in the line of its pool, or none.
    fn place(&mut self, world: &World, uid: &str, now: Timestamp, figures: &mut Figures) {
        let claim = world.claims.get(uid);
        let here = claim
            .filter(|c| c.waits())
            .map(|c| (c, (c.pool.clone(), c.place())));
        if self.places.get(uid) == here.as_ref().map(|(_, place)| place) {
            let turn = here.and_then(|(_, (pool, place))| {
                let turn = self.lines.get_mut(&pool)?.get_mut(&place)?;
                let held = world.held_by(uid);
                let more = held > std::mem::replace(&mut turn.held, held);
                more.then_some((pool, turn.came))
            });
            if let Some((pool, came)) = turn {
                self.line_moves(&pool, came, now);
            }
            return;
        }
        let left = self
            .places
            .remove(uid)
            .and_then(|(pool, place)| Some((self.lines.get_mut(&pool)?.remove(&place)?, pool)));
        if let Some((turn, pool)) = left {
            figures.waited(&turn.name, turn.waited(now));
            if claim.is_some_and(|c| c.served_at.is_some()) {
                self.line_moves(&pool, turn.came, now);
            }
        }
        if let Some((claim, (pool, place))) = here {
            let turn = Turn {
                uid: uid.into(),
                name: claim.name.clone(),
                came: now,
                held: world.held_by(uid),
                waited: SignedDuration::ZERO,
                within: None,
            };
            self.lines
                .entry(pool.clone())
                .or_default()
                .insert(place.clone(), turn);
            self.places.insert(uid.into(), (pool, place));
        }
    }

    /// A claim that came at `came` was given a sandbox. That excuses the waiting of those who came within reach after it,
    /// but not of others: there may always be another one that comes later and goes first.
    fn line_moves(&mut self, pool: &str, came: Timestamp, now: Timestamp) {
        let turns = self
            .lines
            .get_mut(pool)
            .into_iter()
            .flat_map(BTreeMap::values_mut);
        for within in turns.filter_map(|turn| turn.within.as_mut()) {
            if came <= within.since {
                within.idle_since = now;
            }
        }
    }

    fn nobody_idles(&mut self, scene: &Scene, out: &mut Vec<Finding>) {
        let Some(limit) = scene.rules.idle else { return };
        for (pool, line) in &mut self.lines {
            let idle = |within: &Within| {
                scene
                    .now
                    .duration_since(scene.rules.at_work_since(within.idle_since, scene.now))
            };
            // One sentence tells of all that wait behind it, too.
            let Some(turn) = line
                .values()
                .find(|turn| turn.within.is_some_and(|w| idle(&w) > limit))
            else {
                continue;
            };
            let ms = turn.within.map_or(0, |w| idle(&w).as_millis());
            let sentence = format!(
                "for {ms} ms no claim on pool {pool} was served, while {} waited and a sandbox was available for it",
                turn.name
            );
            let free = scene.world.pods.values().filter(|p| p.is_unclaimed(pool));
            let about: Vec<&str> = free.map(|p| p.uid.as_str()).chain([turn.uid.as_str()]).collect();
            out.push(Finding::new("I7", &about, sentence));
            for within in line.values_mut().filter_map(|turn| turn.within.as_mut()) {
                within.idle_since = scene.now;
            }
        }
    }
}

/// Sandboxes that are available, as those who are served one after the other find them.
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
