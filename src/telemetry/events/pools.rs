//! Which events a pool gets: rollouts and what blocks them, and how often the same warning repeats.

use crate::api::conditions::{self, progressing};
use crate::api::{API_VERSION, PoolStatus};
use crate::model::pool::Pool;
use crate::model::request::PodWrite;
use crate::model::warming_reason;
use crate::planner::leave_nodes;
use crate::telemetry::events::event::event;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::events::{Event, EventType};
use smol_str::SmolStr;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Reason of the event that a rollout resumes; no condition says so.
const RESUMED: &str = "Resumed";
/// Action of events about revisions.
const ROLL_OUT: &str = "RollOut";
/// Reason and action of the event that sandboxes do not become available.
const NOT_AVAILABLE: &str = "SandboxesNotAvailable";
const WARM_UP: &str = "WarmUp";
/// Action of events about sandboxes that cannot be created.
const CREATE: &str = "CreateSandboxes";
/// Action of events about sandboxes that have to leave their nodes.
const DRAIN: &str = "DrainNode";
/// Least time between two warnings of a pool with the same reason. A full pool becomes exhausted again with each claim
/// that comes and goes.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);

/// Limits how often a pool is warned for the same reason.
#[derive(Debug, Default)]
pub(crate) struct WarningLimit {
    /// When each pool was last warned, by UID and reason.
    warned: HashMap<(SmolStr, String), Instant>,
}

impl WarningLimit {
    /// Whether `pool` may be warned for this reason at `now`. If so, the warning counts as sent.
    pub(crate) fn take(&mut self, pool: &Pool, reason: &str, now: Instant) -> bool {
        self.warned
            .retain(|_, last| now.duration_since(*last) < BETWEEN_WARNINGS);
        let key = (pool.uid.clone(), reason.to_string());
        let may_warn = !self.warned.contains_key(&key);
        if may_warn {
            self.warned.insert(key, now);
        }
        may_warn
    }
}

/// The warning that a sandbox was deleted before its replacement was available, if `write` did that.
pub(crate) fn unreplaced(write: &PodWrite) -> Option<Event> {
    let note = match write.reason {
        leave_nodes::POLICY_BREAK => "and drainPolicy is Break",
        leave_nodes::DEADLINE_EXCEEDED => "and disruption.drainDeadlineSeconds have passed",
        _ => return None,
    };
    let (sandbox, node) = (
        &write.sandbox.key.name,
        write.sandbox.node.as_deref().unwrap_or_default(),
    );
    let note = format!(
        "sandbox {sandbox} is deleted without an available replacement: it cannot stay on node {node}, {note}"
    );
    Some(event(EventType::Warning, write.reason, DRAIN, &note, None))
}

/// Where the cause of these stands, the log has had a line about it.
pub(crate) fn is_logged(reason: &str) -> bool {
    [
        progressing::INVALID_SPEC,
        progressing::TEMPLATE_NOT_FOUND,
        progressing::TEMPLATE_INVALID,
        conditions::replica_failure::FAILED_CREATE,
    ]
    .contains(&reason)
}

/// The events about the changes from the pool's status to `status`.
pub fn transitions(pool: &Pool, status: &PoolStatus) -> Vec<Event> {
    let before = &pool.status;
    let mut events = rollout(pool, before, status);
    let newly = |type_: &str, truth: &str| {
        let said = conditions::find(&before.conditions, type_);
        conditions::find(&status.conditions, type_).filter(|now| {
            now.status == truth && said.is_none_or(|said| said.status != truth || said.reason != now.reason)
        })
    };
    if let Some(now) = newly(conditions::PROGRESSING, "False") {
        let about = related_object(pool, status, now);
        events.push(event(
            EventType::Warning,
            &now.reason,
            ROLL_OUT,
            &now.message,
            about,
        ));
    }
    events.extend(warming(before, status));
    if let Some(now) = newly(conditions::REPLICA_FAILURE, "True") {
        events.push(event(EventType::Warning, &now.reason, CREATE, &now.message, None));
    }
    if let Some(now) = newly(conditions::EXHAUSTED, "True") {
        events.push(event(
            EventType::Warning,
            conditions::EXHAUSTED,
            CREATE,
            &now.message,
            None,
        ));
    }
    events
}

