//! Finds the user who deleted a pod.
//!
//! A pod is deleted by the user whose request came first. Later deletions, like the one with which the node ends the grace
//! period, only complete it.

use super::event::{Change, Event, Kind, text};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// A deletion or an eviction of a pod that the API server has granted. Its audit log has names only.
#[derive(Clone, Debug)]
pub struct Deletion {
    /// When the API server received it: what is done in answer to another one is received after it.
    pub at: Timestamp,
    pub pod: String,
    pub by_operator: bool,
}

/// The UIDs of the pods that another user than the operator deleted.
pub fn deleted_by_others(events: &[Event], deletions: &[Deletion]) -> BTreeSet<String> {
    let mut lives: BTreeMap<&str, Life> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind == Kind::Pod) {
        let life = lives.entry(event.uid()).or_insert_with(|| Life::of(event));
        if event.change == Change::Deleted {
            life.ended = event.at;
        }
    }
    let by_others = lives.into_iter().filter(|(_, life)| {
        let within = deletions.iter().filter(|deletion| life.saw(deletion));
        within
            .min_by_key(|deletion| deletion.at)
            .is_some_and(|first| !first.by_operator)
    });
    by_others.map(|(uid, _)| uid.to_string()).collect()
}

/// The pods of these names that the history does not show going.
pub fn not_deleted<'a>(events: &[Event], names: &'a [String]) -> Vec<&'a str> {
    let is_pod = |event: &&Event| event.kind == Kind::Pod && event.change == Change::Deleted;
    let gone: BTreeSet<&str> = events.iter().filter(is_pod).map(Event::name).collect();
    let names = names.iter().map(String::as_str);
    names.filter(|name| !gone.contains(name)).collect()
}

/// Distinguishes a pod from others of the same name.
struct Life<'a> {
    name: &'a str,
    /// In whole seconds.
    created: Timestamp,
    ended: Timestamp,
}

impl<'a> Life<'a> {
    fn of(event: &'a Event) -> Self {
        Self {
            name: event.name(),
            created: text(&event.object, "/metadata/creationTimestamp")
                .parse()
                .unwrap_or(Timestamp::MIN),
            ended: Timestamp::MAX,
        }
    }

    fn saw(&self, deletion: &Deletion) -> bool {
        deletion.pod == self.name && (self.created..=self.ended).contains(&deletion.at)
    }
}
