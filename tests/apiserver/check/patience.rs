//! I7: work is conserved: while a claim waits and a sandbox is available, claims are being served.

use super::world::{Claim, Owner, Pod, Step, World};
use super::{Figures, Finding, Scene};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Patience {
    pools: BTreeMap<String, Clock>,
    /// What its pool's clock showed when the claim came, by UID.
    came: BTreeMap<String, SignedDuration>,
}

/// Runs while the pool has a sandbox available.
#[derive(Clone, Copy, Default)]
struct Clock {
    shows: SignedDuration,
    running_since: Option<Timestamp>,
    /// Since when a claim could have been served and none was.
    idle_since: Option<Timestamp>,
}

impl Clock {
    fn at(&self, now: Timestamp) -> SignedDuration {
        self.shows
            + self
                .running_since
                .map_or(SignedDuration::ZERO, |since| now.duration_since(since))
    }
}

/// Claims go in order; one for the update revision that there is too little of holds up nobody, and nor does one that the pool
/// can never serve, but one for several that there are too few for does.
fn somebody_could_be_served(world: &World, pool: &str, available: usize, updated: usize) -> bool {
    let mut waiting: Vec<&Claim> = world
        .claims
        .values()
        .filter(|c| c.pool == pool && c.waits() && world.can_ever_serve(c))
        .collect();
    waiting.sort_by_key(|c| (-c.priority, c.created.clone(), c.came_rv));
    for claim in waiting {
        let will_do = if claim.latest { updated } else { available };
        if will_do >= claim.wanted {
            return true;
        }
        if !claim.latest || claim.wanted > 1 {
            return false;
        }
    }
    false
}

impl Patience {
    pub fn judge(&mut self, scene: &Scene, step: &Step, out: &mut Vec<Finding>, figures: &mut Figures) {
        self.nobody_idles(scene, out);
        match step {
            Step::Pod(before, Some(after)) => {
                let Owner::Claim { uid, .. } = &after.owner else {
                    return;
                };
                let taken = before.as_ref().is_none_or(|b| b.owner != after.owner);
                if let Some(clock) = self.pools.get_mut(&after.pool).filter(|_| taken) {
                    clock.idle_since = None;
                }
                if let Some(claim) = scene.world.claims.get(uid).filter(|_| taken) {
                    self.waited(scene.now, claim, figures);
                }
            }
            Step::Claim(None, Some(claim)) => {
                let shows = self.shows(&claim.pool, scene.now);
                self.came.insert(claim.uid.clone(), shows);
            }
            Step::Claim(Some(before), after)
                if before.waits() && after.as_ref().is_none_or(|a| !a.waits()) =>
            {
                self.waited(scene.now, before, figures);
            }
            _ => {}
        }
    }

    /// Sets the clocks of the pools by the world as it is from now on.
    pub fn note(&mut self, world: &World, now: Timestamp) {
        for name in world.pools.keys() {
            self.pools.entry(name.clone()).or_default();
        }
        for (name, clock) in &mut self.pools {
            let pool = world.pools.get(name);
            let free: Vec<&Pod> = world
                .pods
                .values()
                .filter(|pod| pool.is_some_and(|pool| pod.is_available(pool, now)))
                .collect();
            let available = !free.is_empty();
            let update = pool.map(|pool| pool.update_revision.as_str());
            let updated = free.iter().filter(|pod| update == Some(&pod.revision)).count();
            let waiting = somebody_could_be_served(world, name, free.len(), updated);
            clock.shows = clock.at(now);
            clock.running_since = available.then_some(now);
            clock.idle_since = clock.idle_since.or(Some(now)).filter(|_| waiting);
        }
    }

    pub fn finish(&mut self, scene: &Scene, out: &mut Vec<Finding>, figures: &mut Figures) {
        self.nobody_idles(scene, out);
        for claim in scene.world.claims.values().filter(|c| c.waits()) {
            self.waited(scene.now, claim, figures);
        }
    }

    fn nobody_idles(&mut self, scene: &Scene, out: &mut Vec<Finding>) {
        let Some(limit) = scene.rules.idle else { return };
        for (name, clock) in &mut self.pools {
            let Some(idle) = clock.idle_since.map(|since| scene.now.duration_since(since)) else {
                continue;
            };
            let waiting = scene
                .world
                .claims
                .values()
                .filter(|c| c.pool == *name && c.waits());
            let Some(first) = waiting
                .min_by_key(|c| (-c.priority, c.came_rv))
                .filter(|_| idle > limit)
            else {
                continue;
            };
            let sentence = format!(
                "for {} ms no claim on pool {name} was served, while {} waited and a sandbox was available",
                idle.as_millis(),
                first.name
            );
            let free = scene
                .world
                .pods
                .values()
                .filter(|p| p.is_unclaimed(name))
                .map(|p| p.uid.as_str());
            let about: Vec<&str> = free.chain([first.uid.as_str()]).collect();
            out.push(Finding::new("I7", &about, sentence));
            clock.idle_since = Some(scene.now);
        }
    }

    fn shows(&self, pool: &str, now: Timestamp) -> SignedDuration {
        self.pools
            .get(pool)
            .map_or(SignedDuration::ZERO, |clock| clock.at(now))
    }

    /// The claim waits no longer.
    fn waited(&mut self, now: Timestamp, claim: &Claim, figures: &mut Figures) {
        let shows = self.shows(&claim.pool, now);
        // The clock tells of any sandbox, and one that takes the latest only may rightly wait beside an old one.
        let Some(came) = self
            .came
            .remove(&claim.uid)
            .filter(|_| !claim.latest && claim.wanted == 1)
        else {
            return;
        };
        if shows - came > figures.idle_wait.0 {
            figures.idle_wait = (shows - came, claim.name.clone());
        }
    }
}
