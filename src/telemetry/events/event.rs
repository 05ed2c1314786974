//! Builds one event.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};

/// Limit of the API server for a note, in bytes.
const LONGEST_NOTE: usize = 1_000;

/// An event with a note that the API server accepts.
pub(crate) fn event(
    type_: EventType,
    reason: &str,
    action: &str,
    note: &str,
    secondary: Option<ObjectReference>,
) -> Event {
    Event {
        type_,
        reason: reason.to_string(),
        note: Some(shortened(note)),
        action: action.to_string(),
        secondary,
    }
}

fn shortened(note: &str) -> String {
    if note.len() <= LONGEST_NOTE {
        return note.to_string();
    }
    let mut end = LONGEST_NOTE - "...".len();
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", note.get(..end).unwrap_or_default())
}
