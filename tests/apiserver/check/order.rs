//! Checks I7: an operator that knows of an older claim does not serve a younger claim before it.
//!
//! Evidence tells what the operator knew and when it decided. The watch of claims shows them in the order of their versions, so
//! who binds a claim knows every claim that was stored before it. The arrival of a request shows that it was decided on.
//! Bindings of one plan are sent at once, so the older claim's request may arrive last, but not long after the other was
//! answered. The sandbox that the older claim gets says more than any time: the claim was passed over if the sandbox became
//! available only after the younger claim was bound, or if it is worse than that of the younger claim. It was not if its
//! sandbox is better.

use super::claim::Claim;
use super::requests::Request;
use super::world::{Owner, Pod, Preference, Step};
use super::{BINDINGS, Figures, Finding, Rules, Scene};
use jiff::{SignedDuration, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// An elder that ends this soon after a younger claim was bound may have been about to end when that was decided.
const ENDS_SOON: SignedDuration = SignedDuration::from_secs(5);

/// Services that came before an elder that waited: innocent if both were decided on in order.
#[derive(Default)]
pub struct Order {
    overtakes: Vec<Overtake>,
    /// When each pod became fit for a claim, by UID.
    fit_since: BTreeMap<String, Timestamp>,
    /// When the first of its bindings was decided on, of each claim that has yet to get all its pods.
    begun: BTreeMap<String, Timestamp>,
    failures: Failures,
    lost: Lost,
    /// Late bindings, by the number of outages before them.
    late: BTreeMap<usize, usize>,
}

/// What bindings that failed excuse.
#[derive(Default)]
struct Failures {
    /// The pool of each pod, by name: the audit log names the pod of a failed binding and not the claim.
    pool_of: BTreeMap<String, String>,
    /// The claims of each pool whose being passed over a failed binding has excused, by UID.
    excused: BTreeMap<String, BTreeSet<String>>,
}

impl Failures {
    /// The patches of pods of the overtake's pool that failed. A claim with a selector may have been meant for another pool.
    fn of<'a>(&'a self, scene: &Scene<'a>, overtake: &'a Overtake) -> impl Iterator<Item = &'a Request> {
        let elder = scene.world.claims.get(&overtake.elder);
        let may_be_elsewhere = elder.is_none_or(|claim| claim.selector.is_some());
        scene.rules.requests.failed_patches(move |pod| {
            let pool = self.pool_of.get(pod);
            may_be_elsewhere || pool.is_none_or(|pool| *pool == overtake.pool)
        })
    }

    /// The binding of the elder may have failed, and was not tried again when the younger claim was served.
    fn may_excuse(&self, scene: &Scene, overtake: &Overtake) -> bool {
        let rules = scene.rules;
        self.of(scene, overtake).any(|request| {
            let again = request.has_failed_by() + rules.retried_after;
            request.at - rules.reordered <= overtake.decided && overtake.decided <= again + rules.reordered
        })
    }

    /// The same, and no failed binding excuses two claims: each was for one.
    fn excuse(&mut self, scene: &Scene, overtake: &Overtake) -> bool {
        if !self.may_excuse(scene, overtake) {
            return false;
        }
        let all = self.of(scene, overtake).count();
        let excused = self.excused.entry(overtake.pool.clone()).or_default();
        excused.insert(overtake.elder.clone());
        excused.len() <= all
    }
}

/// The claims whose being passed over each outage has excused, by UID.
#[derive(Default)]
struct Lost(BTreeMap<usize, BTreeSet<String>>);

impl Lost {
    /// The binding of the elder may have been lost in an outage. In one outage no more are lost than were in flight.
    fn excuse(&mut self, scene: &Scene, overtake: &Overtake) -> bool {
        let Some(outage) = scene.rules.outage_that_lost(overtake.decided) else {
            return false;
        };
        let excused = self.0.entry(outage).or_default();
        excused.insert(overtake.elder.clone());
        excused.len() <= BINDINGS
    }
}

struct Overtake {
    /// When the binding of the younger claim was decided on, answered, and stored.
    decided: Timestamp,
    answered: Timestamp,
    stored: Timestamp,
    elder: String,
    served: String,
    pod: String,
    pool: String,
    revision: String,
    node: String,
    preference: Preference,
    /// Since when a claim could take the pod.
    fit_since: Option<Timestamp>,
    /// The elder's own bindings were decided on before, and some had been carried out.
    elder_had_begun: bool,
    sentence: String,
}

