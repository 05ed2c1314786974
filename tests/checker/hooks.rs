//! Checks the rules on lifecycle hooks.

use crate::check::event::{Change, Kind};
use crate::history::{History, Pod};
use serde_json::{Value, json};

fn hooked(hook: &str) -> History {
    let handlers = json!({"labelsHandler": {"checked": "yes"}, "finalizersHandler": ["example.com/held"]});
    History::default().pool(2, json!({"lifecycle": {hook: handlers}}))
}

fn carrying(pod: &Pod, label: &str, finalizers: &Value) -> Value {
    let mut object = pod.object();
    object["metadata"]["labels"]["checked"] = json!(label);
    object["metadata"]["finalizers"] = finalizers.clone();
    object
}

#[test]
fn a_claim_on_a_sandbox_without_every_handler_is_accused() {
    let (w1, held) = (Pod::warm("w1"), json!(["example.com/held"]));
    let claimed = |label: &str, finalizers: &Value| {
        hooked("preNormal")
            .write(Change::Added, Kind::Pod, carrying(&w1, label, finalizers))
            .new_claim("a", 0)
            .write(
                Change::Modified,
                Kind::Pod,
                carrying(&w1.held_by("a"), label, finalizers),
            )
            .bound("a", "w1")
    };
    claimed("yes", &held).is_innocent();
    claimed("no", &held).is_guilty("I3", "without every preNormal handler");
    claimed("yes", &json!([])).is_guilty("I3", "without every preNormal handler");
}

#[test]
fn a_deletion_of_a_sandbox_with_a_handler_is_accused() {
    let w1 = Pod::warm("w1");
    let deleted = |label: &str, finalizers: &Value| {
        hooked("preDelete")
            .warm(2)
            .write(Change::Modified, Kind::Pod, carrying(&w1, label, finalizers))
            .write(
                Change::Modified,
                Kind::Pod,
                carrying(&w1.terminating(), label, finalizers),
            )
    };
    deleted("no", &json!([])).is_innocent();
    deleted("yes", &json!([])).is_guilty("preDelete", "with a preDelete handler on");
    deleted("no", &json!(["example.com/held"])).is_guilty("preDelete", "with a preDelete handler on");
}

#[test]
fn draining_an_available_sandbox_takes_from_the_budget() {
    let drained = |name: &str| {
        let mut object = Pod::warm(name).object();
        object["metadata"]["labels"]["warmpool.dev/state"] = json!("draining");
        object
    };
    let one = History::default()
        .pool(2, json!({"updateStrategy": {"maxUnavailable": 1}}))
        .warm(2)
        .write(Change::Modified, Kind::Pod, drained("w1"));
    one.is_innocent();
    one.write(Change::Modified, Kind::Pod, drained("w2"))
        .is_guilty("I4", "left 0 available");
}
