//! Checks what `kubectl warmpool status` and `top` show, and how lines fit a terminal.

use crate::objects::owned_by_pool;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use warmpool::cache::index::Index;
use warmpool::cli::documents::Documents;
use warmpool::cli::kubectl::pool_report::{PoolReport, report};
use warmpool::cli::kubectl::pool_screen::screen;
use warmpool::cli::kubectl::terminal::wrapped;
use warmpool::cli::kubectl::top;
use warmpool::model::Key;
use warmpool::model::revision::{Template, hash};

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "main", "image": "image:2"}]}})
}

fn latest() -> String {
    hash(&Template::new(template()).canonical, 0)
}

fn pool(available: i64) -> Value {
    json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool",
        "metadata": {"name": "python", "namespace": "ns", "uid": "pool-uid", "generation": 2},
        "spec": {"replicas": 3, "template": template()},
        "status": {"observedGeneration": 2, "updateRevision": latest(), "available": available},
    })
}

fn pod(name: &str, revision: &str, ready: bool) -> Value {
    let ready = if ready { "True" } else { "False" };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "ns", "uid": name, "creationTimestamp": ago(90),
            "labels": {
                "warmpool.dev/pool": "python", "warmpool.dev/state": "warm", "warmpool.dev/revision": revision,
            },
            "ownerReferences": owned_by_pool(),
        },
        "spec": {"nodeName": "node-1"},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": ago(60)},
        ]},
    })
}

fn claim(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": ago(30)},
        "spec": {"poolRef": {"name": "python"}, "onEmpty": "Wait", "replicas": 2},
        "status": status,
    })
}

fn bound(name: &str, wait: f64, warm: bool) -> Value {
    let sandbox = json!({"name": name, "uid": name, "boundTime": ago(20), "warm": warm});
    claim(
        name,
        &json!({"phase": "Bound", "pool": "python", "waitSeconds": wait, "sandboxes": [sandbox]}),
    )
}

