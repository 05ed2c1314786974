//! Checks I7: no claim is served before an older one of equal priority.

use super::claim::Claim;
use super::world::{Owner, Pod, Step};
use super::{Figures, Finding, Scene};
use jiff::Timestamp;
use std::cmp::Reverse;

/// Services that came before an elder that waited: innocent if the elder is served in the same moment.
#[derive(Default)]
pub struct Order(Vec<Overtake>);

struct Overtake {
    at: Timestamp,
    elder: String,
    served: String,
    pod: String,
    revision: String,
    sentence: String,
}

impl Order {
    pub fn judge(&mut self, scene: &Scene, step: &Step, out: &mut Vec<Finding>, figures: &mut Figures) {
        self.confirm(scene, out, figures);
        if let Step::Pod(before, Some(after)) = step
            && let Owner::Claim { uid, .. } = &after.owner
            && before.as_ref().is_none_or(|b| b.owner != after.owner)
            && let Some(claim) = scene.world.claims.get(uid)
        {
            self.record_overtakes(scene, claim, after);
        }
    }

    fn record_overtakes(&mut self, scene: &Scene, served: &Claim, pod: &Pod) {
        let position = served.queue_position();
        for elder in scene.world.claims.values() {
            let listed = |claim| scene.rules.is_known_from_a_list(claim, scene.now);
            let first = if listed(elder) && listed(served) && !elder.is_as_it_came() {
                (Reverse(elder.priority), &elder.created) < (Reverse(served.priority), &served.created)
            } else {
                elder.queue_position() < position
            };
            let waited = scene.now.duration_since(elder.came_at) > scene.rules.same_moment;
            if elder.pool == served.pool
                && elder.uid != served.uid
                && elder.waits()
                && first
                && waited
                && scene.world.can_ever_serve(elder)
            {
                self.0.push(Overtake {
                    at: scene.now,
                    elder: elder.uid.clone(),
                    served: served.uid.clone(),
                    pod: pod.uid.clone(),
                    revision: pod.revision.clone(),
                    sentence: format!(
                        "claim {} (priority {}) was served while claim {} (priority {}), which goes first, waited",
                        served.name, served.priority, elder.name, elder.priority
                    ),
                });
            }
        }
    }

    /// Decides the doubts whose moment has passed.
    pub fn confirm(&mut self, scene: &Scene, out: &mut Vec<Finding>, figures: &mut Figures) {
        let moment = scene.rules.same_moment;
        self.0.retain(|overtake| {
            let elder = scene.world.claims.get(&overtake.elder);
            if elder.is_none_or(|e| !e.waits()) {
                figures.swapped += 1;
                return false;
            }
            if scene.now.duration_since(overtake.at) <= moment {
                return true;
            }
            // By now the pool has said which revision its template is.
            let update = |e: &Claim| scene.world.pools.get(&e.pool).map(|p| &p.update_revision);
            if elder.is_some_and(|e| e.latest && update(e) != Some(&overtake.revision)) {
                return false;
            }
            out.push(Finding::new(
                "I7",
                &[&overtake.elder, &overtake.served, &overtake.pod],
                overtake.sentence.clone(),
            ));
            false
        });
    }
}
