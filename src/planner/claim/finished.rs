//! A claim that has ended: it gives back what it may not keep, and in its time it is deleted.

use crate::api::claim::ReleasePolicy;
use crate::cache::snapshot::ClaimView;
use crate::planner::claim::{ClaimPlan, unpublished};

/// A Failed claim keeps the sandboxes that its tenant knows of until it is deleted.
pub(crate) fn failed(view: &ClaimView) -> ClaimPlan {
    ClaimPlan {
        release: unpublished(view),
        ..gone_in_time(view)
    }
}

pub(crate) fn expired(view: &ClaimView) -> ClaimPlan {
    let release = match view.terms.release_policy {
        ReleasePolicy::Delete => view
            .sandboxes
            .iter()
            .filter(|s| !s.terminating)
            .cloned()
            .collect(),
        ReleasePolicy::Retain => unpublished(view),
    };
    ClaimPlan {
        release,
        ..gone_in_time(view)
    }
}

fn gone_in_time(view: &ClaimView) -> ClaimPlan {
    let finished = view.claim.status.finish_time.as_ref().map(|time| time.0);
    let due = finished
        .zip(view.terms.ttl)
        .and_then(|(at, ttl)| at.checked_add(ttl).ok());
    ClaimPlan {
        delete: due.is_some_and(|due| due <= view.now),
        next: due,
        ..Default::default()
    }
}
