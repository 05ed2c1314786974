//! Reads a claim's object into typed fields.

use super::event::{Event, condition, items, strings, text};
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Order of service: highest priority first, then age. Age is the creation time in whole seconds, and a claim may be
/// stored after a claim of the next second.
pub type QueuePosition = (Reverse<i64>, String, u64);

#[derive(Clone, Debug)]
pub struct Claim {
    pub uid: String,
    pub name: String,
    pub pool: String,
    /// Sandboxes that it asks for.
    pub wanted: usize,
    /// Any pool with these labels may serve it; `pool` is the assigned pool, once the status says so.
    pub selector: Option<BTreeMap<String, String>>,
    /// A sandbox that it loses is replaced.
    pub replaces: bool,
    /// It takes what the refill brings, and has nothing made for it.
    pub only_waits: bool,
    pub priority: i64,
    /// Only a sandbox of the update revision will do.
    pub latest: bool,
    pub phase: String,
    /// Its condition Bound has a reason and a message, and its phase fits.
    pub has_wait_reason: bool,
    pub terminating: bool,
    /// Stored under a looser schema, it asks for nothing that can be understood.
    pub unreadable: bool,
    /// UIDs of the sandboxes that its status names.
    pub sandboxes: Vec<String>,
    /// Creation time as stored, in whole seconds.
    pub created: String,
    /// Its first event: when it came, in the order of all events.
    pub came_rv: u64,
    pub came_at: Timestamp,
    /// When it came or, where it waits again for sandboxes that it lost, since when.
    pub waits_since: Timestamp,
    /// Its latest event.
    rv: u64,
    /// When it had all its pods; none while it waits for replacements of lost pods.
    pub served_at: Option<Timestamp>,
    /// When it had all its pods for the first time.
    pub first_served: Option<Timestamp>,
    /// When its spec has it end.
    pub shutdown: Option<Timestamp>,
    /// How many seconds after its binding its spec has it end.
    pub lifetime: Option<i64>,
    /// It keeps its sandboxes when it expires.
    pub retains: bool,
}

impl Claim {
    pub fn read(event: &Event, before: Option<&Self>) -> Self {
        let o = &event.object;
        let phase = text(o, "/status/phase");
        let waits_again = phase == "Pending" && before.is_some_and(|b| b.phase == "Bound");
        Self {
            uid: event.uid().into(),
            name: event.name().into(),
            pool: match text(o, "/spec/poolRef/name") {
                "" => text(o, "/status/pool").into(),
                name => name.into(),
            },
            wanted: o["spec"]["replicas"]
                .as_u64()
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(1),
            selector: o["spec"]["poolSelector"]
                .is_object()
                .then(|| strings(&o["spec"]["poolSelector"]["matchLabels"])),
            replaces: text(o, "/spec/onSandboxLost") == "Replace",
            only_waits: text(o, "/spec/onEmpty") == "Wait",
            priority: o["spec"]["priority"].as_i64().unwrap_or(0),
            latest: text(o, "/spec/revisionPolicy") == "Latest",
            phase: phase.into(),
            has_wait_reason: phase == "Pending"
                && condition(o, "Bound").is_some_and(|c| {
                    c["status"] == "False"
                        && !text(c, "/reason").is_empty()
                        && !text(c, "/message").is_empty()
                }),
            terminating: !text(o, "/metadata/deletionTimestamp").is_empty(),
            unreadable: !(o["spec"]["priority"].is_i64() || o["spec"]["priority"].is_null()),
            sandboxes: items(o, "/status/sandboxes")
                .iter()
                .map(|s| text(s, "/uid").to_string())
                .collect(),
            created: text(o, "/metadata/creationTimestamp").into(),
            came_rv: before.map_or(event.rv, |b| b.came_rv),
            rv: event.rv,
            came_at: before.map_or(event.at, |b| b.came_at),
            waits_since: before
                .filter(|_| !waits_again)
                .map_or(event.at, |b| b.waits_since),
            served_at: before.and_then(|b| b.served_at).filter(|_| !waits_again),
            first_served: before.and_then(|b| b.first_served),
            shutdown: text(o, "/spec/shutdownTime").parse().ok(),
            lifetime: o["spec"]["lifetimeSeconds"].as_i64(),
            retains: text(o, "/spec/releasePolicy") == "Retain",
        }
    }

    /// It asks for a sandbox and has none.
    pub fn waits(&self) -> bool {
        self.served_at.is_none() && self.is_undecided()
    }

    /// Its first event is its latest: no write has changed it.
    pub fn is_as_it_came(&self) -> bool {
        self.rv == self.came_rv
    }

    /// Whether the pool of that name, with these labels, may serve it.
    pub fn accepts(&self, pool: &str, labels: &BTreeMap<String, String>) -> bool {
        match &self.selector {
            Some(selector) => selector.iter().all(|(key, value)| labels.get(key) == Some(value)),
            None => self.pool == pool,
        }
    }

    pub fn queue_position(&self) -> QueuePosition {
        (Reverse(self.priority), self.created.clone(), self.came_rv)
    }

    /// Its status says neither that it has a sandbox nor that it never will.
    pub fn is_undecided(&self) -> bool {
        !self.terminating
            && !self.unreadable
            && !matches!(self.phase.as_str(), "Bound" | "Failed" | "Expired")
    }
}
