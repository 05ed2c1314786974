//! Checks how often a large pool is planned while a plan would serve no claim.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used)]

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use warmpool::cache::index::Index;
use warmpool::controllers::claim::decide as decide_claim;
use warmpool::controllers::pool::decide_in_turn;
use warmpool::model::Key;
use warmpool::model::request::{Answer, PodChange, Request};
use warmpool::model::stored::StoredClaim;
use warmpool::planner::plan_pace::postponed;
use warmpool::telemetry::metrics::Metrics;

const START: Timestamp = Timestamp::UNIX_EPOCH;
const LARGE: usize = 2_000;
/// Pause of a pool of [`LARGE`].
const PAUSE: SignedDuration = SignedDuration::from_millis(100);

fn key() -> Key {
    Key::new("default", "python")
}

fn after(milliseconds: i64) -> Timestamp {
    START + SignedDuration::from_millis(milliseconds)
}

/// Sandbox `number` of the pool, available.
fn pod(number: usize, version: &str, state: &str, owner: &Value) -> Value {
    json!({
        "metadata": {
            "namespace": "default", "name": format!("python-{number}"), "uid": format!("pod-{number}"),
            "resourceVersion": version, "creationTimestamp": START.to_string(),
            "labels": {"warmpool.dev/pool": "python", "warmpool.dev/state": state},
            "ownerReferences": [{
                "apiVersion": "warmpool.dev/v1alpha1", "controller": true,
                "kind": owner["kind"], "name": owner["name"], "uid": owner["uid"],
            }],
        },
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": START.to_string()},
        ]},
    })
}

/// A pool with so many available sandboxes, planned once at [`START`].
fn planned(sandboxes: usize) -> Index {
    let mut index = Index::default();
    let template = json!({"spec": {"containers": []}});
    let pool = json!({
        "metadata": {
            "namespace": "default", "name": "python", "uid": "pool", "resourceVersion": "1",
            "labels": {"lang": "python"},
        },
        "spec": {"replicas": sandboxes, "template": template},
    });
    index.apply_pool(&serde_json::from_value(pool).unwrap());
    for number in 0..sandboxes {
        let owner = json!({"kind": "Pool", "name": "python", "uid": "pool"});
        let pod = pod(number, "1", "warm", &owner);
        index.apply_pod(&serde_json::from_value(pod).unwrap());
    }
    assert_eq!(
        decide_at(&mut index, START),
        None,
        "the first plan is not postponed"
    );
    index
}

/// Decides on the pool. Returns until when that is postponed, if it is.
fn decide_at(index: &mut Index, now: Timestamp) -> Option<Timestamp> {
    let until = postponed(index, &key(), now);
    let committed = decide_in_turn(index, &key(), now, 0, &Metrics::default());
    if until.is_some() {
        assert_eq!(
            committed.next, until,
            "a postponed pool is reconciled when it is due"
        );
    }
    until
}

fn claim(spec: &Value) -> Value {
    named_claim("run", spec)
}

fn named_claim(name: &str, spec: &Value) -> Value {
    json!({
        "metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1"},
        "spec": spec,
    })
}

fn bindings(index: &mut Index) -> usize {
    let requests = std::iter::from_fn(|| index.requests.take_next());
    let binds = |request: &Request| match request {
        Request::WritePod(write) => matches!(write.change, PodChange::Bind { .. }),
        _ => false,
    };
    requests.filter(|sent| binds(&sent.request)).count()
}

#[test]
fn a_large_pool_that_nobody_waits_for_is_planned_once_in_50_microseconds_for_each_sandbox() {
    let mut index = planned(LARGE);
    assert_eq!(decide_at(&mut index, after(1)), Some(START + PAUSE));
    assert_eq!(decide_at(&mut index, after(99)), Some(START + PAUSE));
    assert_eq!(decide_at(&mut index, after(100)), None);
    assert_eq!(decide_at(&mut index, after(101)), Some(after(100) + PAUSE));
}

#[test]
fn a_pool_of_fewer_than_a_hundred_is_planned_at_every_event() {
    let mut index = planned(99);
    assert_eq!(decide_at(&mut index, after(0)), None);
    assert_eq!(decide_at(&mut index, after(1)), None);
}

