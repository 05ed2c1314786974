//! Which limit holds for a request.

use crate::api::claim::Phase;
use crate::model::request::{ClaimWrite, PodChange, Request};
use smol_str::SmolStr;

/// Requests that share a limit, in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// Bindings.
    Bindings,
    /// Bindings that failed before. A request that is never answered counts until its deadline; with a limit of their
    /// own, retries of such requests cannot delay first tries.
    RetriedBindings,
    /// Other writes on pods.
    Changes,
    /// Other writes on pods that failed before.
    RetriedChanges,
    /// Other statuses of claims, and their deletions. No claim waits for one.
    Statuses,
    /// Those that failed before.
    RetriedStatuses,
    /// Reads.
    Reads,
    /// Statuses, revisions and PodDisruptionBudgets of pools.
    Pools,
}

impl Lane {
    /// The lane of a request.
    pub(crate) fn of(request: &Request, is_retry: bool) -> Self {
        match (request, is_retry) {
            (Request::WriteClaim(write), false) if is_publication(write) => Self::Bindings,
            (Request::WriteClaim(write), true) if is_publication(write) => Self::RetriedBindings,
            (Request::WriteClaim(_) | Request::DeleteClaim(_), false) => Self::Statuses,
            (Request::WriteClaim(_) | Request::DeleteClaim(_), true) => Self::RetriedStatuses,
            (Request::WritePod(_) | Request::CreatePod(_), _) => {
                match (bound_claim(request).is_some(), is_retry) {
                    (true, false) => Self::Bindings,
                    (true, true) => Self::RetriedBindings,
                    (false, false) => Self::Changes,
                    (false, true) => Self::RetriedChanges,
                }
            }
            (Request::ReadPod(_) | Request::ReadLostPod(..) | Request::ReadClaim(_), _) => Self::Reads,
            (Request::WritePool(_) | Request::Revision(_) | Request::DisruptionBudget(_), _) => Self::Pools,
        }
    }
}

/// Whether the request publishes the sandboxes of a waiting claim.
pub(crate) fn publishes(request: &Request) -> bool {
    matches!(request, Request::WriteClaim(write) if is_publication(write))
}

fn is_publication(write: &ClaimWrite) -> bool {
    write.status.phase == Some(Phase::Bound) && write.claim.waiting()
}

/// UID of the claim to which the request binds a pod.
pub(crate) fn bound_claim(request: &Request) -> Option<&SmolStr> {
    match request {
        Request::WritePod(write) => match &write.change {
            PodChange::Bind { claim, .. } => Some(&claim.uid),
            _ => None,
        },
        _ => None,
    }
}
