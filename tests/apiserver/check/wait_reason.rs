//! Checks I8: a waiting claim says why.
//!
//! It is Pending, and its condition Bound has a reason and a message.

use super::claim::Claim;
use super::world::{Owner, Step};
use super::{Finding, Scene};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// A claim must say why it waits within this time, or within [`Rules::idle`](super::Rules::idle) where requests fail, unless
/// others of its pool are served meanwhile. What the operator and the API server wait for a processor does not count.
const SOON: SignedDuration = SignedDuration::from_secs(10);

#[derive(Default)]
pub struct WaitReasons {
    /// Since when each claim waits without a reason, by UID.
    without_reason: BTreeMap<String, Timestamp>,
    /// When a claim on each pool was served last.
    served: BTreeMap<String, Timestamp>,
}

impl WaitReasons {
    pub fn judge(&mut self, scene: &Scene, step: &Step, out: &mut Vec<Finding>) {
        self.advance_time(scene, out);
        match step {
            Step::Claim(_, Some(claim)) if claim.is_undecided() && !claim.has_wait_reason => {
                self.without_reason.entry(claim.uid.clone()).or_insert(scene.now);
            }
            Step::Claim(before, after) => {
                let claim = after.as_ref().or(before.as_ref());
                claim.map(|claim| self.without_reason.remove(&claim.uid));
            }
            Step::Pod(_, Some(pod)) if matches!(pod.owner, Owner::Claim { .. }) => {
                self.served.insert(pod.pool.clone(), scene.now);
            }
            _ => {}
        }
    }

    pub fn advance_time(&mut self, scene: &Scene, out: &mut Vec<Finding>) {
        let Some(idle) = scene.rules.idle else {
            return;
        };
        let soon = SOON.max(idle);
        let served = &self.served;
        self.without_reason.retain(|uid, since| {
            let Some(claim) = scene.world.claims.get(uid) else {
                return true;
            };
            let busy = served.get(&claim.pool).copied();
            let since = scene
                .rules
                .operator_up_since(busy.map_or(*since, |at| at.max(*since)), scene.now);
            let in_time = scene.rules.elapsed(since, scene.now) <= soon;
            if !in_time {
                out.push(Finding::new("I8", &[uid], sentence(claim, soon)));
            }
            in_time
        });
    }
}

fn sentence(claim: &Claim, soon: SignedDuration) -> String {
    format!(
        "claim {} waited for longer than {soon:#} and its status, in phase {:?}, does not say why",
        claim.name, claim.phase
    )
}
