//! Sandboxes that could not be bound to a claim because the API server would not have it. Whether that is the claim's doing
//! or the sandbox's nobody says: the claim is to try another, and no other claim is to miss the sandbox for it.

use super::claim::Claim;
use super::index::Index;
use super::pool::Pool;
use super::sandbox::{Owner, Sandbox};
use crate::api::labels;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// UIDs of refusers, by UID of the claim.
#[derive(Clone, Debug, Default)]
pub struct Refusers(HashMap<String, HashSet<String>>);

impl Refusers {
    /// The claim with UID `claim` waits no more.
    pub fn forget(&mut self, claim: &str) {
        self.0.remove(claim);
    }
}

impl Index {
    /// `sandbox` could not be bound to `claim`. Once all that there were have been tried, the claim tries them again.
    pub fn note_refuser(&mut self, claim: &Claim, sandbox: &Sandbox) {
        let mut known = self.refusers.0.remove(&claim.uid).unwrap_or_default();
        if known.contains(&sandbox.uid) {
            known.clear();
        } else {
            // What has gone is not remembered.
            let there: HashSet<&str> = self.free_for(claim).map(|sandbox| sandbox.uid.as_str()).collect();
            known.retain(|uid| there.contains(uid.as_str()));
        }
        known.insert(sandbox.uid.clone());
        self.refusers.0.insert(claim.uid.clone(), known);
    }

    /// The free sandboxes that were refused to `claim`, if its pools have other free ones.
    pub fn refusers_of(&self, claim: &Claim) -> Vec<Arc<Sandbox>> {
        let Some(refusers) = self.refusers.0.get(&claim.uid) else {
            return Vec::new();
        };
        let idle = |sandbox: &&Arc<Sandbox>| self.pending.on(&sandbox.uid).is_none();
        let free = self.free_for(claim).filter(idle).cloned();
        let (known, others): (Vec<_>, Vec<_>) = free.partition(|sandbox| refusers.contains(&sandbox.uid));
        if others.is_empty() { others } else { known }
    }

    /// The sandboxes that `claim` may take as far as they tell: where it holds some already, of the same pool.
    fn free_for(&self, claim: &Claim) -> impl Iterator<Item = &Arc<Sandbox>> {
        let holds_of = self.pool_held_of(claim);
        let pools = self.accepted_by(claim);
        let pools = pools.filter(move |pool| holds_of.as_ref().is_none_or(|key| *key == pool.key));
        pools.flat_map(|pool| {
            let sandboxes = self.sandboxes.get(&pool.key);
            let sandboxes = sandboxes.into_iter().flat_map(BTreeMap::values);
            sandboxes.filter(|sandbox| is_free(pool, sandbox))
        })
    }
}

fn is_free(pool: &Pool, sandbox: &Sandbox) -> bool {
    let warm = sandbox.state == labels::WARM && !sandbox.evict;
    let ready = sandbox.ready_since.is_some() && !sandbox.terminating;
    warm && ready && matches!(&sandbox.owner, Owner::Pool { uid } if *uid == pool.uid)
}
