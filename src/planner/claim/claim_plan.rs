//! What a claim's plan is.

use crate::api::SandboxClaimStatus;
use crate::api::claim::{BoundSandbox, Phase};
use crate::cache::snapshot::ClaimSnapshot;
use crate::model::claim::Claim;
use crate::model::disruption_mark::DisruptionMark;
use crate::model::pod_disruption_budget::BudgetStep;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use std::collections::HashSet;
use std::sync::Arc;

/// What to do about a claim now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimPlan {
    /// The status to write, when it differs from the stored one.
    pub status: Option<Box<SandboxClaimStatus>>,
    /// Pods of the claim that it may not keep: bound beyond its `replicas` by a second leader, bound while the claim
    /// failed, ended before they were published, or left over from an expired claim.
    pub release: Vec<Arc<Sandbox>>,
    /// Published sandboxes that are to say since when they may be evicted.
    pub marks: Vec<(Arc<Sandbox>, DisruptionMark)>,
    /// Sandboxes that the claim holds and that are to replace lost ones. Each says so before `status` lists it.
    pub replacements: Vec<Arc<Sandbox>>,
    /// Published sandboxes that are not seen any more; a live read has to confirm that before `status` is written.
    pub confirm_loss: Vec<BoundSandbox>,
    /// The next write of the claim's PodDisruptionBudget.
    pub budget_step: Option<BudgetStep>,
    /// The claim has ended and had its time; it is to be deleted.
    pub delete: bool,
    /// When time alone will change the plan.
    pub next: Option<Timestamp>,
}

impl ClaimPlan {
    /// Writes the status if it differs from the stored one.
    pub(crate) fn write(claim: &Claim, status: SandboxClaimStatus) -> Self {
        let status = (status != claim.status).then(|| Box::new(status));
        Self {
            status,
            ..Default::default()
        }
    }
}

/// Why pods of the claim that it may not keep are released.
pub fn release_reason(claim: &Claim) -> &'static str {
    match claim.status.phase {
        Some(Phase::Expired) => "ClaimExpired",
        _ => "NotPublished",
    }
}

/// Pods of the claim that its status does not name.
pub(crate) fn unpublished(snapshot: &ClaimSnapshot) -> Vec<Arc<Sandbox>> {
    let published: HashSet<&str> = snapshot
        .claim
        .status
        .sandboxes
        .iter()
        .map(|sandbox| sandbox.uid.as_str())
        .collect();
    let unlisted =
        |sandbox: &&Arc<Sandbox>| !sandbox.terminating && !published.contains(sandbox.uid.as_str());
    snapshot.sandboxes.iter().filter(unlisted).cloned().collect()
}