#[test]
fn a_pool_of_a_hundred_to_a_thousand_is_planned_twenty_times_a_second() {
    for sandboxes in [100, 1_000] {
        let mut index = planned(sandboxes);
        assert_eq!(decide_at(&mut index, after(49)), Some(after(50)), "{sandboxes}");
        assert_eq!(decide_at(&mut index, after(50)), None, "{sandboxes}");
    }
}

#[test]
fn the_replacement_of_a_taken_sandbox_waits_for_the_publication_of_the_claim_and_no_longer() {
    let mut index = planned(900);
    let spec = json!({"poolRef": {"name": "python"}});
    let claim_object = claim(&spec);
    let stored = serde_json::from_value(claim_object.clone()).unwrap();
    index.apply_claim(&stored, true, after(1));
    assert_eq!(decide_at(&mut index, after(1)), None);
    let binding = index.requests.take_next().unwrap();
    let Request::WritePod(write) = &binding.request else {
        panic!("{binding:?} is no binding");
    };
    let taken = &write.sandbox;
    let number = taken.key.name.trim_start_matches("python-").parse().unwrap();
    let owner = json!({"kind": "SandboxClaim", "name": "run", "uid": "uid-run"});
    let pod = serde_json::from_value(pod(number, "2", "claimed", &owner)).unwrap();
    let before = index.watch_progress();
    index.take_over(&binding.request, Ok(Answer::Pod(pod)), before, after(5));
    decide_claim(&mut index, &Key::new("default", "run"), after(5));
    assert!(
        decide_at(&mut index, after(6)).is_some(),
        "the claim is not published yet"
    );
    let mut published = claim_object;
    published["metadata"]["resourceVersion"] = json!("2");
    let sandbox = json!({"name": taken.key.name, "uid": taken.uid, "boundTime": START.to_string()});
    published["status"] = json!({"phase": "Bound", "sandboxes": [sandbox]});
    index.apply_claim(&serde_json::from_value(published).unwrap(), true, after(8));
    assert_eq!(decide_at(&mut index, after(8)), None);
    assert!(decide_at(&mut index, after(9)).is_some(), "once is enough");
}

#[test]
fn a_claim_has_a_large_pool_planned_at_once() {
    for spec in [
        json!({"poolRef": {"name": "python"}}),
        json!({"poolSelector": {"matchLabels": {"lang": "python"}}}),
    ] {
        let mut index = planned(LARGE);
        let claim = serde_json::from_value(claim(&spec)).unwrap();
        index.apply_claim(&claim, true, after(1));
        assert_eq!(decide_at(&mut index, after(1)), None, "{spec}");
        assert_eq!(bindings(&mut index), 1, "{spec}");
        assert!(
            decide_at(&mut index, after(2)).is_some(),
            "a claim that is being bound waits for no plan: {spec}"
        );
    }
}

#[test]
fn while_as_many_bindings_are_in_flight_as_may_be_a_claim_has_no_large_pool_planned() {
    let mut index = planned(LARGE);
    let spec = json!({"poolRef": {"name": "python"}});
    let claims = (0..40).map(|number| serde_json::from_value(named_claim(&format!("run-{number}"), &spec)));
    let claims: Vec<StoredClaim> = claims.map(Result::unwrap).collect();
    for claim in &claims {
        index.apply_claim(claim, true, after(1));
    }
    assert_eq!(decide_at(&mut index, after(1)), None);
    assert_eq!(bindings(&mut index), 32);
    let with_claims = after(1) + SignedDuration::from_millis(102);
    assert_eq!(decide_at(&mut index, after(2)), Some(with_claims));
    index.delete_claim(&claims[0]);
    assert_eq!(
        decide_at(&mut index, after(3)),
        None,
        "one of the bindings is over"
    );
    assert!(decide_at(&mut index, after(4)).is_some());
}

#[test]
fn a_claim_for_another_pool_has_no_large_pool_planned() {
    let mut index = planned(LARGE);
    let claim = serde_json::from_value(claim(&json!({"poolRef": {"name": "other"}}))).unwrap();
    index.apply_claim(&claim, true, after(1));
    assert!(decide_at(&mut index, after(1)).is_some());
}

#[test]
fn a_clock_that_is_set_back_postpones_no_plan() {
    let mut index = planned(LARGE);
    assert_eq!(decide_at(&mut index, START - SignedDuration::from_hours(1)), None);
}
