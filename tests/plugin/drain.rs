//! Checks `kubectl warmpool drain NODE --dry-run`: the forecast of a drain.

use crate::objects::{POOL_UID, owned_by_pool};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use warmpool::cli::documents::Documents;
use warmpool::cli::kubectl::drain::forecast::{Forecast, forecast};
use warmpool::model::revision::{Template, hash};
use warmpool::model::stored::StoredNode;

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "main", "image": "image:1"}]}})
}

fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// A complete pool whose sandboxes took 4 s to warm up.
fn pool(replicas: i64, spec: Value) -> Vec<Value> {
    let revision = hash(&Template::new(template()).canonical, 0);
    let mut pool = json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool",
        "metadata": {"name": "python", "namespace": "ns", "uid": POOL_UID, "generation": 2, "resourceVersion": "9"},
        "spec": {"replicas": replicas, "template": template()},
        "status": {
            "observedGeneration": 2, "updateRevision": revision, "currentRevision": revision,
            "conditions": [{
                "type": "Progressing", "status": "True", "reason": "RolloutComplete", "message": "",
                "lastTransitionTime": ago(600),
            }],
        },
    });
    json_patch::merge(&mut pool["spec"], &spec);
    let stored = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
        "metadata": {
            "name": format!("python-{revision}"), "namespace": "ns",
            "labels": {"warmpool.dev/pool": "python", "warmpool.dev/revision": revision},
            "ownerReferences": owned_by_pool(),
        },
        "data": {"spec": {"template": template()}},
    });
    vec![pool, stored, node("drained"), node("spare")]
}

fn pod(name: &str, node: &str, more: Value) -> Value {
    let revision = hash(&Template::new(template()).canonical, 0);
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("{name}-uid"), "creationTimestamp": ago(94),
            "labels": {
                "warmpool.dev/pool": "python", "warmpool.dev/state": "warm", "warmpool.dev/revision": revision,
            },
            "ownerReferences": owned_by_pool(),
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": ago(90)},
        ]},
    });
    json_patch::merge(&mut pod, &more);
    pod
}

/// A claim bound to a sandbox of its name on the node, and the sandbox.
fn claimed(name: &str, spec: Value) -> [Value; 2] {
    let uid = format!("{name}-claim");
    let owner = json!([{
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "name": name, "uid": uid, "controller": true,
    }]);
    let more = json!({
        "metadata": {"labels": {"warmpool.dev/state": "claimed"}, "ownerReferences": owner},
    });
    let mut claim = json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim",
        "metadata": {"name": name, "namespace": "ns", "uid": uid, "generation": 1, "creationTimestamp": ago(60)},
        "spec": {"poolRef": {"name": "python"}},
        "status": {
            "phase": "Bound", "pool": "python", "boundTime": ago(60), "waitSeconds": 0.1,
            "sandboxes": [{"name": name, "uid": format!("{name}-uid"), "boundTime": ago(60)}],
        },
    });
    json_patch::merge(&mut claim["spec"], &spec);
    [claim, pod(name, "drained", more)]
}

fn forecast_of(objects: Vec<Value>) -> Forecast {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let mut index = Documents::read(&list.to_string()).unwrap().into_index(now());
    let node: StoredNode = serde_json::from_value(node("drained")).unwrap();
    forecast(&mut index, node, now())
}

/// The forecast as short lines.
fn lines(forecast: &Forecast) -> Vec<String> {
    let row = |row: &warmpool::cli::kubectl::drain::forecast::Row| {
        let after = row
            .after
            .map_or("never".into(), |after| format!("{}s", after.as_secs()));
        let round = row.round.map_or("-".into(), |round| round.to_string());
        format!("{} {round} {after} {}", row.pod.name, row.outcome)
    };
    forecast.sandboxes.iter().map(row).collect()
}

#[test]
fn sandboxes_go_in_rounds_of_the_budget_each_as_long_as_a_warm_up() {
    let two_at_once = json!({"updateStrategy": {"maxUnavailable": 1, "maxSurge": 1}});
    let mut objects = pool(4, two_at_once);
    objects.extend(["a", "b", "c"].map(|name| pod(name, "drained", json!({}))));
    objects.push(pod("d", "spare", json!({})));
    let forecast = forecast_of(objects);
    let rounds: Vec<_> = forecast.sandboxes.iter().map(|row| row.round).collect();
    assert_eq!(rounds, [Some(1), Some(1), Some(2)], "{:?}", lines(&forecast));
    assert_eq!(forecast.takes(), Some(SignedDuration::from_secs(8)));
    assert!(!forecast.blocks());
}

