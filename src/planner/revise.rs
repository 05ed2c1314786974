//! Phase *revise*: which revision the template is, and which revisions to store or delete.

use crate::api::conditions;
use crate::cache::snapshot::{Creation, PoolSnapshot, RevisionProgress};
use crate::model::request::RevisionStep;
use crate::model::revision::{Revision, Template, hash};
use crate::planner::revision_history_limit::over_limit;
use jiff::Timestamp;
use std::sync::Arc;

/// The revisions of a pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Revisions {
    /// Revision of the present template.
    pub update: Known,
    /// The other revision that is known to work, if its template is still stored: the revision that was complete last
    /// or, where none ever was, the newest revision of which a sandbox is Ready.
    pub previous: Option<Known>,
    /// What to write so that the update revision is stored as the newest.
    pub store: Option<Store>,
    /// Stored revisions that are over the history limit, oldest first.
    pub trim: Vec<Arc<Revision>>,
    /// When the update revision is renumbered again, because the same was written a moment ago and was taken back.
    pub renumber_at: Option<Timestamp>,
    /// Hash collisions met so far.
    pub collision_count: i32,
}

/// A revision whose template is known, so that sandboxes can be made from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Short hash.
    pub hash: String,
    /// The template.
    pub template: Arc<Template>,
}

/// How the update revision comes to be stored as the newest.
#[derive(Clone, Debug, PartialEq)]
pub enum Store {
    /// A new ControllerRevision with this number.
    Create(i64),
    /// A stored revision holds the same template. It gets this number, and the pool's change-cause.
    Renumber(Arc<Revision>, i64),
}

/// Finds the update revision by equal content, as a StatefulSet does, so that a template written again gets
/// its old revision back whatever function once named it.
pub fn resolve(snapshot: &PoolSnapshot) -> Revisions {
    let template = &snapshot.pool.template;
    let collision_count = snapshot.pool.status.collision_count.unwrap_or(0);
    if snapshot.pool.error.is_some() {
        let hash = snapshot.pool.status.update_revision.clone();
        return Revisions {
            update: Known {
                hash,
                template: Arc::clone(template),
            },
            collision_count,
            ..Default::default()
        };
    }
    let mut stored: Vec<_> = snapshot
        .revisions
        .iter()
        .filter(|r| r.owner == snapshot.pool.uid)
        .collect();
    stored.sort_by_key(|r| (r.number, r.hash.clone()));
    let newest = stored.last().map_or(0, |r| r.number);
    let same = stored
        .iter()
        .rev()
        .find(|r| r.template.canonical == template.canonical);
    let (hash, store, collision_count) = match same {
        Some(r) => (r.hash.clone(), renumber(r, newest, snapshot), collision_count),
        None => {
            let (hash, collision_count) = fresh_hash(template, collision_count, &snapshot.revisions);
            (hash, Some(Store::Create(newest + 1)), collision_count)
        }
    };
    let renumber_at = store.as_ref().and_then(|store| taken_back(store, snapshot));
    // The revision is stored, so nothing waits for the pause.
    let store = store.filter(|_| renumber_at.is_none());
    let previous = previous(snapshot, &stored, &hash).map(|r| Known {
        hash: r.hash.clone(),
        template: Arc::clone(&r.template),
    });
    let trim = if store.is_none() {
        over_limit(snapshot, &stored, &hash)
    } else {
        Vec::new()
    };
    Revisions {
        update: Known {
            hash,
            template: Arc::clone(template),
        },
        previous,
        store,
        trim,
        renumber_at,
        collision_count,
    }
}

/// When the rollout to the update revision began, as the status says: now, if the status names another revision.
pub(crate) fn rollout_start(snapshot: &PoolSnapshot, revisions: &Revisions) -> Option<Timestamp> {
    let status = &snapshot.pool.status;
    if status.update_revision == revisions.update.hash {
        status.rollout_start_time.as_ref().map(|time| time.0)
    } else {
        Some(conditions::whole_seconds(snapshot.now))
    }
}

/// The next request about a stored revision.
#[derive(Clone, Debug, PartialEq)]
pub enum NextStep {
    /// None is needed, or one is under way.
    None,
    /// The last one failed, and the next may be sent at this moment.
    Wait(Timestamp),
    /// It is to be sent now.
    Send(RevisionStep),
}

