//! Checks I4: rollout budget, surge and maxTotal.
//!
//! The operator's deletions leave at least replicas - maxUnavailable available. It does not create unclaimed sandboxes
//! beyond replicas, maxSurge and the claims that wait. All pods together stay within maxTotal.

use super::world::{Pod, Pool, Recent, Step, World};
use super::{Figures, Finding, Scene};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// A deletion and a binding of one moment may arrive this far apart, in either order. Time in which an operator or the API
/// server waited for a processor does not count.
const SAME_MOMENT: SignedDuration = SignedDuration::from_millis(250);

#[derive(Default)]
pub struct Budget(BTreeMap<String, Counts>);

/// The recent past of one pool.
#[derive(Default)]
struct Counts {
    floor: Recent,
    wanted: Recent,
    waiting: Recent,
    /// `i64::MAX` where there is no bound.
    max_total: Recent,
    changes: Vec<Change>,
}

/// What changed how many sandboxes are available, other than deletions by an operator, in the order in which a watch shows it.
enum Change {
    Lost(Loss),
    /// A sandbox became available by an event of its own, and not by the passing of time.
    Gained,
}

/// An available sandbox that a claim took, that broke, or that others deleted.
struct Loss {
    /// When it could be known at the earliest. A claim's sandbox is as good as taken when the claim comes.
    known_since: Timestamp,
    /// When the binding of the claim that took it had been decided on at the latest.
    bound: Option<Timestamp>,
}

impl Budget {
    /// Records what is true from now on.
    pub fn note(&mut self, world: &World, now: Timestamp) {
        for (name, pool) in &world.pools {
            let counts = self.0.entry(name.clone()).or_default();
            counts.floor.push(now, pool.floor(world.claimed(name)));
            counts.wanted.push(now, pool.most + pool.max_surge);
            counts.waiting.push(now, world.waiting(pool));
            counts.max_total.push(now, pool.max_total.unwrap_or(i64::MAX));
        }
    }

    pub fn judge(&mut self, scene: &Scene, step: &Step, out: &mut Vec<Finding>, figures: &mut Figures) {
        let Step::Pod(before, after) = step else { return };
        let Some(current) = after.as_ref().or(before.as_ref()) else {
            return;
        };
        // Without its pool the garbage collector is at work, not the operator.
        let Some(pool) = scene.world.pools.get(&current.pool) else {
            return;
        };
        let counts = self.0.entry(pool.name.clone()).or_default();
        match (before, after) {
            (None, Some(created)) => {
                counts.stays_within_limits(scene, pool, created, out);
                counts.note_gain(scene, pool, None, created);
            }
            (Some(before), after) if before.is_available(pool, scene.now) => {
                let deleted = after.as_ref().is_none_or(|a| a.terminating);
                let drained = after.as_ref().is_some_and(|a| a.state == "draining");
                // A sandbox whose node may not wait goes within no budget.
                let drain = scene.rules.drain_of(before, scene.now);
                if drain.is_some_and(|drain| drain.breaks) {
                    return;
                }
                if drained || (deleted && !scene.rules.deleted_by_others.contains(&before.uid)) {
                    counts.leaves_enough_available(scene, pool, before, drained, out, figures);
                } else if after.as_ref().is_none_or(|a| !a.is_available(pool, scene.now)) {
                    counts
                        .changes
                        .push(Change::Lost(Loss::new(scene, after.as_ref())));
                }
            }
            (Some(before), Some(after)) => counts.note_gain(scene, pool, Some(before), after),
            _ => {}
        }
    }
}

impl Counts {
    fn leaves_enough_available(
        &mut self,
        scene: &Scene,
        pool: &Pool,
        deleted: &Pod,
        drained: bool,
        out: &mut Vec<Finding>,
        figures: &mut Figures,
    ) {
        let verb = if drained { "patch" } else { "delete" };
        let decided = scene.rules.requests.decided(verb, &deleted.name, scene.now);
        // A deletion that is repeated is not decided on again.
        let from = scene.rules.before(decided.min(scene.now), scene.rules.held_up);
        let floor = self.floor.since(from).min().unwrap_or(0);
        // Two that do not see each other's deletions may each take all that may be missing.
        let floor = if scene.rules.two_operators {
            floor - pool.max_unavailable.max(i64::from(pool.both_zero))
        } else {
            floor
        };
        let left = scene.world.available(pool, scene.now) - 1;
        let missing = floor - left;
        if missing <= 0 {
            return;
        }
        if let Some(age) = self.excuse(scene, decided, missing) {
            figures.excused += 1;
            figures.unseen = figures.unseen.max(age);
            return;
        }
        let sentence = format!(
            "pod {} was deleted while available, which left {left} available of pool {}; \
             replicas - maxUnavailable is {floor}",
            deleted.name, pool.name
        );
        out.push(Finding::new("I4", &self.of_pool(scene, pool, deleted), sentence));
    }