#[test]
fn a_pool_of_one_goes_after_one_warm_up() {
    let mut objects = pool(1, json!({}));
    objects.push(pod("only", "drained", json!({})));
    let forecast = forecast_of(objects);
    assert_eq!(
        lines(&forecast),
        ["only 1 4s deleted once replaced (NodeCordoned)"]
    );
}

#[test]
fn a_policy_of_break_waits_for_nothing_and_a_full_pool_for_its_deadline() {
    let mut objects = pool(1, json!({"disruption": {"drainPolicy": "Break"}}));
    objects.push(pod("only", "drained", json!({})));
    assert_eq!(
        lines(&forecast_of(objects)),
        ["only 0 0s deleted (DrainPolicyBreak)"]
    );
    let full = json!({"capacity": {"maxTotal": 1}, "disruption": {"drainDeadlineSeconds": 60}});
    let mut objects = pool(1, full);
    objects.push(pod("only", "drained", json!({})));
    let forecast = forecast_of(objects);
    assert_eq!(lines(&forecast), ["only 0 60s deleted (DrainDeadlineExceeded)"]);
}

#[test]
fn claims_block_the_drain_allow_it_or_let_it_wait_for_their_grace() {
    let mut objects = pool(0, json!({}));
    objects.extend(claimed("allows", json!({"disruption": "Allow"})));
    let grace = json!({"disruption": "Notify", "disruptionGracePeriodSeconds": 90});
    objects.extend(claimed("notified", grace));
    let forecast = forecast_of(objects.clone());
    assert_eq!(
        lines(&forecast),
        [
            "allows 0 0s evicted (disruption Allow)",
            "notified 0 90s evicted after its grace (disruption Notify)",
        ]
    );
    assert_eq!(forecast.takes(), Some(SignedDuration::from_secs(90)));
    objects.extend(claimed("blocks", json!({})));
    let forecast = forecast_of(objects);
    assert_eq!(
        lines(&forecast).pop().unwrap(),
        "blocks - never blocks the drain until the claim is deleted (disruption Block)"
    );
    assert!(forecast.blocks() && forecast.takes().is_none());
}

#[test]
fn the_forecast_says_what_lets_the_sandbox_of_a_claim_go_that_blocks() {
    let expires = json!({"lifetimeSeconds": 600});
    let retains = json!({"lifetimeSeconds": 600, "releasePolicy": "Retain"});
    let kept_for = json!({"ttlSecondsAfterFinished": 600});
    let ended = json!({"phase": "Failed", "finishTime": ago(60)});
    let end = |seconds| now() + SignedDuration::from_secs(seconds);
    let rows = [
        (expires, json!({}), format!("expires at {}", end(541))),
        (retains, json!({}), "is deleted".to_string()),
        (kept_for, ended, format!("is deleted at {}", end(541))),
    ];
    for (spec, status, until) in rows {
        let mut objects = pool(0, json!({}));
        let [mut claim, pod] = claimed("run", spec);
        json_patch::merge(&mut claim["status"], &status);
        objects.extend([claim, pod]);
        let expected = format!("run - never blocks the drain until the claim {until} (disruption Block)");
        assert_eq!(lines(&forecast_of(objects)), [expected]);
    }
}

#[test]
fn a_claimed_sandbox_that_has_ended_blocks_no_drain() {
    let mut objects = pool(0, json!({}));
    let [claim, mut pod] = claimed("run", json!({}));
    pod["status"] = json!({"phase": "Succeeded"});
    objects.extend([claim, pod]);
    assert_eq!(lines(&forecast_of(objects)), ["run 0 0s evicted (it has ended)"]);
}

#[test]
fn an_invalid_pool_keeps_its_sandboxes_and_blocks_the_drain() {
    let mut objects = pool(1, json!({"updateStrategy": {"maxUnavailable": "200%"}}));
    objects.push(pod("only", "drained", json!({})));
    let forecast = forecast_of(objects);
    assert!(forecast.blocks(), "{:?}", lines(&forecast));
    assert!(lines(&forecast)[0].starts_with("only - never stays: the pool makes no replacement"));
}

#[test]
fn sandboxes_elsewhere_are_no_part_of_it() {
    let mut objects = pool(1, json!({}));
    objects.push(pod("only", "spare", json!({})));
    assert_eq!(lines(&forecast_of(objects)), Vec::<String>::new());
}
