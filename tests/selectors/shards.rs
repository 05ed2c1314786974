//! Two operators share a namespace: each serves the pools that its selector selects, and the claims of those pools.

use super::{claim, now, pod, pool};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use warmpool::api::claim::Phase;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::snapshot::PoolPresence;
use warmpool::controllers;
use warmpool::controllers::shutdown::publishes;
use warmpool::model::Key;
use warmpool::planner::claim::{ClaimPlan, plan};
use warmpool::planner::pool_snapshot;
use warmpool::planner::select_pool::select_all_pools;
use warmpool::telemetry::metrics::Metrics;

/// The operator of pool `a`, and that of all others.
const SELECTORS: [&str; 2] = ["shard=one", "shard!=one"];

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn run() -> Key {
    key("run")
}

/// Two operators that know the same: pool `a` in the shard of the first, `b` and `c` in that of the second.
fn operators(more: impl Fn(&mut Index)) -> [Index; 2] {
    SELECTORS.map(|selector| {
        let mut index = Index::default();
        index.shard = selector.parse().unwrap();
        pool(&mut index, "a", labels("one"));
        pool(&mut index, "b", labels("two"));
        pool(&mut index, "c", json!({}));
        more(&mut index);
        index
    })
}

fn labels(shard: &str) -> Value {
    json!({"metadata": {"labels": {"shard": shard}}})
}

fn named(pool: &str) -> Value {
    json!({"spec": {"poolRef": {"name": pool}, "poolSelector": null}})
}

/// The pools whose plan serves the claim `run`.
fn serving(index: &Index) -> Vec<String> {
    let keys = index.pool_keys();
    let snapshots = keys.iter().filter_map(|key| pool_snapshot(index, key, now(), 1));
    snapshots
        .filter(|snapshot| !snapshot.claims.is_empty())
        .map(|snapshot| snapshot.key().name.to_string())
        .collect()
}

fn planned(index: &Index, at: Timestamp) -> ClaimPlan {
    plan(&index.claim_snapshot(&run(), at).unwrap())
}

fn presence(index: &Index) -> PoolPresence {
    index.claim_snapshot(&run(), now()).unwrap().pool_presence
}

fn after(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

#[test]
fn each_pool_is_planned_by_one_of_two_operators() {
    let planned = operators(|_| {}).map(|mut index| {
        for name in ["a", "b", "c"] {
            controllers::pool::decide(&mut index, &key(name), now(), 1, &Metrics::default());
        }
        let served = index.stats(now(), &select_all_pools(&index, now()));
        let counted: Vec<_> = served.keys().map(|key| key.name.to_string()).collect();
        let with_request = |name: &&str| {
            let memory = index
                .pool(&key(name))
                .map(|pool| index.pool_memory(&pool).is_some());
            memory == Some(true)
        };
        assert_eq!(
            counted,
            ["a", "b", "c"]
                .into_iter()
                .filter(with_request)
                .collect::<Vec<_>>()
        );
        counted
    });
    assert_eq!(planned, [vec!["a".to_string()], vec!["b".into(), "c".into()]]);
}

#[test]
fn a_claim_that_names_a_pool_is_served_by_the_operator_of_that_pool() {
    for (pool, by) in [("a", 0), ("b", 1), ("c", 1)] {
        let operators = operators(|index| drop(claim(index, named(pool))));
        assert_eq!(serving(&operators[by]), [pool]);
        let elsewhere = serving(&operators[1 - by]);
        assert!(elsewhere.is_empty(), "I4: both operators plan pool {pool}");
        assert_eq!(presence(&operators[by]), PoolPresence::Present);
        assert_eq!(presence(&operators[1 - by]), PoolPresence::Elsewhere);
    }
}

#[test]
fn a_claim_whose_selector_spans_shards_is_served_in_the_shard_of_the_first_pool_by_name() {
    // The pool of the other shard has more.
    let [one, two] = operators(|index| {
        pod(index, "b", "b-0", "new", None);
        claim(index, json!({}));
    });
    assert_eq!(serving(&one), ["a"]);
    assert!(serving(&two).is_empty());
    // Within its shard it goes to the pool that can serve it first, as without shards.
    let [one, two] = operators(|index| {
        pool(
            index,
            "a",
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"shard": "one"}}}),
        );
        pod(index, "c", "c-0", "new", None);
        claim(index, json!({}));
    });
    assert!(serving(&one).is_empty());
    assert_eq!(serving(&two), ["c"]);
}

#[test]
fn a_claim_stays_with_the_operator_whose_sandbox_it_holds() {
    let [one, two] = operators(|index| {
        pod(index, "b", "b-0", "new", Some("run"));
        claim(index, json!({"spec": {"replicas": 2}}));
    });
    assert!(serving(&one).is_empty());
    assert_eq!(serving(&two), ["b"]);
}

