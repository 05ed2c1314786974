//! Checks which claims of a burst report that their sandbox was warm before they came.

use super::event::{Event, Kind, condition, is_ready, text};
use jiff::Timestamp;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A claim, as its events describe it.
struct Service {
    name: String,
    /// When its sandbox became available, as compared to the claim's creation. The API stores both in whole seconds, so events
    /// of the same second may have come in either order.
    available: Ordering,
    says_warm: bool,
}

fn second(object: &Value, pointer: &str) -> Option<i64> {
    let at: Timestamp = text(object, pointer).parse().ok()?;
    Some(at.as_second())
}

fn services(events: &[Event], pod_of_claim: &BTreeMap<String, String>) -> Result<Vec<Service>, String> {
    let mut ready_since: BTreeMap<&str, i64> = BTreeMap::new();
    let mut last: BTreeMap<&str, &Event> = BTreeMap::new();
    for event in events {
        match event.kind {
            Kind::Pod if is_ready(&event.object) => {
                let since = condition(&event.object, "Ready").and_then(|c| second(c, "/lastTransitionTime"));
                if let Some(since) = since {
                    ready_since.entry(event.uid()).or_insert(since);
                }
            }
            Kind::Claim => _ = last.insert(event.uid(), event),
            _ => {}
        }
    }
    let service = |(uid, event): (&&str, &&Event)| {
        let since = pod_of_claim
            .get(*uid)
            .and_then(|pod| ready_since.get(pod.as_str()));
        let since = since.ok_or_else(|| format!("the sandbox of claim {} was never Ready", event.name()))?;
        let came = second(&event.object, "/metadata/creationTimestamp");
        Ok(Service {
            name: event.name().into(),
            available: Some(*since).cmp(&came),
            says_warm: event.object["status"]["sandboxes"][0]["warm"] == true,
        })
    };
    last.iter().map(service).collect()
}

/// All `warm` sandboxes are claimed, and only their claims report a warm sandbox. A claim served meanwhile may get a
/// sandbox that has warmed up since; the checker verifies the order of service.
///
/// # Errors
/// A claim whose report is wrong; or so many claims and sandboxes came in the same second that the reports say nothing.
pub fn judge(events: &[Event], pod_of_claim: &BTreeMap<String, String>, warm: i64) -> Result<(), String> {
    let services = services(events, pod_of_claim)?;
    let of = |available: Ordering| services.iter().filter(move |s| s.available == available);
    for (available, was_warm) in [(Ordering::Less, true), (Ordering::Greater, false)] {
        if let Some(Service { name, says_warm, .. }) = of(available).find(|s| s.says_warm != was_warm) {
            return Err(format!(
                "claim {name} says of its sandbox that it was warm: {says_warm}, and it is {was_warm}"
            ));
        }
    }
    let [before, together, after] =
        [Ordering::Less, Ordering::Equal, Ordering::Greater].map(|o| of(o).count());
    if i64::try_from(before).is_ok_and(|before| before < warm) {
        return Err(format!(
            "{before} of {warm} warm sandboxes went to claims that came when they were there"
        ));
    }
    if together > after {
        return Err(format!(
            "{together} claims came in the second in which their sandbox became available, and only {after} before it"
        ));
    }
    Ok(())
}
