//! Checks rules I1, I2 and I3 on bindings.

use crate::check::event::{Change, Kind};
use crate::check::{Rules, Verdict};
use crate::history::{History, Pod, bound_once, claim, request, requests, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

#[test]
fn a_binding_and_a_release_are_innocent() {
    let pod = Pod::warm("w1").held_by("a");
    let history = bound_once()
        .no_claim("a")
        .pod(&pod.terminating())
        .no_pod(&pod.terminating());
    history.is_innocent();
    assert_eq!(history.judged().figures.served, 1);
}

#[test]
fn a_pod_of_two_claims_is_accused() {
    let history = bound_once().new_claim("b", 0).pod(&Pod::warm("w1").held_by("b"));
    history.is_guilty("I1", "has belonged to 2 claims");
    history.is_guilty("I1", "was taken from its claim");
}

#[test]
fn a_pod_that_goes_back_to_its_pool_is_accused() {
    bound_once()
        .pod(&Pod::warm("w1"))
        .is_guilty("I1", "was taken from its claim");
}

#[test]
fn a_pod_published_by_two_claims_is_accused() {
    bound_once()
        .new_claim("b", 0)
        .bound("b", "w1")
        .is_guilty("I1", "that another claim has listed");
}

#[test]
fn a_claim_that_publishes_a_pod_it_does_not_hold_is_accused() {
    let history = History::default().pool(1, json!({})).warm(1).new_claim("a", 0);
    history
        .bound("a", "w1")
        .is_guilty("I1", "lists a pod that it does not hold");
}

#[test]
fn a_claim_that_holds_two_pods_is_accused_unless_two_operators_raced() {
    let w2 = Pod::warm("w2");
    let history = bound_once().pod(&w2).pod(&w2.held_by("a"));
    history.is_guilty("I1", "holds 2 pods");
    let verdict = history.judged_by(&Rules {
        two_operators: true,
        ..Rules::default()
    });
    assert!(verdict.accusations.is_empty(), "{}", text(&verdict));
    assert_eq!(verdict.figures.spare_holds, 1);
}

#[test]
fn forged_labels_and_status_are_no_breach_and_owner_references_decide() {
    let w2 = Pod::warm("w2");
    let mut labelled = w2.object();
    labelled["metadata"]["labels"]["warmpool.dev/claim-uid"] = json!("uid-a");
    let forged_history = bound_once()
        .pod(&w2)
        .write(Change::Modified, Kind::Pod, labelled)
        .new_claim("b", 0)
        .bound("b", "w1");
    assert!(text(&forged_history.judged()).contains("a claim for 1 holds 2 pods"));
    assert!(text(&forged_history.judged()).contains("lists a pod that it does not hold"));
    let rules = Rules {
        forged: ["w2", "b"].map(String::from).into(),
        ..Rules::default()
    };
    let verdict = forged_history.judged_by(&rules);
    assert!(verdict.accusations.is_empty(), "{}", text(&verdict));
    let verdict = forged_history.pod(&w2.held_by("a")).judged_by(&rules);
    assert!(text(&verdict).contains("a claim for 1 holds 2 pods"));
}

/// A claim comes at 30 ms and its first pod is seen at 40. An operator starts at `start`. The requests for both pods arrive at
/// `arrived`, and the second pod is seen `ms` after 70.
fn holds_two_beside_a_start(start: i64, arrived: [i64; 2], ms: i64) -> Verdict {
    let w2 = Pod::warm("w2");
    let history = bound_once().pod(&w2).later(ms).pod(&w2.held_by("a"));
    let start = Timestamp::UNIX_EPOCH + SignedDuration::from_millis(start);
    let [first, second] = arrived;
    history.judged_by(&Rules {
        operator_down: vec![(start, start)],
        requests: requests([
            request("patch", "w1", first, 200),
            request("patch", "w2", second, 200),
        ]),
        ..Rules::default()
    })
}

#[track_caller]
fn holds_too_many(verdict: &Verdict) {
    assert!(text(verdict).contains("holds 2 pods"), "{}", text(verdict));
}

#[test]
fn a_second_pod_is_excused_if_its_request_of_an_operator_before_a_start_is_carried_out_soon_after_it() {
    let verdict = holds_two_beside_a_start(35, [40, 33], 4000);
    assert!(verdict.accusations.is_empty(), "{}", text(&verdict));
    assert_eq!(verdict.figures.spare_holds, 1);
    // Too late.
    holds_too_many(&holds_two_beside_a_start(35, [40, 33], 6000));
    // The claim came after the start.
    holds_too_many(&holds_two_beside_a_start(20, [40, 15], 0));
    // Both requests are those of the later operator, or of the earlier one.
    holds_too_many(&holds_two_beside_a_start(35, [40, 60], 0));
    holds_too_many(&holds_two_beside_a_start(50, [40, 45], 0));
}

#[test]
fn a_second_pod_is_excused_if_the_request_for_the_first_is_carried_out_after_a_start_but_not_before_it() {
    let verdict = holds_two_beside_a_start(35, [33, 60], 0);
    assert!(verdict.accusations.is_empty(), "{}", text(&verdict));
    assert_eq!(verdict.figures.spare_holds, 1);
    // The list of an operator that starts after the first pod was stored shows whose it is.
    holds_too_many(&holds_two_beside_a_start(45, [33, 60], 0));
}

#[test]
fn a_claim_that_lists_two_or_changes_its_sandbox_is_accused() {
    let two = json!({"phase": "Bound", "sandboxes": [{"uid": "uid-w1"}, {"uid": "uid-w9"}]});
    bound_once().claim("a", two).is_guilty("I1", "lists 2 sandboxes");
    bound_once()
        .bound("a", "w9")
        .is_guilty("I1", "changed its sandbox");
    bound_once()
        .claim("a", json!({"phase": "Bound"}))
        .is_guilty("I1", "is Bound to 0 of 1 sandboxes");
    bound_once().bound("a", "w1").is_innocent();
}

#[test]
fn a_claim_that_goes_back_to_an_earlier_phase_is_accused() {
    let sandbox = json!([{"uid": "uid-w1"}]);
    let failed = json!({"phase": "Failed", "sandboxes": sandbox});
    bound_once()
        .claim("a", json!({"phase": "Pending", "sandboxes": sandbox}))
        .is_guilty("I1", "from phase Bound back");
    let w1 = Pod {
        phase: "Failed",
        ..Pod::warm("w1").held_by("a")
    };
    let lost = || bound_once().pod(&w1).claim("a", failed.clone());
    lost().is_innocent();
    lost().bound("a", "w1").is_guilty("I1", "from phase Failed back");
}

#[test]
fn a_claimed_pod_deleted_under_its_claim_is_accused() {
    let pod = Pod::warm("w1").held_by("a");
    bound_once()
        .pod(&pod.terminating())
        .is_guilty("I2", "was deleted while claim a has it");
    bound_once()
        .no_pod(&pod)
        .is_guilty("I2", "was deleted while claim a has it");
}

#[test]
fn a_claimed_pod_deleted_by_another_user_is_no_breach() {
    let history = bound_once().pod(&Pod::warm("w1").held_by("a").terminating());
    let rules = Rules {
        deleted_by_others: ["uid-w1".to_string()].into(),
        ..Rules::default()
    };
    assert!(history.judged_by(&rules).accusations.is_empty());
}

#[test]
fn a_claimed_pod_that_was_never_published_may_be_deleted() {
    let w1 = Pod::warm("w1");
    let held = History::default()
        .pool(1, json!({}))
        .pod(&w1)
        .new_claim("a", 0)
        .pod(&w1.held_by("a"));
    held.pod(&w1.held_by("a").terminating()).is_innocent();
}

#[test]
fn a_claim_bound_to_an_unusable_pod_is_accused() {
    let claiming = |before: Pod, after: Pod| {
        History::default()
            .pool(1, json!({}))
            .pod(&before)
            .new_claim("a", 0)
            .pod(&after.held_by("a"))
    };
    let warm = Pod::warm("w1");
    claiming(warm.clone(), warm.unready()).is_guilty("I3", "not Ready");
    claiming(Pod::pending("w1"), Pod::pending("w1")).is_guilty("I3", "in phase Pending");
    claiming(warm.terminating(), warm.terminating()).is_guilty("I3", "terminating");
    claiming(warm.clone(), warm.clone()).is_innocent();
    History::default()
        .new_claim("a", 0)
        .pod(&warm.held_by("a"))
        .is_guilty("I3", "never seen unclaimed");
}

#[test]
fn a_claim_bound_to_a_pod_within_min_ready_seconds_is_accused() {
    let claiming = |after_ms: i64| {
        let pool = History::default()
            .pool(1, json!({"minReadySeconds": 3}))
            .warm(1)
            .new_claim("a", 0);
        pool.later(after_ms).pod(&Pod::warm("w1").held_by("a"))
    };
    claiming(1000).is_guilty("I3", "Ready for");
    claiming(4000).is_innocent();
}

#[test]
fn a_claim_bound_to_the_pod_of_another_pool_is_accused() {
    let mut foreign = claim("a", 0, json!({}));
    foreign["spec"]["poolRef"]["name"] = json!("q");
    let history = History::default()
        .pool(1, json!({}))
        .warm(1)
        .write(Change::Added, Kind::Claim, foreign);
    history
        .pod(&Pod::warm("w1").held_by("a"))
        .is_guilty("I3", "of pool p and the claim asks for q");
}

#[test]
fn a_selector_claim_bound_to_the_pod_of_a_pool_without_its_labels_is_accused() {
    let labelled = |lang: &str| json!({"metadata": {"name": "p", "uid": "pool-p", "labels": {"lang": lang}}, "spec": {"replicas": 1}});
    let mut selector_claim = claim("a", 0, json!({}));
    selector_claim["spec"] = json!({"poolSelector": {"matchLabels": {"lang": "python"}}});
    let claiming = |before: &[&str], after: &str| {
        let write = |h: History, lang: &&str| h.write(Change::Modified, Kind::Pool, labelled(lang));
        before
            .iter()
            .fold(History::default(), write)
            .warm(1)
            .write(Change::Added, Kind::Claim, selector_claim.clone())
            .write(Change::Modified, Kind::Pool, labelled(after))
            .pod(&Pod::warm("w1").held_by("a"))
    };
    let accused = "of pool p and the claim asks for one with {\"lang\": \"python\"}";
    claiming(&["node"], "node").is_guilty("I3", accused);
    claiming(&["python", "node"], "node").is_guilty("I3", accused);
    claiming(&["python"], "python").is_innocent();
    // The pool had the labels at one moment while the claim existed.
    claiming(&["python"], "node").is_innocent();
    claiming(&["node"], "python").is_innocent();
}
