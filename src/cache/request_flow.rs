//! Which requests share their part of a limit: writes on the sandboxes of one pool, or on the claims of one namespace.
//!
//! Admission webhooks and policies select namespaces and labels of objects. So where admission is slow, it is slow for
//! the pods of a pool, whose labels come from one template, or for the claims of a namespace.

use crate::cache::request_lane::publishes;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::request::{BudgetOwner, PodChange, Request};

/// Namespace and pool; no pool for requests about the claims of the namespace.
pub(crate) type Flow = Key;

/// The flow of a request.
pub(crate) fn of(request: &Request) -> Flow {
    match request {
        Request::WritePod(write) => match &write.change {
            PodChange::Bind { pool, .. } => pool.key.clone(),
            _ => Key::new(write.sandbox.key.namespace.clone(), write.sandbox.pool.clone()),
        },
        Request::CreatePod(creation) => creation.pool.key.clone(),
        Request::WriteClaim(write) if publishes(request) => {
            Key::new(write.claim.key.namespace.clone(), write.status.pool.as_str())
        }
        Request::WriteClaim(write) => of_claim(&write.claim),
        Request::DeleteClaim(claim) | Request::ReadClaim(claim) | Request::ReadLostPod(claim, _) => {
            of_claim(claim)
        }
        Request::ReadPod(pod) => Key::new(pod.namespace.clone(), ""),
        Request::WritePool(write) => write.pool.key.clone(),
        Request::Revision(request) => request.pool.key.clone(),
        Request::DisruptionBudget(request) => match &request.owner {
            BudgetOwner::Pool(pool) => pool.key.clone(),
            BudgetOwner::Claim(claim) => of_claim(claim),
        },
    }
}

/// The flow of the requests about a claim, but for its bindings and their publication.
pub(crate) fn of_claim(claim: &Claim) -> Flow {
    Key::new(claim.key.namespace.clone(), "")
}
