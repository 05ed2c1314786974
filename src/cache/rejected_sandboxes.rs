//! Sandboxes that could not be bound to a claim because the API server would not have it. Whether that is the claim's doing
//! or the sandbox's nobody says: the claim is to try another, and no other claim is to miss the sandbox for it.

use crate::cache::index::Index;
use crate::model::claim::Claim;
use crate::model::sandbox::Sandbox;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// UIDs of refusers, by UID of the claim.
#[derive(Clone, Debug, Default)]
pub struct RejectedSandboxes(HashMap<String, Arc<HashSet<String>>>);

impl RejectedSandboxes {
    /// The claim with UID `claim` waits no more.
    pub fn forget(&mut self, claim: &str) {
        self.0.remove(claim);
    }

    /// UIDs of the sandboxes that were refused to `claim`.
    pub(crate) fn of(&self, claim: &Claim) -> Arc<HashSet<String>> {
        self.0.get(&claim.uid).map(Arc::clone).unwrap_or_default()
    }
}

impl Index {
    /// `sandbox` could not be bound to `claim`. Once all that there are have been tried, the claim tries them again.
    pub fn note_rejected_sandbox(&mut self, claim: &Claim, sandbox: &Sandbox) {
        let known = self.rejected_sandboxes.of(claim);
        let again = known.contains(&sandbox.uid);
        let pools = self.accepted_by(claim);
        let sandboxes = pools.flat_map(|pool| self.sandboxes_of(&pool.key));
        // What has gone is not remembered.
        let there = sandboxes.filter(|s| !again && known.contains(&s.uid));
        let mut known: HashSet<_> = there.map(|s| s.uid.clone()).collect();
        known.insert(sandbox.uid.clone());
        self.rejected_sandboxes
            .0
            .insert(claim.uid.clone(), Arc::new(known));
    }
}