/// What follows for the stored revisions. A pool sends one request about them at a time, and none while its pods are
/// rejected.
pub fn next_step(snapshot: &PoolSnapshot, revisions: &Revisions) -> NextStep {
    if matches!(&snapshot.creation, Creation::BackOff { until, .. } if *until > snapshot.now) {
        return NextStep::None;
    }
    match (&snapshot.revision_request, &revisions.store) {
        (RevisionProgress::Sent(_), _) => NextStep::None,
        (RevisionProgress::Failed(_, tries), _) if tries.next_at() > snapshot.now => {
            NextStep::Wait(tries.next_at())
        }
        (progress, Some(Store::Create(number))) => {
            NextStep::Send(create_step(progress, *number, &revisions.update))
        }
        (_, Some(Store::Renumber(revision, number))) => {
            NextStep::Send(RevisionStep::Renumber(Arc::clone(revision), *number))
        }
        (progress, None) => match trim_step(progress, &revisions.trim, snapshot.now) {
            NextStep::None => revisions.renumber_at.map_or(NextStep::None, NextStep::Wait),
            step => step,
        },
    }
}

/// The step by which the update revision comes to be stored under its name.
fn create_step(progress: &RevisionProgress, number: i64, update: &Known) -> RevisionStep {
    let hash = update.hash.clone();
    match progress {
        RevisionProgress::Failed(step, _) if step.is_about(&hash) => step.clone(),
        RevisionProgress::NameTaken => RevisionStep::Read { hash },
        RevisionProgress::Unlabeled(uid) => RevisionStep::Label {
            hash,
            uid: uid.clone(),
        },
        _ => RevisionStep::Create {
            hash,
            template: Arc::clone(&update.template),
            number,
        },
    }
}

/// The deletion of the oldest revision over the history limit.
fn trim_step(progress: &RevisionProgress, over_limit: &[Arc<Revision>], now: Timestamp) -> NextStep {
    match (over_limit.first(), progress) {
        (None, _) => NextStep::None,
        (Some(_), RevisionProgress::TrimFailed(again)) if *again > now => NextStep::Wait(*again),
        (Some(oldest), _) => NextStep::Send(RevisionStep::Delete(Arc::clone(oldest))),
    }
}

/// Finds [`Revisions::previous`] among the stored revisions.
fn previous<'a>(
    snapshot: &PoolSnapshot,
    by_age: &[&'a Arc<Revision>],
    update: &str,
) -> Option<&'a Arc<Revision>> {
    let complete = &snapshot.pool.status.current_revision;
    let is_ready = |hash: &str| {
        let sandboxes = snapshot.sandboxes.iter().map(|s| &s.sandbox);
        let mut of_revision = sandboxes.filter(|s| s.revision == hash);
        of_revision.any(|s| s.ready_since.is_some() && !s.terminating)
    };
    let works = |hash: &str| {
        if complete.is_empty() {
            is_ready(hash)
        } else {
            hash == complete
        }
    };
    let mut others = by_age.iter().rev().filter(|r| r.hash != update);
    others.find(|r| works(&r.hash)).copied()
}

/// The newest revision keeps its number. Users often say why only after the change, so its change-cause still follows
/// the pool's.
fn renumber(same: &Arc<Revision>, newest: i64, snapshot: &PoolSnapshot) -> Option<Store> {
    if same.number < newest {
        Some(Store::Renumber(Arc::clone(same), newest + 1))
    } else if same.change_cause != snapshot.pool.change_cause {
        Some(Store::Renumber(Arc::clone(same), newest))
    } else {
        None
    }
}

/// When `store` may be sent again, if it is what was written a moment ago.
fn taken_back(store: &Store, snapshot: &PoolSnapshot) -> Option<Timestamp> {
    let (Store::Renumber(revision, number), RevisionProgress::Renumbered(last)) =
        (store, &snapshot.revision_request)
    else {
        return None;
    };
    let asks = (&revision.uid, *number, &snapshot.pool.change_cause);
    let is_same = asks == (&last.revision, last.number, &last.change_cause);
    (is_same && last.until > snapshot.now).then_some(last.until)
}

/// The first hash that no stored revision with another template bears.
fn fresh_hash(template: &Template, mut collisions: i32, stored: &[Arc<Revision>]) -> (String, i32) {
    loop {
        let hash = hash(&template.canonical, collisions);
        if stored.iter().all(|r| r.hash != hash) {
            return (hash, collisions);
        }
        collisions += 1;
    }
}
