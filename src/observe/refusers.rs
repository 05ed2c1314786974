//! Sandboxes that could not be bound to a claim because the API server would not have it. Whether that is the claim's doing
//! or the sandbox's nobody says: the claim is to try another, and no other claim is to miss the sandbox for it.

use super::claim::Claim;
use super::index::Index;
use super::sandbox::{Owner, Sandbox};
use crate::api::labels;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// So many are remembered of one claim, and then it begins anew.
const MOST: usize = 8;

/// Refusers, by UID of the claim.
#[derive(Clone, Debug, Default)]
pub struct Refusers(HashMap<String, Vec<Arc<Sandbox>>>);

impl Refusers {
    /// `sandbox` could not be bound to the claim with UID `claim`. Once all that there were have been tried, the claim tries
    /// them again.
    pub fn note(&mut self, claim: &str, sandbox: &Arc<Sandbox>) {
        let known = self.0.entry(claim.to_string()).or_default();
        if known.len() >= MOST || known.iter().any(|other| other.uid == sandbox.uid) {
            known.clear();
        }
        known.push(Arc::clone(sandbox));
    }

    /// The claim with UID `claim` waits no more.
    pub fn forget(&mut self, claim: &str) {
        self.0.remove(claim);
    }
}

impl Index {
    /// The sandboxes that were refused to `claim`, if there are others that it may get.
    pub fn refusers_of(&self, claim: &Claim) -> Vec<Arc<Sandbox>> {
        let Some(refusers) = self.refusers.0.get(&claim.uid) else {
            return Vec::new();
        };
        let free = |sandbox: &&Arc<Sandbox>| {
            let warm = sandbox.state == labels::WARM && matches!(sandbox.owner, Owner::Pool { .. });
            let ready = sandbox.ready_since.is_some() && !sandbox.terminating;
            warm && ready && self.pending.on(&sandbox.uid).is_none()
        };
        let pools = self.accepted_by(claim);
        let sandboxes = pools.filter_map(|pool| self.sandboxes.get(&pool.key));
        let free = sandboxes.flat_map(BTreeMap::values).filter(free).cloned();
        let (known, others): (Vec<_>, Vec<_>) =
            free.partition(|sandbox| refusers.iter().any(|refuser| refuser.uid == sandbox.uid));
        if others.is_empty() { others } else { known }
    }
}
