//! Logs and counts what becomes of claims: one line per status written.

use crate::api::SandboxClaimStatus;
use crate::api::claim::{BoundSandbox, Phase};
use crate::api::conditions;
use crate::cache::shared::SharedCache;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::telemetry::metrics::Metrics;
use tracing::field::display;

/// Logs and counts that `status` has been written for `claim`.
pub(crate) fn log_outcome(
    metrics: &Metrics,
    shared: &SharedCache,
    claim: &Claim,
    status: &SandboxClaimStatus,
) {
    let key = Key::new(&claim.key.namespace, &status.pool);
    let known = shared.lock().pool(&key).map(|_| &key);
    metrics.meters.decided(known, claim, status);
    let was_bound = claim.status.phase == Some(Phase::Bound);
    let (outcome, type_) = match status.phase {
        Some(Phase::Bound) if was_bound => ("updated", conditions::READY),
        Some(Phase::Bound) => ("bound", conditions::BOUND),
        Some(Phase::Failed) => ("failed", conditions::BOUND),
        Some(Phase::Expired) => ("expired", conditions::BOUND),
        Some(Phase::Pending) | None => ("waits", conditions::BOUND),
    };
    let condition = conditions::find(&status.conditions, type_);
    let (reason, message) = condition.map_or(("", ""), |c| (c.reason.as_str(), c.message.as_str()));
    let (claim, pool) = (&claim.key, known.map(display));
    if outcome == "bound" {
        let (pods, wait) = (names(&status.sandboxes), status.wait_seconds);
        let warm = status.sandboxes.iter().all(|sandbox| sandbox.warm);
        tracing::info!(%claim, pool, pods, warm, wait_seconds = wait, "claim bound");
    } else {
        tracing::info!(%claim, pool, reason, "claim {outcome}: {message}");
    }
}

/// The names of the pods, separated by commas.
pub(crate) fn names(sandboxes: &[BoundSandbox]) -> String {
    let names: Vec<_> = sandboxes.iter().map(|s| s.name.as_str()).collect();
    names.join(",")
}