fn index(objects: &[Value]) -> Index {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    Documents::read(&list.to_string()).unwrap().into_index(now())
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn state(objects: &[Value]) -> PoolReport {
    report(&index(objects), &Key::new("ns", "python"), now()).unwrap()
}

#[test]
fn the_screen_counts_sandboxes_by_revision_and_state_and_claims_by_phase() {
    let objects = [
        pool(1),
        pod("a", &latest(), true),
        pod("b", &latest(), false),
        pod("c", "old", false),
        bound("run-1", 0.1, true),
        claim("run-2", &json!({})),
        claim("run-3", &json!({"phase": "Failed", "pool": "python"})),
    ];
    let lines = screen(&state(&objects), false, now());
    let title = "Pool ns/python: Available False (MinimumReplicasUnavailable), Progressing";
    assert!(lines[0].starts_with(title), "{lines:#?}");
    assert_eq!(
        words(&lines[2]),
        [
            "REVISION",
            "AVAILABLE",
            "WARMING",
            "CLAIMED",
            "DRAINING",
            "TERMINATING"
        ]
    );
    assert_eq!(
        words(&lines[3]),
        [&*latest(), "(latest)", "1", "1", "0", "0", "0"]
    );
    assert_eq!(words(&lines[4]), ["old", "0", "1", "0", "0", "0"]);
    assert_eq!(lines[6], "Claims: 1 bound, 1 failed.");
    let waits = "1 claim waits, the oldest (run-2) for 30s: 2 sandboxes are wanted together";
    assert!(lines[7].starts_with(waits), "{lines:#?}");
    let full = lines
        .iter()
        .any(|line| line.starts_with("Pool python is not full"));
    let next = lines.last().unwrap().starts_with("Next the operator would ");
    assert!(full && next, "{lines:#?}");
}

#[test]
fn a_pool_that_is_not_there_has_no_screen() {
    assert!(report(&index(&[pool(0)]), &Key::new("ns", "node"), now()).is_none());
}

/// A claim for several, bound to these sandboxes.
fn bound_to(name: &str, sandboxes: &[&str]) -> Value {
    let sandbox = |name: &&str| json!({"name": name, "uid": name, "boundTime": ago(20), "warm": true});
    let sandboxes: Vec<_> = sandboxes.iter().map(sandbox).collect();
    claim(
        name,
        &json!({"phase": "Bound", "pool": "python", "waitSeconds": 0.1, "sandboxes": sandboxes}),
    )
}

#[test]
fn the_wide_screen_has_each_sandbox_and_every_sandbox_of_a_claim() {
    let objects = [pool(1), pod("a", &latest(), true), bound_to("batch", &["x", "y"])];
    let lines = screen(&state(&objects), true, now());
    let row = |first: &str| {
        let found = lines.iter().find(|line| line.starts_with(first));
        words(found.unwrap_or_else(|| panic!("no line {first}: {lines:#?}")))
    };
    assert_eq!(
        row("SANDBOX "),
        ["SANDBOX", "STATE", "REVISION", "NODE", "CLAIM", "AGE"]
    );
    assert_eq!(
        row("a "),
        ["a", "available", &latest(), "node-1", "<none>", "1m30s"]
    );
    assert_eq!(row("batch "), ["batch", "Bound", "100ms", "x,y"]);
    let short = screen(&state(&objects), false, now());
    assert!(!short.iter().any(|line| line.contains("x,y")), "{short:#?}");
}

#[test]
fn the_document_of_a_pool_has_what_the_screen_says_under_stable_keys() {
    let objects = [
        pool(1),
        pod("a", &latest(), true),
        pod("b", "old", false),
        bound_to("batch", &["x", "y"]),
        claim("run-2", &json!({})),
    ];
    let document = serde_json::to_value(state(&objects)).unwrap();
    assert_eq!(
        document["revisions"],
        json!([
            {"revision": latest(), "latest": true, "sandboxes": {"available": 1}},
            {"revision": "old", "latest": false, "sandboxes": {"warming": 1}},
        ])
    );
    let b = json!({
        "name": "b", "state": "warming", "revision": "old", "node": "node-1", "claim": null, "created": ago(90),
    });
    assert!(
        document["sandboxes"].as_array().unwrap().contains(&b),
        "{document:#}"
    );
    let claims = document["claims"].as_array().unwrap();
    let batch = json!({
        "name": "batch", "phase": "Bound", "sandboxes": ["x", "y"], "waitSeconds": 0.1, "waitingSince": null, "message": null,
    });
    assert_eq!(claims[0], batch);
    assert_eq!(
        (&claims[1]["phase"], &claims[1]["waitingSince"]),
        (&json!("Pending"), &json!(ago(30)))
    );
    assert!(
        claims[1]["message"].as_str().unwrap().contains("wanted together"),
        "{document:#}"
    );
    assert!(
        document["explanation"].as_array().unwrap().len() > 1,
        "{document:#}"
    );
    assert_eq!(document["conditions"][0]["type"], "Available");
}

#[test]
fn top_lists_hits_and_waits_of_the_claims_that_exist() {
    let mut objects = vec![pool(2), claim("waits", &json!({}))];
    objects.extend((1..=98).map(|n| bound(&format!("warm-{n}"), f64::from(n) / 1000.0, true)));
    objects.extend([bound("cold-1", 2.0, false), bound("cold-2", 3.44, false)]);
    let pools = [Key::new("ns", "python")];
    let report = top::report(&index(&objects), &pools);
    let lines = top::table(&report, true, false, now());
    assert_eq!(
        words(&lines[0]),
        [
            "NAMESPACE",
            "NAME",
            "AVAILABLE",
            "BOUND",
            "HITS",
            "WAIT-P50",
            "WAIT-P99",
            "WAITING",
            "OLDEST"
        ]
    );
    assert_eq!(
        words(&lines[1]),
        ["ns", "python", "2/3", "100", "98%", "50ms", "2.0s", "1", "30s"]
    );
    let document = serde_json::to_value(&report.pools[0]).unwrap();
    for (key, value) in [
        ("bound", json!(100)),
        ("boundWarm", json!(98)),
        ("hitRatio", json!(0.98)),
        ("waitSecondsP50", json!(0.05)),
        ("waitSecondsP99", json!(2.0)),
        ("waiting", json!(1)),
        ("oldestWaitingSince", json!(ago(30))),
    ] {
        assert_eq!(document[key], value, "{key} of {document:#}");
    }
    objects = vec![
        pool(0),
        claim("run", &json!({"phase": "Failed", "pool": "python"})),
    ];
    let wide = top::table(&top::report(&index(&objects), &pools), false, true, now());
    assert_eq!(words(&wide[0])[8..], ["TOTAL", "FAILED", "EXPIRED"]);
    assert_eq!(words(&wide[1])[8..], ["0", "1", "0"]);
    let empty = top::table(&top::report(&index(&[pool(0)]), &pools), false, false, now());
    assert_eq!(
        words(&empty[1]),
        ["python", "0/3", "0", "<none>", "<none>", "<none>", "0", "<none>"]
    );
}

#[test]
fn a_line_fits_a_narrow_terminal_and_stays_whole_in_a_pipe() {
    let line = "Pool python is not full: 0 available, 3 wanted; see https://example.com/a-long-address-without-blanks";
    assert_eq!(wrapped(line, None), line);
    let fitted = wrapped(line, Some(30));
    assert_eq!(
        fitted.lines().collect::<Vec<_>>(),
        [
            "Pool python is not full: 0",
            "  available, 3 wanted; see",
            "  https://example.com/a-long-address-without-blanks",
        ]
    );
    assert_eq!(wrapped("", Some(30)), "");
    assert_eq!(words(&fitted), words(line));
}
