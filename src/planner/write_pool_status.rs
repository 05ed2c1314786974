//! When the status of a pool is written: at once, but at most once a second.

use crate::api::PoolStatus;
use crate::model::retry::{NextWrite, Purpose};
use crate::planner::actions::{WriteStatus, bindings};
use crate::planner::draft::Draft;
use crate::planner::observed_counts::number;
use jiff::{SignedDuration, Timestamp};

/// Least time between two writes of one pool's status. Claims and rollouts change the status many times a second;
/// nobody reads it as fast, and each write takes the API server as long as a binding.
const STATUS_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// When `status` is written: when it says something new and the last write is long enough ago. A waiting claim that
/// this plan binds is not news: writing it would delay, by a second, the status that counts the claim as bound.
pub(crate) fn when(draft: &Draft, status: &mut PoolStatus) -> WriteStatus {
    let (snapshot, pool, now) = (draft.snapshot, &draft.snapshot.pool, draft.snapshot.now);
    if *status == pool.status || is_stored_in_a_moment(draft, status) {
        return WriteStatus::No;
    }
    let next = snapshot.status_write.as_ref().map_or(NextWrite::Write, |write| {
        write.next(Purpose::Report, &pool.resource_version, now)
    });
    match next {
        NextWrite::Await => WriteStatus::No,
        NextWrite::Wait(at) => WriteStatus::At(at),
        NextWrite::Read | NextWrite::Write => {
            status_due(snapshot.status_written_at, now).map_or(WriteStatus::Now, WriteStatus::At)
        }
    }
}

/// Whether the stored status differs only in the waiting claims that this plan binds. Changes `status` and restores it,
/// which costs less than a copy.
fn is_stored_in_a_moment(draft: &Draft, status: &mut PoolStatus) -> bool {
    let now = status.pending_claims;
    status.pending_claims = now.saturating_sub(number(bindings(&draft.actions).len()));
    let is_stored = *status == draft.snapshot.pool.status;
    status.pending_claims = now;
    is_stored
}

/// When a status may be written again that was written at `written_at`; `None` when it may be at `now`. A clock that
/// was set back does not silence the status.
pub fn status_due(written_at: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let due = written_at?.checked_add(STATUS_INTERVAL).ok()?;
    (due > now && due.duration_since(now) <= STATUS_INTERVAL).then_some(due)
}
