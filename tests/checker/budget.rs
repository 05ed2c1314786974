//! Checks rule I4 on budgets and limits.

use crate::check::Rules;
use crate::check::event::{Change, Kind};
use crate::history::{History, Pod, claim, request, requests, text, waiting_for_a_processor};
use jiff::SignedDuration;
use serde_json::{Value, json};

#[test]
fn a_deletion_below_the_budget_is_accused() {
    let roll = |unavailable: Value| {
        History::default()
            .pool(4, json!({"updateStrategy": {"maxUnavailable": unavailable}}))
            .warm(4)
    };
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    roll(json!(1)).pod(&w1.terminating()).is_innocent();
    roll(json!(1))
        .pod(&w1.terminating())
        .pod(&w2.terminating())
        .is_guilty("I4", "left 2 available");
    roll(json!("50%")).no_pod(&w1).no_pod(&w2).is_innocent();
    roll(json!("49%"))
        .no_pod(&w1)
        .no_pod(&w2)
        .is_guilty("I4", "replicas - maxUnavailable is 3");
    // A budget that resolves to 0 requires a surge, and an invalid budget allows no deletion either.
    for unavailable in [json!("0%"), json!("abc")] {
        roll(unavailable)
            .no_pod(&w1)
            .is_guilty("I4", "replicas - maxUnavailable is 4");
    }
}

#[test]
fn where_max_total_leaves_no_capacity_for_a_surge_one_may_be_missing() {
    let full = |max_total: usize| {
        let strategy = json!({"maxUnavailable": "10%", "maxSurge": 0});
        History::default()
            .pool(
                4,
                json!({"updateStrategy": strategy, "capacity": {"maxTotal": max_total}}),
            )
            .warm(4)
    };
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    full(4).no_pod(&w1).is_innocent();
    full(4)
        .no_pod(&w1)
        .no_pod(&w2)
        .is_guilty("I4", "replicas - maxUnavailable is 3");
    full(5)
        .no_pod(&w1)
        .is_guilty("I4", "replicas - maxUnavailable is 4");
}

#[test]
fn a_surge_allows_more_unclaimed_sandboxes_and_no_fewer() {
    let surge = |budget: Value| {
        History::default()
            .pool(4, json!({"updateStrategy": budget}))
            .warm(4)
    };
    let (w1, more) = (Pod::warm("w1"), Pod::pending("more"));
    let none_missing = || surge(json!({"maxUnavailable": 0, "maxSurge": "10%"}));
    none_missing().pod(&more).is_innocent();
    none_missing()
        .pod(&more)
        .pod(&Pod::pending("most"))
        .is_guilty("I4", "6th unclaimed sandbox");
    none_missing()
        .pod(&w1.terminating())
        .is_guilty("I4", "replicas - maxUnavailable is 4");
    // Both at 0 count as a surge of one.
    let both_zero = || surge(json!({"maxUnavailable": 0, "maxSurge": 0}));
    both_zero().pod(&more).is_innocent();
    both_zero()
        .pod(&w1.terminating())
        .is_guilty("I4", "replicas - maxUnavailable is 4");
}

