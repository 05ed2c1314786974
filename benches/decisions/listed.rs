//! What a list of pods costs a start, from the text to the cache, and the memory that the cache then takes.

use crate::Outcome;
use crate::api_server::{ApiServer, Kind};
use crate::memory::mib;
use crate::operator::used;
use jiff::Timestamp;
use serde_json::json;
use std::time::Duration;
use warmpool::cache::index::Index;
use warmpool::cache::watch::{Indexed, Listed, take_over_listed};
use warmpool::model::stored::StoredPod;

/// Pods that are in memory as text at a time, as in a page of a list.
const PAGE: usize = 250;
const NAME: &str = "python-xxxxxxxxxx-000000";

/// Processor time of a list of `count` warm pods, and the MiB that the process has grown by.
pub fn listed(count: usize) -> Outcome<(Duration, f64)> {
    let (text, uid) = warm_pod()?;
    let before = resident_mib()?;
    let (mut spent, mut listed, mut index) =
        (Duration::ZERO, Vec::<Listed<StoredPod>>::new(), Index::default());
    for first in (0..count).step_by(PAGE) {
        let numbers = first..count.min(first + PAGE);
        let page: Vec<String> = numbers
            .map(|number| {
                let text = text.replace(NAME, &format!("python-xxxxxxxxxx-{number:06}"));
                text.replace(&uid, &format!("7a0c1e5e-0000-4000-8000-{number:012}"))
            })
            .collect();
        let began = used();
        for text in page {
            listed.push(serde_json::from_str::<StoredPod>(&text)?.listed());
        }
        spent += used() - began;
    }
    let began = used();
    take_over_listed(&mut index, listed);
    spent += used() - began;
    if index.pod_keys().len() != count {
        return Err(format!("the cache has {} of {count} pods", index.pod_keys().len()).into());
    }
    Ok((spent, resident_mib()? - before))
}

/// The text of a pod that is warm and Ready, and its UID.
fn warm_pod() -> Outcome<(String, String)> {
    let now: Timestamp = "2026-01-31T12:00:00Z".parse()?;
    let mut api_server = ApiServer::default();
    let pod = json!({
        "metadata": {
            "name": NAME,
            "labels": {
                "warmpool.dev/pool": "python", "warmpool.dev/revision": "xxxxxxxxxx", "warmpool.dev/state": "warm",
            },
            "ownerReferences": [{
                "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": "python",
                "uid": "6f0c1e5e-0000-4000-8000-999999999999", "controller": true, "blockOwnerDeletion": false,
            }],
        },
    });
    api_server.create(Kind::Pod, pod, now)?;
    api_server.warm_up(NAME, now)?;
    let event = api_server.events.pop().ok_or("no event")?;
    let pod: StoredPod = serde_json::from_str(&event.text)?;
    Ok((event.text, pod.metadata.uid.ok_or("no UID")?))
}

fn resident_mib() -> Outcome<f64> {
    mib(std::process::id(), "VmRSS:")
}