#[test]
fn of_two_operators_that_bound_one_claim_one_publishes_and_releases_the_surplus() {
    let plans = operators(|index| {
        pod(index, "a", "a-0", "new", Some("run"));
        pod(index, "b", "b-0", "new", Some("run"));
        claim(index, json!({}));
    })
    .map(|index| planned(&index, now()));
    assert_eq!(plans[0].status.as_ref().unwrap().sandboxes[0].name, "a-0");
    assert_eq!(plans[1], ClaimPlan::default(), "I1: both publish the claim");
    let bound = json!({"status": {"phase": "Bound", "pool": "b", "sandboxes": [
        {"name": "b-0", "uid": "b-0", "boundTime": "2026-01-31T12:00:00Z"},
    ]}});
    let plans = operators(|index| {
        pod(index, "a", "a-0", "new", Some("run"));
        pod(index, "b", "b-0", "new", Some("run"));
        claim(index, bound.clone());
    })
    .map(|index| planned(&index, now()));
    assert_eq!(plans[0], ClaimPlan::default());
    let released: Vec<_> = plans[1].release.iter().map(|pod| pod.key.name.as_str()).collect();
    assert_eq!(released, ["a-0"]);
}

#[test]
fn a_claim_of_another_shard_is_left_alone_while_its_operator_answers() {
    let waiting = json!({"status": {"phase": "Pending", "conditions": [{
        "type": "Bound", "status": "False", "reason": "NoneAvailable", "message": "no sandbox is available yet",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }]}});
    let long_ended = json!({"status": {"phase": "Failed", "finishTime": "2026-01-31T12:00:00Z"},
        "spec": {"ttlSecondsAfterFinished": 1}});
    let expired = json!({"status": {"phase": "Bound", "pool": "a", "boundTime": "2026-01-31T12:00:00Z",
        "expirationTime": "2026-01-31T12:00:01Z"}, "spec": {"lifetimeSeconds": 1}});
    for status in [waiting, long_ended, expired] {
        let [one, two] = operators(|index| {
            let mut more = named("a");
            json_patch::merge(&mut more, &status);
            json_patch::merge(&mut more, &json!({"spec": {"waitTimeoutSeconds": 100}}));
            claim(index, more);
        });
        // The pool ends its waiting claims itself.
        let is_waiting = status["status"]["phase"] == "Pending";
        assert_eq!(
            planned(&one, after(1000)) == ClaimPlan::default(),
            is_waiting,
            "{status}"
        );
        assert_eq!(planned(&two, after(1000)), ClaimPlan::default(), "{status}");
    }
}

#[test]
fn a_claim_that_nobody_answers_is_told_so_after_a_minute_and_ends_in_time() {
    let [_, mut two] = operators(|index| drop(claim(index, named("a"))));
    let silent = planned(&two, after(59));
    assert_eq!((silent.status, silent.next), (None, Some(after(60))));
    let said = planned(&two, after(60)).status.unwrap();
    assert_eq!(
        (said.phase, said.reason.as_str()),
        (Some(Phase::Pending), "PoolNotServed")
    );
    let message = &said.conditions[0].message;
    assert!(
        message.starts_with("no operator serves pool a in namespace default: start"),
        "{message}"
    );
    let told =
        json!({"status": said, "metadata": {"resourceVersion": "2"}, "spec": {"waitTimeoutSeconds": 90}});
    let mut more = named("a");
    json_patch::merge(&mut more, &told);
    claim(&mut two, more);
    let plan = planned(&two, after(61));
    assert_eq!((plan.status, plan.next), (None, Some(after(91))), "it was told");
    let ended = planned(&two, after(91)).status.unwrap();
    assert_eq!(
        (ended.phase, ended.reason.as_str()),
        (Some(Phase::Failed), "WaitTimeout")
    );
}

#[test]
fn a_claim_without_any_pool_is_answered_by_every_operator_in_the_same_words() {
    let [one, two] = operators(|index| drop(claim(index, named("missing"))));
    let said = planned(&one, after(1)).status.unwrap();
    assert_eq!(said.reason, "PoolNotFound");
    assert_eq!(planned(&two, after(1)).status, Some(said));
}

#[test]
fn a_bound_claim_is_reconciled_when_its_pool_changes_hands() {
    let bound = json!({"status": {"phase": "Bound", "pool": "a", "sandboxes": [
        {"name": "a-0", "uid": "a-0", "boundTime": "2026-01-31T12:00:00Z"},
    ]}});
    let wanted = ReconcileRequest::Claim(run());
    for mut index in operators(|index| drop(claim(index, bound.clone()))) {
        let requests = pool(
            &mut index,
            "a",
            json!({"metadata": {"labels": {"shard": "one", "team": "x"}}}),
        );
        assert!(!requests.contains(&wanted), "it stays");
        assert!(pool(&mut index, "a", labels("two")).contains(&wanted), "it moves");
    }
    let [mut one, mut two] = operators(|index| drop(claim(index, bound.clone())));
    let deleted = json!({"metadata": {"namespace": "default", "name": "a", "uid": "a"}});
    let deleted = serde_json::from_value(deleted).unwrap();
    assert!(
        !one.delete_pool(&deleted).contains(&wanted),
        "it has the claim already"
    );
    assert!(two.delete_pool(&deleted).contains(&wanted));
    assert_ne!(presence(&two), PoolPresence::Elsewhere);
}

#[test]
fn an_operator_that_stops_does_not_wait_for_claims_of_another_shard() {
    let [one, two] = operators(|index| {
        pod(index, "a", "a-0", "new", Some("run"));
        claim(index, named("a"));
    });
    assert!(publishes(&one, now()));
    assert!(!publishes(&two, now()));
}
