//! Checks which claims of a burst report that their sandbox was warm before they came.

use super::event::{Event, Kind, is_ready};
use jiff::SignedDuration;
use std::collections::BTreeMap;

/// An operator sees claims and pods by two watches, so of events nearer to each other it may see either first.
pub const CLOSE: SignedDuration = SignedDuration::from_millis(300);

/// A claim, as its events describe it.
struct Service {
    name: String,
    /// Its sandbox was available before it came.
    was_warm: bool,
    /// The operator may have seen the two in another order.
    is_close: bool,
    says_warm: bool,
}

fn services(events: &[Event], pod_of_claim: &BTreeMap<String, String>) -> Vec<Service> {
    let mut available: BTreeMap<&str, &Event> = BTreeMap::new();
    let mut came: BTreeMap<&str, &Event> = BTreeMap::new();
    let mut last: BTreeMap<&str, &Event> = BTreeMap::new();
    for event in events {
        match event.kind {
            Kind::Pod if is_ready(&event.object) => _ = available.entry(event.uid()).or_insert(event),
            Kind::Claim => {
                came.entry(event.uid()).or_insert(event);
                last.insert(event.uid(), event);
            }
            _ => {}
        }
    }
    let service = |(uid, event): (&&str, &&Event)| {
        let came = came.get(uid).unwrap_or(event);
        let since = pod_of_claim.get(*uid).and_then(|pod| available.get(pod.as_str()));
        let apart = since.map(|since| since.at.duration_since(came.at).abs());
        Service {
            name: event.name().into(),
            was_warm: since.is_some_and(|since| since.rv < came.rv),
            is_close: apart.is_some_and(|apart| apart < CLOSE),
            says_warm: event.object["status"]["sandboxes"][0]["warm"] == true,
        }
    };
    last.iter().map(service).collect()
}

/// All `warm` sandboxes are claimed, and only their claims report a warm sandbox. A claim served meanwhile may get a
/// sandbox that has warmed up since; the checker verifies the order of service.
///
/// # Errors
/// A claim whose report is wrong; or so many claims and sandboxes came together that the reports say nothing.
pub fn judge(events: &[Event], pod_of_claim: &BTreeMap<String, String>, warm: i64) -> Result<(), String> {
    let services = services(events, pod_of_claim);
    // A claim may be stored long after its creation time, and rightly take a sandbox that warmed up meanwhile.
    let count = services.iter().filter(|s| s.was_warm).count();
    if i64::try_from(count).is_ok_and(|count| count < warm) {
        return Err(format!(
            "{count} of {warm} warm sandboxes went to claims that came when they were there"
        ));
    }
    for was_warm in [true, false] {
        let (close, sure): (Vec<_>, Vec<_>) = services
            .iter()
            .filter(|s| s.was_warm == was_warm)
            .partition(|s| s.is_close);
        if let Some(Service { name, says_warm, .. }) = sure.iter().find(|s| s.says_warm != was_warm) {
            return Err(format!(
                "claim {name} says of its sandbox that it was warm: {says_warm}, and it is {was_warm}"
            ));
        }
        if close.len() > sure.len() {
            return Err(format!(
                "{} of the claims with {} sandbox came within {CLOSE:#} of it, and only {} did not",
                close.len(),
                if was_warm { "a warm" } else { "a new" },
                sure.len()
            ));
        }
    }
    Ok(())
}
