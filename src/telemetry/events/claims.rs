//! Which events a claim gets: one for each notable change, and none for a claim that was served at once.

use crate::api::claim::Phase;
use crate::api::conditions::claim as reasons;
use crate::api::{API_VERSION, SandboxClaimStatus, conditions};
use crate::model::claim::Claim;
use crate::telemetry::events::event::event;
use clap::ValueEnum;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};
use std::time::{Duration, Instant};

/// Reasons of events that are not reasons of conditions.
const WAITING: &str = "Waiting";
const FAILED: &str = "Failed";
const REPLACED: &str = "Replaced";
/// Actions.
const BIND: &str = "Bind";
const END: &str = "End";

/// Events of claims that may be written at once, after a while without any.
const BURST: u32 = 100;
/// How long it takes until one more may be written. Each event is a write, and claims may come by the hundred each
/// second.
const PER_EVENT: Duration = Duration::from_millis(200);

/// Which claims get events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ClaimEvents {
    /// None
    None,
    /// Events of a claim that waits, fails, loses a sandbox or expires
    #[default]
    Notable,
    /// Also the binding of each claim that was served at once
    All,
}

/// Limits how many events of claims are written.
#[derive(Debug)]
pub(crate) struct EventLimit {
    left: u32,
    since: Instant,
}

impl EventLimit {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            left: BURST,
            since: now,
        }
    }

    /// Whether one more may be written at `now`.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let passed = now.duration_since(self.since);
        let regained = u32::try_from(passed.as_millis() / PER_EVENT.as_millis()).unwrap_or(BURST);
        if regained > 0 {
            self.left = self.left.saturating_add(regained).min(BURST);
            self.since = now;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

/// The events about the change from the claim's status to `status`.
pub fn transitions(claim: &Claim, status: &SandboxClaimStatus, which: ClaimEvents) -> Vec<Event> {
    if which == ClaimEvents::None {
        return Vec::new();
    }
    let (before, was_bound) = (claim.status.phase, claim.status.wait_seconds.is_some());
    let bound = conditions::find(&status.conditions, conditions::BOUND);
    let (reason, message) = bound.map_or(("", ""), |c| (c.reason.as_str(), c.message.as_str()));
    let said = conditions::find(&claim.status.conditions, conditions::BOUND);
    let loses = reason == reasons::SANDBOX_LOST
        && said.is_none_or(|said| (said.reason.as_str(), said.message.as_str()) != (reason, message));
    let tells_why = || format!("{reason}: {message}");
    let mut events = Vec::new();
    if loses {
        events.push(event(EventType::Warning, reason, BIND, message, None));
    }
    match status.phase {
        Some(Phase::Pending) if before.is_none() => {
            events.push(event(EventType::Normal, WAITING, BIND, &tells_why(), None));
        }
        Some(Phase::Bound) if before != Some(Phase::Bound) => {
            let waited = before == Some(Phase::Pending);
            if was_bound || waited || which == ClaimEvents::All {
                events.push(binding(claim, status, was_bound));
            }
        }
        Some(Phase::Failed) if before != Some(Phase::Failed) => {
            events.push(event(EventType::Warning, FAILED, END, &tells_why(), None));
        }
        Some(Phase::Expired) if before != Some(Phase::Expired) => {
            events.push(event(EventType::Normal, reasons::EXPIRED, END, message, None));
        }
        _ => {}
    }
    events
}

/// The event that a claim has its sandboxes, for the first time or `again` after a loss.
fn binding(claim: &Claim, status: &SandboxClaimStatus, again: bool) -> Event {
    let known = |uid: &str| claim.status.sandboxes.iter().any(|sandbox| sandbox.uid == uid);
    let new: Vec<_> = status.sandboxes.iter().filter(|s| !known(&s.uid)).collect();
    let first = new.first().copied().or(status.sandboxes.first());
    let name = first.map_or("", |sandbox| sandbox.name.as_str());
    let others = match new.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (pool, wait) = (&status.pool, &status.wait);
    let pod = first.map(|sandbox| ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Pod".into()),
        name: Some(sandbox.name.clone()),
        namespace: Some(claim.key.namespace.to_string()),
        uid: Some(sandbox.uid.clone()),
        ..Default::default()
    });
    let (reason, note) = if again {
        (
            REPLACED,
            format!("sandbox {name}{others} of pool {pool} replaces what was lost"),
        )
    } else {
        (
            reasons::BOUND,
            format!("bound to sandbox {name}{others} of pool {pool} after {wait}"),
        )
    };
    event(EventType::Normal, reason, BIND, &note, pod)
}

/// What the events of `claim` are about.
pub(crate) fn claim_reference(claim: &Claim) -> ObjectReference {
    ObjectReference {
        api_version: Some(API_VERSION.into()),
        kind: Some("SandboxClaim".into()),
        name: Some(claim.key.name.to_string()),
        namespace: Some(claim.key.namespace.to_string()),
        uid: Some(claim.uid.to_string()),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_events_is_cut_and_a_pause_makes_way_for_more() {
        let start = Instant::now();
        let mut limit = EventLimit::new(start);
        let taken = |limit: &mut EventLimit, at| (0..1_000).filter(|_| limit.take(at)).count();
        assert_eq!(taken(&mut limit, start), 100);
        assert_eq!(taken(&mut limit, start + PER_EVENT * 7), 7);
        assert_eq!(taken(&mut limit, start + Duration::from_secs(3_600)), 100);
    }
}