#[test]
fn a_pod_that_is_about_to_be_terminated_may_be_replaced_before_it_goes() {
    let mut disrupted = Pod::warm("w1").object();
    let conditions = disrupted["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}));
    let pool = || History::default().pool(4, json!({})).warm(4);
    let evicted = || pool().write(Change::Modified, Kind::Pod, disrupted.clone());
    let more = Pod::pending("more");
    evicted().pod(&more).is_innocent();
    evicted()
        .pod(&more)
        .pod(&Pod::pending("most"))
        .is_guilty("I4", "6th unclaimed sandbox");
    pool().pod(&more).is_guilty("I4", "5th unclaimed sandbox");
}

#[test]
fn recreate_may_delete_them_all() {
    let pool = History::default()
        .pool(2, json!({"updateStrategy": {"type": "Recreate"}}))
        .warm(2);
    pool.no_pod(&Pod::warm("w1"))
        .no_pod(&Pod::warm("w2"))
        .is_innocent();
}

#[test]
fn unavailable_sandboxes_and_those_of_others_are_no_part_of_the_budget() {
    let budget = json!({"updateStrategy": {"maxUnavailable": 1}});
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    let pool = History::default().pool(4, budget.clone()).warm(4);
    pool.pod(&w1.terminating())
        .pod(&w2.unready())
        .no_pod(&w2.unready())
        .is_innocent();
    let by_hand = History::default().pool(4, budget).warm(4).no_pod(&w1).no_pod(&w2);
    by_hand.is_guilty("I4", "left 2 available");
    let rules = Rules {
        deleted_by_others: ["uid-w2".to_string()].into(),
        ..Rules::default()
    };
    assert!(by_hand.judged_by(&rules).accusations.is_empty());
}

#[test]
fn a_loss_just_before_a_deletion_excuses_it_only_where_it_could_not_be_known() {
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    let pool = History::default()
        .pool(4, json!({"updateStrategy": {"maxUnavailable": 1}}))
        .warm(4);
    let history = pool.pod(&w2.unready()).pod(&w1.terminating());
    history.is_innocent();
    let rules = Rules {
        unseen: SignedDuration::ZERO,
        ..Rules::default()
    };
    assert_eq!(history.judged_by(&rules).accusations.len(), 1);
    let late = History {
        events: history.events,
        ms: history.ms,
    }
    .later(500)
    .pod(&Pod::warm("w3").terminating());
    late.is_guilty("I4", "left 1 available");
}

/// A pool of four of which one may be missing. Claim a comes at 60 ms, `waits_ms` later it takes w2, and then w1 is deleted.
fn taken_and_deleted(waits_ms: i64) -> History {
    let pool = History::default()
        .pool(4, json!({"updateStrategy": {"maxUnavailable": 1}}))
        .warm(4)
        .new_claim("a", 0);
    let taken = pool.later(waits_ms).pod(&Pod::warm("w2").held_by("a"));
    taken.pod(&Pod::warm("w1").terminating())
}

/// What is said of a history whose claim took w2 by a request of `bound_at`, and whose w1 was deleted by one of `deleted_at`.
fn accusations(history: &History, bound_at: i64, deleted_at: i64, rules: Rules) -> String {
    let rules = Rules {
        requests: requests([
            request("patch", "w2", bound_at, 200),
            request("delete", "w1", deleted_at, 200),
        ]),
        ..rules
    };
    text(&history.judged_by(&rules))
}

#[test]
fn a_claim_excuses_only_a_deletion_that_was_decided_on_before_it_could_be_known() {
    let accused = |history: &History, sent: &[(i64, u16)]| {
        let deletions = sent.iter().map(|(at, code)| request("delete", "w1", *at, *code));
        let rules = Rules {
            requests: requests(deletions),
            ..Rules::default()
        };
        text(&history.judged_by(&rules))
    };
    // Claim a takes w2 at 2.07 s, and w1 goes at 2.08 s.
    let late = taken_and_deleted(2000);
    assert!(accused(&late, &[]).contains("I4: pod w1 was deleted while available, which left 2"));
    assert!(
        accused(&late, &[(1000, 200)]).contains("I4"),
        "the claim had come long before"
    );
    assert_eq!(accused(&late, &[(50, 200)]), "");
    // Repeated after an answer that was lost or an error, it rests on the first decision; after a conflict on a new one.
    assert_eq!(accused(&late, &[(50, 0), (1000, 500), (2075, 200)]), "");
    assert!(accused(&late, &[(50, 409), (2075, 200)]).contains("I4"));
    // The watch may be as late as that.
    let prompt = taken_and_deleted(100);
    assert_eq!(accused(&prompt, &[]), "");
    assert_eq!(prompt.judged().figures.excused, 1);
}

#[test]
fn a_claim_that_a_broken_watch_hid_excuses_no_deletion_decided_on_after_its_binding() {
    // Claim a takes w2 at 4.07 s, as decided at 3 s, and w1 goes at 4.08 s.
    let hidden = taken_and_deleted(4000);
    let accused = |deleted_at: i64| {
        let rules = Rules {
            unseen: SignedDuration::from_secs(30),
            ..Rules::default()
        };
        accusations(&hidden, 3000, deleted_at, rules)
    };
    assert_eq!(accused(2500), "", "before the binding");
    assert_eq!(accused(3200), "", "in the same moment");
    assert!(accused(3300).contains("I4: pod w1 was deleted while available, which left 2"));
}

#[test]
fn a_claim_that_is_bound_after_a_deletion_may_have_been_seen_twice_as_late() {
    // Claim a comes at 60 ms and takes w2 at 1,070 ms, and w1 goes at 1,080 ms.
    let taken = taken_and_deleted(1000);
    let accused = |bound_at, deleted_at| accusations(&taken, bound_at, deleted_at, Rules::default());
    assert_eq!(accused(450, 400), "");
    assert!(accused(390, 400).contains("I4: pod w1 was deleted while available, which left 2"));
    assert!(accused(650, 600).contains("I4: pod w1 was deleted while available, which left 2"));
}

#[test]
fn a_deletion_and_a_binding_of_one_moment_may_come_apart_while_a_processor_is_waited_for() {
    // Claim a takes w2, as decided at 3 s, and w1 goes by a request of 3.8 s.
    let hidden = taken_and_deleted(4000);
    let accused = |waited: i64| {
        let rules = Rules {
            unseen: SignedDuration::from_secs(30),
            ..waiting_for_a_processor(&[(2900, 3900, waited)])
        };
        accusations(&hidden, 3000, 3800, rules)
    };
    assert_eq!(accused(600), "");
    assert!(accused(500).contains("I4: pod w1 was deleted while available, which left 2"));
}

#[test]
fn a_claim_may_be_seen_later_by_as_much_as_a_processor_is_waited_for() {
    // Claim a comes at 60 ms and takes w2 by a request of 750 ms, and w1 goes by one of 700 ms.
    let taken = taken_and_deleted(1000);
    let accused = |waited: i64| {
        let rules = waiting_for_a_processor(&[(0, 700, waited)]);
        accusations(&taken, 750, 700, rules)
    };
    assert_eq!(accused(200), "");
    assert!(accused(100).contains("I4: pod w1 was deleted while available, which left 2"));
}

#[test]
fn one_claim_excuses_one_deletion() {
    let two = taken_and_deleted(100).pod(&Pod::warm("w3").terminating());
    two.is_guilty("I4", "pod w3 was deleted while available, which left 1");
}

#[test]
fn one_claim_excuses_no_second_deletion_although_another_sandbox_became_available() {
    let w3 = Pod::warm("w3");
    let refilled = || {
        taken_and_deleted(100)
            .pod(&Pod::pending("w5"))
            .pod(&Pod::warm("w5"))
    };
    refilled()
        .pod(&w3.terminating())
        .is_guilty("I4", "pod w3 was deleted while available, which left 2");
    let taken = |history: History| history.new_claim("b", 0).pod(&Pod::warm("w4").held_by("b"));
    taken(refilled())
        .pod(&w3.terminating())
        .is_guilty("I4", "pod w3 was deleted while available, which left 1");
    // A loss after the others excuses it.
    let excused = taken(refilled().pod(&Pod::warm("w6"))).pod(&w3.terminating());
    excused.is_innocent();
    assert_eq!(excused.judged().figures.excused, 2);
}

#[test]
fn two_operators_may_each_delete_max_unavailable_and_no_more() {
    let [w1, w2, w3] = ["w1", "w2", "w3"].map(Pod::warm);
    let deleted = |pods: &[&Pod]| {
        let pool = History::default()
            .pool(4, json!({"updateStrategy": {"maxUnavailable": 1}}))
            .warm(4);
        let history = pods.iter().fold(pool, |h, pod| h.pod(&pod.terminating()));
        let rules = Rules {
            two_operators: true,
            ..Rules::default()
        };
        text(&history.judged_by(&rules))
    };
    assert_eq!(deleted(&[&w1, &w2]), "");
    assert!(deleted(&[&w1, &w2, &w3]).contains("left 1 available"));
}

#[test]
fn a_scale_down_is_no_breach_even_when_it_is_reverted_at_once() {
    let pool = || {
        History::default()
            .pool(4, json!({}))
            .warm(4)
            .later(5000)
            .pool(1, json!({}))
    };
    let down = |h: History| {
        h.no_pod(&Pod::warm("w1"))
            .no_pod(&Pod::warm("w2"))
            .no_pod(&Pod::warm("w3"))
    };
    down(pool()).is_innocent();
    down(pool().pool(4, json!({}))).is_innocent();
    down(pool().pool(4, json!({})).later(5000)).is_guilty("I4", "replicas - maxUnavailable is 3");
}

#[test]
fn more_unclaimed_sandboxes_than_wanted_are_accused() {
    let full = || History::default().pool(2, json!({})).warm(2);
    let more = Pod::pending("more");
    full().pod(&more).is_guilty("I4", "3th unclaimed sandbox");
    full().new_claim("a", 0).pod(&more).is_innocent();
    full()
        .new_claim("a", 0)
        .claim("a", json!({"phase": "Failed"}))
        .later(5000)
        .pod(&more)
        .is_guilty("I4", "3th");
    full().no_pod(&Pod::warm("w1")).pod(&more).is_innocent();
    History::default()
        .pool(2, json!({"capacity": {"minTotal": 3}}))
        .warm(3)
        .is_innocent();
}

#[test]
fn more_pods_than_max_total_are_accused() {
    let capacity = |max: i64| json!({"capacity": {"maxTotal": max}});
    let bound = |max: i64| {
        let w1 = Pod::warm("w1");
        let pool = History::default()
            .pool(1, capacity(max))
            .pod(&w1)
            .new_claim("a", 0);
        pool.pod(&w1.held_by("a")).pod(&Pod::pending("w2"))
    };
    bound(2).is_innocent();
    bound(1).is_guilty("I4", "2th of pool p, whose maxTotal is 1");
    // A terminating pod still counts.
    let leaving = History::default()
        .pool(1, capacity(1))
        .warm(1)
        .pod(&Pod::warm("w1").terminating());
    leaving
        .pod(&Pod::pending("w2"))
        .is_guilty("I4", "whose maxTotal is 1");
}

/// The pool is made smaller at 40 ms, and a third sandbox is there 10 s later.
fn created_long_after_the_pool_was_made_smaller() -> History {
    let wanted = History::default().pool(3, json!({})).warm(2);
    wanted
        .pool(2, json!({}))
        .later(10_000)
        .pod(&Pod::warm("late").unready())
}

#[test]
fn a_delayed_creation_is_excused_by_the_replicas_before_the_delay() {
    let history = created_long_after_the_pool_was_made_smaller();
    history.is_guilty("I4", "3th unclaimed");
    let rules = Rules {
        held_up: SignedDuration::from_secs(30),
        ..Rules::default()
    };
    assert!(history.judged_by(&rules).accusations.is_empty());
}

#[test]
fn a_creation_is_judged_by_what_was_wanted_when_its_request_arrived() {
    let history = created_long_after_the_pool_was_made_smaller();
    let accused = |arrived| {
        let rules = Rules {
            requests: requests([request("create", "late", arrived, 201)]),
            ..Rules::default()
        };
        text(&history.judged_by(&rules))
    };
    assert_eq!(accused(1_000), "");
    assert!(accused(9_000).contains("I4: pod late was created as the 3th unclaimed"));
}

#[test]
fn a_delayed_deletion_is_excused_by_the_budget_before_the_delay() {
    let strict = || json!({"updateStrategy": {"maxUnavailable": 0, "maxSurge": 1}});
    let few = History::default()
        .pool(2, strict())
        .warm(2)
        .later(5_000)
        .pool(1, strict());
    let more = few.later(5_000).pool(2, strict()).later(10_000);
    let history = more.no_pod(&Pod::warm("w1"));
    history.is_guilty("I4", "left 1 available");
    let rules = Rules {
        held_up: SignedDuration::from_secs(30),
        ..Rules::default()
    };
    assert!(history.judged_by(&rules).accusations.is_empty());
}

#[test]
fn a_selector_claim_has_sandboxes_created_only_where_the_labels_match() {
    let created = |lang: &str| {
        let mut selector_claim = claim("a", 0, json!({}));
        selector_claim["spec"] = json!({"poolSelector": {"matchLabels": {"lang": "python"}}});
        let pool = json!({"metadata": {"name": "p", "uid": "pool-p", "labels": {"lang": lang}}, "spec": {"replicas": 1, "updateStrategy": {"maxUnavailable": 1}}});
        History::default()
            .write(Change::Modified, Kind::Pool, pool)
            .warm(1)
            .write(Change::Added, Kind::Claim, selector_claim)
            .pod(&Pod::pending("more"))
    };
    created("python").is_innocent();
    created("node").is_guilty("I4", "2th unclaimed sandbox");
}
