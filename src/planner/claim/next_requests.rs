//! Which requests of a claim's plan are sent next: one write on the claim at a time, and a live read before anything is
//! done on the word of the watch alone.

use crate::api::SandboxClaimStatus;
use crate::api::claim::{BoundSandbox, Phase};
use crate::cache::snapshot::ClaimSnapshot;
use crate::model::claim::Claim;
use crate::model::disruption_mark::DisruptionMark;
use crate::model::pod_disruption_budget::BudgetStep;
use crate::model::retry::{NextWrite, Purpose};
use crate::model::sandbox::Sandbox;
use crate::planner::claim::claim_plan::ClaimPlan;
use crate::planner::claim::confirm_loss::confirm_loss;
use crate::planner::claim::release_unpublished::{Release, is_being_read, release};
use jiff::Timestamp;
use std::sync::Arc;

/// The requests to be sent now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimRequests {
    /// The status to write.
    pub status: Option<Box<SandboxClaimStatus>>,
    /// The claim is to be deleted.
    pub delete: bool,
    /// Sandboxes to delete.
    pub release: Vec<Arc<Sandbox>>,
    /// Sandboxes that are to say since when they may be evicted.
    pub marks: Vec<(Arc<Sandbox>, DisruptionMark)>,
    /// Sandboxes that are to say that the claim chose them as replacements.
    pub replacements: Vec<Arc<Sandbox>>,
    /// The write of the claim's PodDisruptionBudget.
    pub budget_step: Option<BudgetStep>,
    /// The claim is to be read.
    pub read_claim: bool,
    /// The sandboxes that the read of the claim is to decide on.
    pub to_release: Vec<Arc<Sandbox>>,
    /// Pods to read, because they seem to be lost.
    pub read_pods: Vec<BoundSandbox>,
    /// When time alone changes what may be sent.
    pub next: Option<Timestamp>,
}

/// The requests of `plan` that may be sent now.
pub fn requests(snapshot: &ClaimSnapshot, plan: ClaimPlan) -> ClaimRequests {
    let mut requests = ClaimRequests {
        next: plan.next,
        marks: plan.marks,
        replacements: plan.replacements,
        budget_step: plan.budget_step,
        ..ClaimRequests::default()
    };
    for sandbox in plan.release {
        match release(snapshot, &sandbox) {
            Release::Now => requests.release.push(sandbox),
            Release::AfterRead => requests.to_release.push(sandbox),
            Release::At(at) => requests.wait(at),
            Release::AfterOutcome => {}
        }
    }
    requests.read_claim = !requests.to_release.is_empty();
    if plan.status.is_none() && !plan.delete {
        return requests;
    }
    let purpose = purpose(&snapshot.claim, plan.status.as_deref());
    let next = snapshot.write.as_ref().map_or(NextWrite::Write, |write| {
        write.next(purpose, &snapshot.claim.resource_version, snapshot.now)
    });
    match next {
        NextWrite::Await => {}
        NextWrite::Wait(at) => requests.wait(at),
        // A read that is under way was sent before the conflict.
        NextWrite::Read => requests.read_claim |= !is_being_read(snapshot),
        NextWrite::Write if plan.delete => requests.delete = true,
        NextWrite::Write => {
            let loss = confirm_loss(snapshot, plan.confirm_loss);
            requests.read_pods = loss.read_pods;
            loss.retry_at.into_iter().for_each(|at| requests.wait(at));
            if loss.confirmed {
                requests.status = plan.status;
                // The status is written alone: its outcome comes first, and a read sent beside it decides nothing.
                requests.read_claim = false;
                requests.to_release.clear();
            }
        }
    }
    requests
}

/// What writing `status` on `claim` is for; `None`: the claim is deleted.
pub fn purpose(claim: &Claim, status: Option<&SandboxClaimStatus>) -> Purpose {
    let has_ended = matches!(claim.status.phase, Some(Phase::Failed | Phase::Expired));
    match status.map(|status| status.phase) {
        Some(Some(Phase::Failed | Phase::Expired)) if has_ended => Purpose::Report,
        Some(Some(Phase::Bound)) if claim.waiting() => Purpose::Publish,
        None | Some(Some(Phase::Failed | Phase::Expired)) => Purpose::End,
        Some(None | Some(Phase::Pending | Phase::Bound)) => Purpose::Report,
    }
}

impl ClaimRequests {
    fn wait(&mut self, until: Timestamp) {
        self.next = Some(self.next.map_or(until, |next| next.min(until)));
    }
}
