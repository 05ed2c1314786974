//! Notes the requests of a plan as expected and queues them, under the lock that its snapshot was taken under.

use crate::api::{PoolStatus, SandboxClaimStatus};
use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::{ClaimSnapshot, PoolSnapshot, RevisionProgress, SandboxRead};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pod_disruption_budget::BudgetStep;
use crate::model::request::{
    BudgetOwner, BudgetRequest, ClaimWrite, PodChange, PodCreation, PodWrite, PoolWrite, Request,
    RevisionRequest, RevisionStep,
};
use crate::model::retry::{NextWrite, ObjectWrite, Purpose, Stage};
use crate::model::sandbox::Sandbox;
use crate::planner::claim::{ClaimRequests, failure, purpose, release_reason};
use crate::planner::{Action, Plan, Step, WaitsFor, WriteStatus};
use jiff::Timestamp;
use std::sync::Arc;

/// What follows from a committed plan.
#[derive(Default)]
pub struct Committed {
    /// Objects to reconcile because of the plan.
    pub to_reconcile: Vec<ReconcileRequest>,
    /// When time alone changes the plan.
    pub next: Option<Timestamp>,
}

impl Committed {
    /// Time alone changes the plan at `until`, if nothing does before.
    pub(crate) fn wait(&mut self, until: Timestamp) {
        self.next = Some(self.next.map_or(until, |next| next.min(until)));
    }
}

/// Commits the plan of a pool.
pub(crate) fn pool_plan(index: &mut Index, snapshot: &PoolSnapshot, plan: Plan) -> Committed {
    let waits_for_first_pod = |action: &Action| action.waits_for == Some(WaitsFor::FirstPodCreated);
    if let Some(memory) = index.pool_memory_mut(&snapshot.pool) {
        memory.warm_up_failures.clone_from(&plan.failures);
        memory.demand.clone_from(&plan.demand);
        memory.waits_for_first_pod = plan.actions.iter().any(waits_for_first_pod);
    }
    index.count_arrivals(&snapshot.claims);
    bind(index, snapshot, &plan);
    for action in plan.actions.iter().filter(|action| action.waits_for.is_none()) {
        act(index, snapshot, &plan, action);
    }
    if let Some(step) = &plan.revision_step {
        send_revision_step(index, snapshot, step.clone());
    }
    if let Some(step) = &plan.budget_step {
        let owner = BudgetOwner::Pool(Arc::clone(&snapshot.pool));
        send_budget_step(index, owner, step.clone(), snapshot.now);
    }
    let mut to_reconcile = index.record_wait_reasons(plan.waiting);
    let mut assigned = index.assign_pools(&snapshot.selected_pools);
    assigned.retain(|other| *other != ReconcileRequest::Pool(snapshot.key().clone()));
    to_reconcile.extend(assigned);
    if plan.write_status == WriteStatus::Now {
        write_pool(index, snapshot, plan.status);
    }
    Committed {
        to_reconcile,
        next: plan.next,
    }
}

fn bind(index: &mut Index, snapshot: &PoolSnapshot, plan: &Plan) {
    for (claim, sandboxes) in plan.bindings() {
        let has_waited = index.has_waited(claim);
        if let Some(memory) = index.claim_memory_mut(claim) {
            memory.bound_at_once = !has_waited;
        }
        for sandbox in sandboxes {
            let change = PodChange::Bind {
                claim: Arc::clone(claim),
                pool: Arc::clone(&snapshot.pool),
            };
            write_pod(index, sandbox, change, "Available");
        }
    }
}

fn act(index: &mut Index, snapshot: &PoolSnapshot, plan: &Plan, action: &Action) {
    let reason = action.reason;
    match &action.step {
        Step::BindClaim { .. } => {}
        Step::CreatePod { name, revision } => {
            let previous = plan.revisions.previous.as_ref().filter(|p| p.hash == *revision);
            let creation = Arc::new(PodCreation {
                pool: Arc::clone(&snapshot.pool),
                pod: Key::new(snapshot.key().namespace.clone(), name.clone()),
                revision: revision.clone(),
                template: Arc::clone(&previous.unwrap_or(&plan.revisions.update).template),
                reason,
            });
            index.expectations.create(Arc::clone(&creation), snapshot.now);
            index.requests.push(Request::CreatePod(creation), false);
        }
        Step::DeletePod { sandbox } => write_pod(index, Arc::clone(sandbox), PodChange::Delete, reason),
        Step::DrainPod { sandbox } => write_pod(index, Arc::clone(sandbox), PodChange::Drain, reason),
        Step::RestorePod { sandbox } => {
            let hook = snapshot.pool.spec.pre_delete.clone();
            write_pod(index, Arc::clone(sandbox), PodChange::Restore(hook), reason);
        }
        Step::FailClaim { claim, message } => {
            let resolved_spec = claim.resolved_spec(Some(&snapshot.pool.claim_defaults));
            let pool = &snapshot.key().name;
            let status = failure(claim, pool, &resolved_spec, reason, message, snapshot.now);
            write_claim(index, claim, Box::new(status));
        }
    }
}

/// Notes a write on a pod and queues it.
fn write_pod(index: &mut Index, sandbox: Arc<Sandbox>, change: PodChange, reason: &'static str) {
    let write = Arc::new(PodWrite {
        sandbox,
        change,
        reason,
    });
    index.expectations.write(Arc::clone(&write));
    index.requests.push(Request::WritePod(write), false);
}

