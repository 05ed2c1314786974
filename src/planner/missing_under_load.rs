//! Whether claims alone keep a pool from ever being full.

use crate::model::sandbox::{Owner, Sandbox};
use crate::planner::draft::Draft;
use jiff::SignedDuration;

/// How long a rollout waits for the pool to be full whatever the load is.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);
/// From this many claims in one warm-up time on, a steady load hardly ever leaves the pool full: when 4 sandboxes are
/// missing on average, none is missing 2 % of the time (Poisson).
const HEAVY: usize = 4;
/// The API writes in whole seconds when a sandbox was created and became Ready, and the creation follows the binding a
/// moment later.
const PRECISION: SignedDuration = SignedDuration::from_secs(1);

/// Whether a steady load explains why `missing` sandboxes are not available: the rollout has waited [`PATIENCE`] for a
/// full pool, no more are missing than a rollout may replace at once, and in one warm-up time claims took [`HEAVY`]
/// sandboxes or more, and at least as many as are missing.
pub(crate) fn explains(draft: &Draft, missing: usize) -> bool {
    let now = draft.snapshot.now;
    let has_waited = draft
        .rollout_start
        .is_none_or(|start| now.duration_since(start) >= PATIENCE);
    if !has_waited || missing > draft.snapshot.pool.spec.rollout_width() {
        return false;
    }
    let claimed = claimed_meanwhile(draft);
    claimed >= HEAVY && claimed >= missing
}

/// How many sandboxes claims took within the time that a sandbox of the update revision takes to become available.
/// Claims are remembered for [`crate::cache::recent_claims::LATELY`].
pub(crate) fn claimed_meanwhile(draft: &Draft) -> usize {
    let Some(time) = warm_up_time(draft) else {
        return 0;
    };
    let window = time.saturating_add(PRECISION);
    let claims = draft.snapshot.recent_claims.iter();
    claims
        .filter(|at| draft.snapshot.now.duration_since(**at) <= window)
        .count()
}

/// The median time from creation to availability of the sandboxes of the update revision that came up in this rollout,
/// claimed sandboxes included; `None` if none did.
fn warm_up_time(draft: &Draft) -> Option<SignedDuration> {
    let pool = &draft.snapshot.pool;
    let counts = |sandbox: &Sandbox| match &sandbox.owner {
        Owner::Claim { .. } => draft.is_of_rollout(sandbox),
        Owner::Pool { uid } => *uid == pool.uid,
        Owner::Other => false,
    };
    let time = |sandbox: &Sandbox| {
        let ready_since = sandbox.ready_since.filter(|_| counts(sandbox))?;
        let min_ready = pool.spec.availability_rule.min_ready;
        Some(
            ready_since
                .duration_since(sandbox.created)
                .saturating_add(min_ready),
        )
    };
    let sandboxes = draft.snapshot.sandboxes.iter().map(|entry| &entry.sandbox);
    let of_update = sandboxes.filter(|sandbox| sandbox.revision == draft.revisions.update.hash);
    let mut times: Vec<_> = of_update.filter_map(|sandbox| time(sandbox)).collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}
