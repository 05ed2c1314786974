//! Checks I6: an available sandbox goes from a node that has to go once its replacement is available.
//!
//! So many stay available as the pool wants, apart from those that claims took lately, which are being made again.

use super::world::{Owner, Pod, Pool, Step, World};
use super::{Figures, Finding, Rules, Scene};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// For how long the operator remembers claims.
const REMEMBERED: SignedDuration = SignedDuration::from_secs(10);
/// What a claim took may be missing for this much longer than a sandbox takes to become available. The API writes in whole seconds
/// when one was created and became Ready, and the creation follows the binding a moment later.
const PRECISION: SignedDuration = SignedDuration::from_secs(3);

/// A node that has to go, as the story declares it.
#[derive(Clone, Debug)]
pub struct Drain {
    pub node: String,
    pub from: Timestamp,
    /// When it was uncordoned.
    pub to: Option<Timestamp>,
    /// Its sandboxes need not be replaced first: by the pool's policy, or because the deadline has passed.
    pub breaks: bool,
}

impl Drain {
    fn is_on(&self, now: Timestamp) -> bool {
        self.from <= now && self.to.is_none_or(|to| now <= to)
    }
}

impl Rules {
    /// The drain that holds for a pod at `now`.
    pub fn drain_of(&self, pod: &Pod, now: Timestamp) -> Option<&Drain> {
        let mut drains = self.drains.iter();
        drains.find(|drain| drain.node == pod.node && drain.is_on(now))
    }

    /// A node has to go at `now`, or had to a moment before.
    pub fn drains_at(&self, now: Timestamp) -> bool {
        let held_up = |drain: &Drain| drain.is_on(now) || drain.is_on(now - self.held_up);
        self.drains.iter().any(held_up)
    }
}

#[derive(Default)]
pub struct Drains {
    /// When claims took sandboxes, by pool.
    taken: BTreeMap<String, Vec<Timestamp>>,
    /// When each unclaimed sandbox was created that is not available yet, by UID.
    created: BTreeMap<String, Timestamp>,
    /// The longest time from creation to availability so far, by pool.
    warm_up: BTreeMap<String, SignedDuration>,
}

impl Drains {
    pub fn judge(&mut self, scene: &Scene, step: &Step, out: &mut Vec<Finding>) {
        self.note_warm_up(scene, step);
        let Step::Pod(Some(before), after) = step else {
            return;
        };
        let Some(pool) = scene.world.pools.get(&before.pool) else {
            return;
        };
        if !before.is_available(pool, scene.now) {
            return;
        }
        if after
            .as_ref()
            .is_some_and(|pod| matches!(pod.owner, Owner::Claim { .. }))
        {
            let taken = self.taken.entry(pool.name.clone()).or_default();
            taken.push(scene.now);
            return;
        }
        let goes = after
            .as_ref()
            .is_none_or(|pod| pod.terminating || pod.state == "draining");
        let by_operator = !scene.rules.deleted_by_others.contains(&before.uid);
        let drain = scene
            .rules
            .drain_of(before, scene.now)
            .filter(|drain| !drain.breaks);
        if let Some(drain) = drain.filter(|_| goes && by_operator) {
            self.is_replaced(scene, pool, before, drain, out);
        }
    }

    fn note_warm_up(&mut self, scene: &Scene, step: &Step) {
        let (before, pod) = match step {
            Step::Pod(before, Some(pod)) => (before, pod),
            Step::Pod(Some(gone), None) => {
                self.created.remove(&gone.uid);
                return;
            }
            _ => return,
        };
        let pool = scene.world.pools.get(&pod.pool);
        if pool.is_some_and(|pool| pod.is_available(pool, scene.now)) {
            let took = self
                .created
                .remove(&pod.uid)
                .map(|at| scene.now.duration_since(at));
            let longest = self.warm_up.entry(pod.pool.clone()).or_default();
            *longest = took.unwrap_or_default().max(*longest);
        } else if before.is_none() {
            self.created.insert(pod.uid.clone(), scene.now);
        }
    }

    fn is_replaced(&self, scene: &Scene, pool: &Pool, gone: &Pod, drain: &Drain, out: &mut Vec<Finding>) {
        let taken = self.taken.get(&pool.name).into_iter().flatten();
        let warm_up = self.warm_up.get(&pool.name).copied().unwrap_or_default();
        let missing = (warm_up + PRECISION).min(REMEMBERED);
        let lately = taken.filter(|at| scene.rules.elapsed(**at, scene.now) <= missing);
        let lately = i64::try_from(lately.count()).unwrap_or(i64::MAX);
        let room = pool
            .max_total
            .map_or(i64::MAX, |max| max - scene.world.claimed(&pool.name));
        // A rollout under way takes its share of the same budget.
        let wanted = if pool.may_roll {
            pool.floor(0)
        } else {
            pool.replicas
        }
        .min(room);
        let left = scene.world.available(pool, scene.now) - 1;
        if left + lately < wanted {
            let sentence = format!(
                "pod {} went from node {} before its replacement was available, which left {left} of {wanted} \
                 available of pool {}",
                gone.name, drain.node, pool.name
            );
            out.push(Finding::new("I6", &[&gone.uid], sentence));
        }
    }
}

/// Measures the fewest available sandboxes of each pool while a node has to go.
pub fn measure(world: &World, rules: &Rules, now: Timestamp, figures: &mut Figures) {
    if !rules.drains.iter().any(|drain| drain.is_on(now)) {
        return;
    }
    for (name, pool) in &world.pools {
        let available = world.available(pool, now);
        let least = figures.least_in_drain.entry(name.clone()).or_insert(available);
        *least = available.min(*least);
    }
}