/// The event that sandboxes do not become available, when the status begins to name a reason or names another.
fn warming(before: &PoolStatus, status: &PoolStatus) -> Option<Event> {
    let message = |status| {
        let condition = conditions::find(status, conditions::AVAILABLE);
        condition.map_or("", |condition| condition.message.as_str())
    };
    let (said, now) = (message(&before.conditions), message(&status.conditions));
    let (_, reason) = warming_reason::split(now);
    let is_news = reason.is_some() && reason != warming_reason::split(said).1;
    let note = warming_reason::sentence_in(now).filter(|_| is_news)?;
    Some(event(EventType::Warning, NOT_AVAILABLE, WARM_UP, note, None))
}

/// The events about the rollout.
fn rollout(pool: &Pool, before: &PoolStatus, status: &PoolStatus) -> Vec<Event> {
    let (said, now) = (progress(before), progress(status));
    let update = &status.update_revision;
    let message = now.map_or("", |c| c.message.as_str());
    let reason = |condition: Option<&Condition>| condition.map_or(String::new(), |c| c.reason.clone());
    let (was, is) = (reason(said), reason(now));
    let new = *update != before.update_revision;
    let becomes = |reason: &str| is == reason && (new || was != reason);
    let mut events = Vec::new();
    let mut add = |reason: &str, note: &str| {
        let about = Some(revision_reference(pool, update));
        events.push(event(EventType::Normal, reason, ROLL_OUT, note, about));
    };
    if new && is == progressing::PAUSED {
        add(
            progressing::NEW_REVISION,
            &format!("the rollout of revision {update} is paused until spec.updateStrategy.paused is false"),
        );
    } else if new {
        add(
            progressing::NEW_REVISION,
            &format!("rolling out revision {update}"),
        );
    }
    if is == progressing::PAUSED && was != progressing::PAUSED {
        add(progressing::PAUSED, message);
    }
    // A fast rollout may be complete by the next status, so only the spec shows that it resumed.
    let resumes = !pool.spec.paused && is != progressing::PAUSED;
    if was == progressing::PAUSED && resumes && now.is_some_and(|c| c.status != "False") {
        add(RESUMED, &format!("the rollout of revision {update} resumes"));
    }
    if becomes(progressing::PARTITION_COMPLETE) {
        add(progressing::PARTITION_COMPLETE, message);
    }
    // A pool whose error is fixed is complete again without a rollout.
    if becomes(progressing::COMPLETE) && status.completed() != before.completed() {
        add(progressing::COMPLETE, message);
    }
    events
}

fn progress(status: &PoolStatus) -> Option<&Condition> {
    conditions::find(&status.conditions, conditions::PROGRESSING)
}

/// The object that keeps the rollout from progressing. Events about different objects are different series.
fn related_object(pool: &Pool, status: &PoolStatus, now: &Condition) -> Option<ObjectReference> {
    match now.reason.as_str() {
        progressing::INVALID_SPEC => None,
        progressing::TEMPLATE_NOT_FOUND | progressing::TEMPLATE_INVALID => {
            pool.template_ref.as_ref().map(|template| ObjectReference {
                api_version: Some("v1".into()),
                kind: Some("PodTemplate".into()),
                name: Some(template.name.to_string()),
                namespace: Some(template.namespace.to_string()),
                ..Default::default()
            })
        }
        _ => Some(revision_reference(pool, &status.update_revision)),
    }
}

/// What the events of `pool` are about.
pub(crate) fn reference(pool: &Pool) -> ObjectReference {
    ObjectReference {
        api_version: Some(API_VERSION.into()),
        kind: Some("Pool".into()),
        name: Some(pool.key.name.to_string()),
        namespace: Some(pool.key.namespace.to_string()),
        uid: Some(pool.uid.to_string()),
        ..Default::default()
    }
}

fn revision_reference(pool: &Pool, hash: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("apps/v1".into()),
        kind: Some("ControllerRevision".into()),
        name: Some(format!("{}-{hash}", pool.key.name)),
        namespace: Some(pool.key.namespace.to_string()),
        ..Default::default()
    }
}