impl Order {
    /// How many late bindings are those of operators that had just opened their connections.
    pub fn late_when_new(&self, rules: &Rules) -> usize {
        let after_outages = self.late.range(1..);
        after_outages
            .map(|(_, late)| rules.late_when_new.min(*late))
            .sum()
    }

    pub fn judge(&mut self, scene: &Scene, step: &Step, out: &mut Vec<Finding>, figures: &mut Figures) {
        match step {
            Step::Pod(before, Some(after)) => {
                self.failures
                    .pool_of
                    .insert(after.name.clone(), after.pool.clone());
                self.note_fitness(scene, before.as_ref(), after);
                if let Owner::Claim { uid, .. } = &after.owner
                    && before.as_ref().is_none_or(|b| b.owner != after.owner)
                {
                    let decided = scene.rules.requests.decided("patch", &after.name, scene.now);
                    self.decide_on_elder(scene, uid, after, decided, out, figures);
                    if let Some(claim) = scene.world.claims.get(uid) {
                        self.record_overtakes(scene, claim, after, decided);
                    }
                }
            }
            Step::Pod(Some(gone), None) => _ = self.fit_since.remove(&gone.uid),
            Step::Claim(Some(before), after) if after.as_ref().is_none_or(|claim| !claim.is_undecided()) => {
                self.decide_on_ended(scene, before, out);
            }
            _ => {}
        }
    }

    fn note_fitness(&mut self, scene: &Scene, before: Option<&Pod>, after: &Pod) {
        let Some(pool) = scene.world.pools.get(&after.pool) else {
            return;
        };
        if after.is_fit(pool) && !before.is_some_and(|pod| pod.is_fit(pool)) {
            let ripe = after.ripe_at(pool).unwrap_or(scene.now);
            self.fit_since.insert(after.uid.clone(), scene.now.max(ripe));
        }
    }

    fn record_overtakes(&mut self, scene: &Scene, served: &Claim, pod: &Pod, decided: Timestamp) {
        let decided = *self.begun.entry(served.uid.clone()).or_insert(decided);
        if scene.world.held_by(&served.uid) + 1 >= served.wanted {
            self.begun.remove(&served.uid);
        }
        let answered = scene.rules.requests.answered("patch", &pod.name, scene.now);
        let position = served.queue_position();
        for elder in scene.world.claims.values() {
            let listed = |claim| scene.rules.is_known_from_a_list(claim, scene.now);
            let first = if listed(elder) && listed(served) && !elder.is_as_it_came() {
                (Reverse(elder.priority), &elder.created) < (Reverse(served.priority), &served.created)
            } else {
                elder.queue_position() < position
            };
            if elder.pool == served.pool
                && elder.uid != served.uid
                && elder.waits()
                && first
                && was_known(scene, elder, served, decided)
                && scene.world.can_ever_serve(elder)
            {
                self.overtakes.push(Overtake {
                    decided,
                    answered,
                    stored: scene.now,
                    elder: elder.uid.clone(),
                    served: served.uid.clone(),
                    pod: pod.uid.clone(),
                    pool: pod.pool.clone(),
                    revision: pod.revision.clone(),
                    node: pod.node.clone(),
                    preference: pod.preference.clone(),
                    fit_since: self.fit_since.get(&pod.uid).copied(),
                    elder_had_begun: scene.world.held_by(&elder.uid) > 0,
                    sentence: format!(
                        "claim {} (priority {}) was served while claim {} (priority {}), which goes first, waited",
                        served.name, served.priority, elder.name, elder.priority
                    ),
                });
            }
        }
    }