    /// How long before `decided` the first loss happened that excuses a deletion which leaves `missing` too few. The watch had
    /// shown whoever decided everything up to some moment and nothing later, so the losses that excuse the deletion have to
    /// exceed what became available after the first of them.
    fn excuse(&self, scene: &Scene, decided: Timestamp, missing: i64) -> Option<SignedDuration> {
        let mut believed = 0;
        self.changes.iter().rev().find_map(|change| match change {
            Change::Gained => {
                believed -= 1;
                None
            }
            Change::Lost(loss) if !loss.may_be_unknown(scene, decided) => None,
            Change::Lost(loss) => {
                believed += 1;
                (believed >= missing).then(|| decided.duration_since(loss.known_since))
            }
        })
    }

    /// Notes it if a sandbox becomes available. A draining one is restored by an operator, which need not await the watch.
    fn note_gain(&mut self, scene: &Scene, pool: &Pool, before: Option<&Pod>, after: &Pod) {
        if after.is_available(pool, scene.now) && before.is_none_or(|pod| pod.state != "draining") {
            self.changes.push(Change::Gained);
        }
    }

    fn stays_within_limits(&mut self, scene: &Scene, pool: &Pool, created: &Pod, out: &mut Vec<Finding>) {
        let decided = scene.rules.requests.decided("create", &created.name, scene.now);
        let from = scene.rules.before(decided.min(scene.now), scene.rules.held_up);
        let mut wanted = self.wanted.since(from).max().unwrap_or(0);
        if scene.rules.drains_at(scene.now) {
            // A drain surges by as much as a rollout may have missing and extra.
            wanted = wanted.max(pool.replicas + pool.max_unavailable + pool.max_surge);
        }
        // The replacement of a pod that is about to be terminated comes before that.
        wanted += scene.world.disrupted(&pool.name);
        let waiting = self.waiting.since(from).max().unwrap_or(0);
        let allowed = (wanted + waiting).max(pool.min_total);
        // Two that do not see each other's creations may each make all that is missing.
        let allowed = if scene.rules.two_operators {
            2 * allowed
        } else {
            allowed
        };
        let unclaimed = scene.world.unclaimed(&pool.name) + 1;
        if created.counts(&pool.name) && unclaimed > allowed {
            let sentence = format!(
                "pod {} was created as the {unclaimed}th unclaimed sandbox of pool {}, which wants {wanted} \
                 and has {waiting} claims waiting (minTotal {})",
                created.name, pool.name, pool.min_total
            );
            out.push(Finding::new("I4", &self.of_pool(scene, pool, created), sentence));
        }
        let total = scene.world.total(&pool.name) + 1;
        let bound = self.max_total.since(from).max().unwrap_or(i64::MAX);
        if total > bound {
            let sentence = format!(
                "pod {} was created as the {total}th of pool {}, whose maxTotal is {bound}",
                created.name, pool.name
            );
            out.push(Finding::new("I4", &self.of_pool(scene, pool, created), sentence));
        }
    }

    fn of_pool<'a>(&self, scene: &'a Scene, pool: &Pool, pod: &'a Pod) -> Vec<&'a str> {
        let others = scene.world.pods.values().filter(|p| p.pool == pool.name);
        others.map(|p| p.uid.as_str()).chain([pod.uid.as_str()]).collect()
    }
}

impl Loss {
    /// The loss of a sandbox that has become `after`.
    fn new(scene: &Scene, after: Option<&Pod>) -> Self {
        let taken = after.and_then(|pod| Some((pod, scene.world.claims.get(pod.claim()?)?)));
        // A claim that may go to any of several pools is no pool's before it takes a sandbox there.
        let of_pool = taken.filter(|(_, claim)| claim.selector.is_none());
        Self {
            known_since: of_pool.map_or(scene.now, |(_, claim)| claim.waits_since),
            bound: taken.map(|(pod, _)| scene.rules.requests.decided("patch", &pod.name, scene.now)),
        }
    }

    /// Whether the operator that decided at `decided` on a deletion may not have known of the loss.
    fn may_be_unknown(&self, scene: &Scene, decided: Timestamp) -> bool {
        // Who binds a claim knows of it, however late the watch showed it. One of two operators does not know what the other binds.
        let was_bound = self
            .bound
            .is_some_and(|bound| scene.rules.elapsed(bound, decided) > SAME_MOMENT);
        // A plan binds before it deletes, so the operator decided on the deletion before it saw a claim that is bound after it.
        let is_bound_after = self.bound.is_some_and(|bound| bound > decided);
        let unseen = scene.rules.unseen * if is_bound_after { 2 } else { 1 };
        scene.rules.elapsed(self.known_since, decided) < unseen && (scene.rules.two_operators || !was_bound)
    }
}