/// Notes the write of a claim's status and queues it.
fn write_claim(index: &mut Index, claim: &Arc<Claim>, status: Box<SandboxClaimStatus>) {
    let is_retry = note_claim_write(index, claim, purpose(claim, Some(&status)));
    let write = ClaimWrite {
        claim: Arc::clone(claim),
        status,
    };
    index
        .requests
        .push(Request::WriteClaim(Arc::new(write)), is_retry);
}

/// Returns whether the write follows one that failed.
fn note_claim_write(index: &mut Index, claim: &Claim, purpose: Purpose) -> bool {
    let Some(memory) = index.claim_memory_mut(claim) else {
        return false;
    };
    let write = ObjectWrite::sent(memory.write.as_deref(), &claim.resource_version, purpose);
    let is_retry = write.tries.is_some();
    memory.write = Some(Box::new(write));
    // A read before the write does not show what the write lists.
    let is_older =
        |read: &SandboxRead| matches!(read, SandboxRead::ClaimSent(_) | SandboxRead::Unlisted { .. });
    memory.reads.retain(|_, read| !is_older(read));
    is_retry
}

fn send_revision_step(index: &mut Index, snapshot: &PoolSnapshot, step: RevisionStep) {
    let Some(memory) = index.pool_memory_mut(&snapshot.pool) else {
        return;
    };
    let tries = match std::mem::take(&mut memory.revision_request) {
        RevisionProgress::Failed(_, tries) => Some(tries),
        _ => None,
    };
    memory.revision_request = RevisionProgress::Sent(tries);
    let pool = Arc::clone(&snapshot.pool);
    let request = Request::Revision(Arc::new(RevisionRequest { pool, step }));
    index.requests.push(request, false);
}

fn send_budget_step(index: &mut Index, owner: BudgetOwner, step: BudgetStep, now: Timestamp) {
    let Some(memory) = index.budget_memory_mut(&owner) else {
        return;
    };
    memory.note_write(now);
    let request = Request::DisruptionBudget(Arc::new(BudgetRequest { owner, step }));
    index.requests.push(request, false);
}

fn write_pool(index: &mut Index, snapshot: &PoolSnapshot, status: PoolStatus) {
    let pool = Arc::clone(&snapshot.pool);
    if let Some(memory) = index.pool_memory_mut(&pool) {
        memory.note_status_write(&pool.resource_version, snapshot.now);
        let write = Arc::new(PoolWrite { pool, status });
        index.requests.push(Request::WritePool(write), false);
    }
}

/// Commits what may be sent of the plan of a claim.
pub(crate) fn claim_requests(
    index: &mut Index,
    snapshot: &ClaimSnapshot,
    requests: ClaimRequests,
) -> Committed {
    let claim = &snapshot.claim;
    let reason = release_reason(claim);
    for sandbox in requests.release {
        if index.expectations.on(&sandbox.uid).is_none() {
            // The read decided on this one deletion.
            if let Some(memory) = index.claim_memory_mut(claim) {
                memory.reads.remove(&sandbox.uid);
            }
            write_pod(index, sandbox, PodChange::Delete, reason);
        }
    }
    for (sandbox, mark) in requests.marks {
        if index.expectations.on(&sandbox.uid).is_none() {
            write_pod(
                index,
                sandbox,
                PodChange::MarkDisruption(mark),
                "DisruptionPending",
            );
        }
    }
    for sandbox in requests.replacements {
        if index.expectations.on(&sandbox.uid).is_none() {
            let change = PodChange::ChooseReplacement(Arc::clone(claim));
            write_pod(index, sandbox, change, "SandboxLost");
        }
    }
    if let Some(step) = requests.budget_step {
        send_budget_step(index, BudgetOwner::Claim(Arc::clone(claim)), step, snapshot.now);
    }
    if let Some(memory) = index.claim_memory_mut(claim) {
        for sandbox in requests.to_release {
            let seen = SandboxRead::ClaimSent(sandbox.resource_version.clone());
            memory.reads.insert(sandbox.uid.clone(), seen);
        }
        for sandbox in &requests.read_pods {
            memory
                .reads
                .insert(sandbox.uid.as_str().into(), SandboxRead::PodSent);
        }
        let conflicted = memory.write.as_mut().filter(|write| {
            requests.read_claim
                && write.next(write.purpose, &claim.resource_version, snapshot.now) == NextWrite::Read
        });
        if let Some(write) = conflicted {
            write.stage = Stage::Reading;
        }
    }
    let reads = requests.read_pods.into_iter();
    for request in reads.map(|sandbox| Request::ReadLostPod(Arc::clone(claim), sandbox)) {
        index.requests.push(request, false);
    }
    if requests.read_claim {
        index.requests.push(Request::ReadClaim(Arc::clone(claim)), false);
    }
    if requests.delete {
        let is_retry = note_claim_write(index, claim, Purpose::End);
        let request = Request::DeleteClaim(Arc::clone(claim));
        index.requests.push(request, is_retry);
    } else if let Some(status) = requests.status
        && (purpose(claim, Some(&status)) != Purpose::Report
            || index.reports_over_limit.may_report(claim, &index.requests))
    {
        write_claim(index, claim, status);
    }
    Committed {
        to_reconcile: Vec::new(),
        next: requests.next,
    }
}
