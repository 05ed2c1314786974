//! Checks that no write of an operator on a claim, a sandbox or the status of a pool is one too many.
//!
//! Nobody else writes the status of a claim or a pool, so each of its versions is one write. A write that says what the status of
//! the claim said before is one too many, and so is a write that the API server carried out and that no version shows.

use super::event::{Event, Kind, items, text};
use super::{Figures, Finding, Scene};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What precedes the claim's place in the queue, in the message of a condition. The place is as it was when the rest was said.
const POSITION: &str = "; the claim ";

#[derive(Default)]
pub struct Writes {
    /// What the latest version of each object held that operators write, by UID.
    written: BTreeMap<String, Value>,
    /// Versions in which that changed, by kind and name.
    changes: BTreeMap<(Kind, String), usize>,
}

impl Writes {
    pub fn judge(&mut self, scene: &Scene, event: &Event, out: &mut Vec<Finding>) {
        let (now, nothing) = match event.kind {
            Kind::Claim | Kind::Pool => (event.object["status"].clone(), Value::Null),
            Kind::Pod => (metadata(&event.object), metadata(&Value::Null)),
        };
        let before = self.written.insert(event.uid().into(), now.clone());
        // The creation of a pod is no write on it.
        let Some(before) = before.or((event.kind != Kind::Pod).then_some(nothing)) else {
            return;
        };
        if before == now {
            return;
        }
        let name = event.name().to_string();
        if event.kind == Kind::Claim
            && statement(&before) == statement(&now)
            && !scene.rules.forged.contains(&name)
            && !event.gap
        {
            let sentence = format!("the status of claim {name} was written and says the same as before");
            out.push(Finding::new("writes", &[event.uid()], sentence));
        }
        *self.changes.entry((event.kind, name)).or_default() += 1;
    }

    /// Compares the versions of each object with the writes that the API server carried out before the watcher took its last
    /// look. A gap hides versions.
    pub fn finish(&self, scene: &Scene, out: &mut Vec<Finding>, figures: &mut Figures) {
        let kinds = [
            (Kind::Claim, "update", "sandboxclaims/status"),
            (Kind::Pool, "patch", "pools/status"),
            (Kind::Pod, "patch", "pods"),
        ];
        let shown_by = scene.rules.ended.unwrap_or(Timestamp::MAX);
        for (kind, verb, resource) in kinds {
            for (name, sent) in scene.rules.requests.carried_out(verb, resource, shown_by) {
                let changes = self.changes.get(&(kind, name.to_string()));
                let changes = changes.copied().unwrap_or(0);
                figures.writes += sent;
                // Of two operators each may write what the status of a pool has to say: the patch tests no version.
                let at_once = 1 + usize::from(kind == Kind::Pool && scene.rules.two_operators);
                if sent > at_once * changes && !scene.rules.gaps {
                    let kind = kind.name();
                    let sentence = format!(
                        "{kind} {name} was written {sent} times, and only {changes} changed something"
                    );
                    out.push(Finding::new("writes", &[], sentence));
                }
            }
        }
    }
}

/// What operators write of a pod.
fn metadata(pod: &Value) -> Value {
    let metadata = &pod["metadata"];
    json!([
        metadata["labels"],
        metadata["annotations"],
        metadata["ownerReferences"],
        metadata["finalizers"]
    ])
}

/// What the status of a claim says, apart from since when and from the place in the queue.
fn statement(status: &Value) -> Value {
    let mut said = status.clone();
    let conditions = items(status, "/conditions").iter().map(|condition| {
        let message = text(condition, "/message");
        let message = message.split_once(POSITION).map_or(message, |(before, _)| before);
        let mut said = condition.clone();
        said["message"] = json!(message);
        said["lastTransitionTime"] = Value::Null;
        said
    });
    if !status.is_null() {
        said["conditions"] = conditions.collect();
    }
    said
}
