//! Checks I2: a bound claim ends only after a loss or its lifetime.

use super::claim::Claim;
use super::world::{Pool, Step};
use super::{Finding, Scene};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// A binding is seen this much later than it was decided on. What was waited for a processor does not count.
const SEEN_LATE: SignedDuration = SignedDuration::from_secs(1);

/// The shortest `lifetimeSeconds` that the `claimDefaults` of each pool have had. Which of them a claim was bound under its
/// status says, and that is the word of the operator that is judged.
#[derive(Default)]
pub struct Ends(BTreeMap<String, i64>);

impl Ends {
    pub fn judge(&mut self, scene: &Scene, step: &Step, out: &mut Vec<Finding>) {
        match step {
            Step::Pool(Some(pool)) => self.note(pool),
            Step::Claim(_, Some(after)) if scene.rules.forged.contains(&after.name) => {}
            Step::Claim(Some(before), Some(after)) if before.phase != after.phase => {
                let fault = match after.phase.as_str() {
                    "Failed" if before.phase == "Bound" => lost_no_sandbox(scene, before),
                    "Expired" => self.too_early(scene, before, after),
                    _ => None,
                };
                if let Some(fault) = fault {
                    let sentence = format!("claim {} became {} {fault}", after.name, after.phase);
                    let sandboxes = before.sandboxes.iter().map(String::as_str);
                    let about: Vec<&str> = sandboxes.chain([after.uid.as_str()]).collect();
                    out.push(Finding::new("I2", &about, sentence));
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, pool: &Pool) {
        if let Some(seconds) = pool.lifetime {
            let shortest = self.0.entry(pool.name.clone()).or_insert(seconds);
            *shortest = seconds.min(*shortest);
        }
    }

    fn too_early(&self, scene: &Scene, before: &Claim, after: &Claim) -> Option<String> {
        let end = after
            .shutdown
            .or_else(|| self.end_of_lifetime(scene, before, after));
        let Some(end) = end else {
            return Some("and has no time to live".into());
        };
        (scene.now + scene.rules.clock < end).then(|| format!("before {end}"))
    }

    fn end_of_lifetime(&self, scene: &Scene, before: &Claim, after: &Claim) -> Option<Timestamp> {
        let default = self.0.get(&before.pool).copied();
        let lifetime = SignedDuration::from_secs(after.lifetime.or(default)?);
        // An operator that takes the binding for older than it is ends the claim too early as well.
        let bound = scene.rules.before(before.first_served?, SEEN_LATE);
        bound.checked_add(lifetime).ok()
    }
}

/// A sandbox that ended with success is not lost: its tenant ended it.
fn lost_no_sandbox(scene: &Scene, claim: &Claim) -> Option<String> {
    let is_there = |uid: &String| {
        let pod = scene.world.pods.get(uid);
        pod.is_some_and(|pod| !pod.terminating && pod.phase != "Failed")
    };
    claim
        .sandboxes
        .iter()
        .all(is_there)
        .then(|| "with all its sandboxes there".into())
}
