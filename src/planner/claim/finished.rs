//! A claim that has ended: which sandboxes it releases, and when it is deleted.

use crate::api::claim::ReleasePolicy;
use crate::cache::snapshot::ClaimSnapshot;
use crate::planner::claim::claim_plan::ClaimPlan;
use crate::planner::claim::unpublished::unpublished;

/// A Failed claim keeps the sandboxes that its tenant knows of until it is deleted.
pub(crate) fn failed(snapshot: &ClaimSnapshot) -> ClaimPlan {
    ClaimPlan {
        release: unpublished(snapshot),
        ..gone_in_time(snapshot)
    }
}

pub(crate) fn expired(snapshot: &ClaimSnapshot) -> ClaimPlan {
    let release = match snapshot.resolved_spec.release_policy {
        ReleasePolicy::Delete => snapshot
            .sandboxes
            .iter()
            .filter(|s| !s.terminating)
            .cloned()
            .collect(),
        ReleasePolicy::Retain => unpublished(snapshot),
    };
    ClaimPlan {
        release,
        ..gone_in_time(snapshot)
    }
}

fn gone_in_time(snapshot: &ClaimSnapshot) -> ClaimPlan {
    let finished = snapshot.claim.status.finish_time.as_ref().map(|time| time.0);
    let due = finished
        .zip(snapshot.resolved_spec.ttl)
        .and_then(|(at, ttl)| at.checked_add(ttl).ok());
    ClaimPlan {
        delete: due.is_some_and(|due| due <= snapshot.now),
        next: due,
        ..Default::default()
    }
}