    /// The elder with UID `elder` gets `pod`, as was decided at `decided`.
    fn decide_on_elder(
        &mut self,
        scene: &Scene,
        elder: &str,
        pod: &Pod,
        decided: Timestamp,
        out: &mut Vec<Finding>,
        figures: &mut Figures,
    ) {
        let decided = self.begun.get(elder).copied().unwrap_or(decided);
        let fit_since = self.fit_since.get(&pod.uid).copied();
        let wanted = scene.world.claims.get(elder).map_or(1, |claim| claim.wanted);
        let has_all = scene.world.held_by(elder) + 1 >= wanted;
        let mut late = SignedDuration::ZERO;
        let (failures, lost) = (&mut self.failures, &mut self.lost);
        self.overtakes.retain_mut(|overtake| {
            if overtake.elder != elder {
                return true;
            }
            if overtake.is_of_other_revision(scene) || overtake.pool != pod.pool {
                return false;
            }
            let after = scene.rules.elapsed(overtake.answered, decided);
            let is_late_pod = fit_since.is_some_and(|since| since > overtake.stored);
            let is_worse = overtake.choice_of_elder(scene, pod);
            let is_late = after > scene.rules.reordered && !overtake.elder_had_begun;
            let is_proven = is_late_pod || is_worse.unwrap_or(is_late);
            let passed_over = scene.rules.passed_over;
            let is_tolerated = !passed_over.is_zero() && after <= passed_over;
            if is_proven && !is_tolerated {
                if !lost.excuse(scene, overtake) && !failures.excuse(scene, overtake) {
                    out.push(overtake.finding());
                }
                return false;
            }
            let is_of_outage = scene.rules.outage_that_lost(overtake.decided).is_some();
            if is_of_outage || failures.may_excuse(scene, overtake) {
                return false;
            }
            if !overtake.elder_had_begun {
                late = late.max(after);
            }
            overtake.elder_had_begun = true;
            !has_all
        });
        if late > SignedDuration::ZERO {
            figures.late += 1;
            *self.late.entry(scene.rules.outages_before(decided)).or_default() += 1;
            figures.reordered = figures.reordered.max(late);
        }
    }

    /// The elder `before` ends, or is being deleted.
    fn decide_on_ended(&mut self, scene: &Scene, before: &Claim, out: &mut Vec<Finding>) {
        self.begun.remove(&before.uid);
        let (failures, lost) = (&mut self.failures, &mut self.lost);
        self.overtakes.retain(|overtake| {
            if overtake.elder != before.uid {
                return true;
            }
            let waited = scene.rules.elapsed(overtake.stored, scene.now);
            let may_wait = ENDS_SOON.max(scene.rules.passed_over);
            let is_accused = before.waits() && waited > may_wait && !overtake.is_of_other_revision(scene);
            if is_accused && !lost.excuse(scene, overtake) && !failures.excuse(scene, overtake) {
                out.push(overtake.finding());
            }
            false
        });
    }

    /// Accuses the overtaking of claims that wait to the end.
    pub fn finish(&mut self, scene: &Scene, out: &mut Vec<Finding>) {
        for overtake in std::mem::take(&mut self.overtakes) {
            let waits = scene.world.claims.get(&overtake.elder).is_some_and(Claim::waits);
            let waited = scene.rules.elapsed(overtake.stored, scene.now);
            let may_wait = scene.rules.reordered.max(scene.rules.passed_over);
            let is_accused = waits && waited > may_wait && !overtake.is_of_other_revision(scene);
            if is_accused && !self.lost.excuse(scene, &overtake) && !self.failures.excuse(scene, &overtake) {
                out.push(overtake.finding());
            }
        }
    }
}

impl Overtake {
    /// The elder takes only the update revision, and this pod is of another.
    fn is_of_other_revision(&self, scene: &Scene) -> bool {
        let elder = scene.world.claims.get(&self.elder);
        // By now the pool has said which revision its template is.
        let update = |e: &Claim| scene.world.pools.get(&e.pool).map(|p| &p.update_revision);
        elder.is_some_and(|e| e.latest && update(e) != Some(&self.revision))
    }

    /// Whether the elder, which got `pod`, would rather have had the pod of the younger claim. None where that cannot be told:
    /// the pods do not compare, or the younger claim's may not have been known to be available when the elder came.
    fn choice_of_elder(&self, scene: &Scene, pod: &Pod) -> Option<bool> {
        let elder = scene.world.claims.get(&self.elder)?;
        let known = scene.rules.elapsed(self.fit_since?, elder.waits_since) > scene.rules.seen_late;
        let compares = !pod.node.is_empty() && self.node == pod.node && self.revision == pod.revision;
        (known && compares).then(|| self.preference > pod.preference)
    }

    fn finding(&self) -> Finding {
        let about = [self.elder.as_str(), &self.served, &self.pod];
        Finding::new("I7", &about, self.sentence.clone())
    }
}

/// Whether the operator that had decided at `decided` to serve `served` knew that `elder` waits.
fn was_known(scene: &Scene, elder: &Claim, served: &Claim, decided: Timestamp) -> bool {
    // The watch had shown `served`, and what was stored before it.
    if elder.came_rv < served.came_rv && elder.first_served.is_none() && elder.selector.is_none() {
        return true;
    }
    scene.rules.elapsed(elder.waits_since, decided) > scene.rules.seen_late
}
