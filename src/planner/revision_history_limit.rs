//! Which stored revisions are over `revisionHistoryLimit`.

use crate::cache::snapshot::PoolSnapshot;
use crate::model::revision::Revision;
use std::collections::HashSet;
use std::sync::Arc;

/// Old revisions that no sandbox runs, beyond the history limit, oldest first. `by_age` holds all, oldest first.
pub(crate) fn over_limit(
    snapshot: &PoolSnapshot,
    by_age: &[&Arc<Revision>],
    update: &str,
) -> Vec<Arc<Revision>> {
    if by_age.len() <= snapshot.pool.spec.history_limit {
        return Vec::new();
    }
    let live: HashSet<&str> = snapshot
        .sandboxes
        .iter()
        .map(|s| s.sandbox.revision.as_str())
        .chain(snapshot.creating.iter().map(|c| c.revision.as_str()))
        .chain([update, snapshot.pool.status.current_revision.as_str()])
        .collect();
    let old: Vec<_> = by_age
        .iter()
        .filter(|r| !live.contains(r.hash.as_str()))
        .collect();
    let excess = old.len().saturating_sub(snapshot.pool.spec.history_limit);
    old.into_iter().take(excess).map(|r| Arc::clone(r)).collect()
}
