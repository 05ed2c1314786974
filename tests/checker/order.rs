//! Checks rule I7 on the order of service, and gaps in histories.

use crate::check::event::{Change, Kind};
use crate::check::requests::Request;
use crate::check::{self, BINDINGS, Rules};
use crate::history::{
    History, Pod, bound_once, claim, moment, request, requests, text, waiting_for_a_processor,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// Claims a and b wait. First b is served, and `elder_waits_ms` later a.
fn served_second_first(elder: i64, younger: i64, elder_waits_ms: i64) -> History {
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    let queue = History::default()
        .pool(2, json!({}))
        .new_claim("a", elder)
        .later(1500)
        .new_claim("b", younger);
    let served = queue.later(1500).warm(2).pod(&w1.held_by("b")).bound("b", "w1");
    served
        .later(elder_waits_ms)
        .pod(&w2.held_by("a"))
        .bound("a", "w2")
}

#[test]
fn overtaking_a_claim_is_accused() {
    served_second_first(0, 0, 3000)
        .is_guilty("I7", "was served while claim a (priority 0), which goes first");
    served_second_first(5, 0, 3000).is_guilty("I7", "claim a (priority 5)");
    served_second_first(0, 5, 3000).is_innocent();
}

#[test]
fn bindings_of_one_plan_may_come_apart_while_a_processor_is_waited_for() {
    let history = served_second_first(0, 0, 3000);
    let is_accused = |waited: i64| {
        let rules = waiting_for_a_processor(&[(3_000, 10_000, waited)]);
        !history.judged_by(&rules).accusations.is_empty()
    };
    assert!(!is_accused(2_500));
    assert!(is_accused(1_000));
}

#[test]
fn an_operator_started_later_need_not_know_the_age_of_a_rewritten_claim_within_its_second() {
    let created = |name: &str, second: u8| {
        let mut object = claim(name, 0, json!({}));
        object["metadata"]["creationTimestamp"] = json!(format!("1970-01-01T00:00:0{second}Z"));
        object
    };
    let w1 = Pod::warm("w1");
    let passed = |written: &str, second: u8| {
        let history = History::default()
            .pool(1, json!({}))
            .write(Change::Added, Kind::Claim, created("a", 0))
            .write(Change::Added, Kind::Claim, created("b", second));
        let second_written = if written == "a" { 0 } else { second };
        history
            .write(Change::Modified, Kind::Claim, created(written, second_written))
            .later(3000)
            .pod(&w1)
            .pod(&w1.held_by("b"))
            .bound("b", "w1")
            .later(3000)
            .pod(&Pod::pending("w2"))
    };
    let started = |second: i64| {
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        Rules {
            operator_down: vec![(at, at)],
            ..Rules::default()
        }
    };
    let accused = |second: u8, rules: &Rules| !passed("a", second).judged_by(rules).accusations.is_empty();
    passed("a", 0).is_guilty("I7", "which goes first, waited");
    assert!(!accused(0, &started(1)));
    assert!(accused(1, &started(1)), "their creation times differ by a second");
    assert!(accused(0, &started(0)), "the claims came after the start");
    assert!(accused(0, &started(5)), "the claims were served before the start");
    let other_written = passed("b", 0).judged_by(&started(1));
    assert!(
        !other_written.accusations.is_empty(),
        "claim a was not written since its creation, so its age is known"
    );
}

#[test]
fn two_claims_served_by_one_plan_are_no_overtaking_but_are_counted_and_bounded() {
    let history = served_second_first(0, 0, 100);
    history.is_innocent();
    let figures = history.judged().figures;
    assert_eq!(figures.late, 1);
    assert_eq!(figures.reordered.as_millis(), 120);
    let none = Rules {
        late: 0,
        ..Rules::default()
    };
    let accused = text(&history.judged_by(&none));
    assert!(
        accused.contains("of 1 of 2 claims arrived after that of a younger claim"),
        "{accused}"
    );
}

/// Claims a and b wait, and one sandbox is available. Claim b gets it, and a the next one 30 ms later.
fn served_with_the_next_one() -> History {
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    let queue = History::default().pool(2, json!({})).new_claim("a", 0);
    queue
        .new_claim("b", 0)
        .warm(1)
        .pod(&w1.held_by("b"))
        .pod(&w2)
        .pod(&w2.held_by("a"))
        .bound("a", "w2")
        .bound("b", "w1")
}

#[test]
fn an_elder_that_gets_a_sandbox_of_later_is_passed_over_however_short_the_time() {
    served_with_the_next_one().is_guilty("I7", "was served while claim a (priority 0), which goes first");
    let faults = Rules {
        passed_over: SignedDuration::from_secs(1),
        ..Rules::default()
    };
    let verdict = served_with_the_next_one().judged_by(&faults);
    assert!(verdict.accusations.is_empty(), "{}", text(&verdict));
}

#[test]
fn an_elder_that_came_just_before_is_known_by_the_order_of_versions() {
    // Both claims come within 20 ms, and the younger is bound 20 ms later.
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    let history = History::default().pool(2, json!({})).warm(2);
    let history = history.new_claim("a", 0).new_claim("b", 0).pod(&w1.held_by("b"));
    let history = history.later(1400).pod(&w2.held_by("a"));
    history.is_guilty("I7", "which goes first, waited");
}

/// Pods w1 and w2 of one node have long been available. Claim b gets `younger`, and 100 ms later claim a, which is older, gets
/// `elder`.
fn served_from_one_node(younger: &str, elder: &str, rules: &Rules) -> String {
    let on_node = |pod: &Pod| {
        let mut object = pod.object();
        object["spec"]["nodeName"] = json!("node");
        object
    };
    let pod = |history: History, pod: &Pod| history.write(Change::Modified, Kind::Pod, on_node(pod));
    let warm = ["w1", "w2"]
        .iter()
        .fold(History::default().pool(2, json!({})), |history, name| {
            pod(history, &Pod::warm(name))
        });
    let queue = warm.later(3000).new_claim("a", 0).new_claim("b", 0);
    let served = pod(queue, &Pod::warm(younger).held_by("b")).later(100);
    let served = pod(served, &Pod::warm(elder).held_by("a"));
    text(&served.judged_by(rules))
}

#[test]
fn an_elder_that_gets_the_worse_sandbox_is_passed_over_and_with_the_better_one_it_is_not() {
    let rules = Rules::default();
    // Of equals, the last name is claimed first.
    assert!(served_from_one_node("w2", "w1", &rules).contains("which goes first, waited"));
    let strict = Rules {
        reordered: SignedDuration::ZERO,
        ..Rules::default()
    };
    assert_eq!(served_from_one_node("w1", "w2", &strict), "");
    // Both requests are under way at once, from 3.04 s on.
    let at_once = |pod: &str| Request {
        answered: moment(4000),
        ..request("patch", pod, 3040, 200)
    };
    let at_once = Rules {
        requests: requests([at_once("w1"), at_once("w2")]),
        ..Rules::default()
    };
    assert!(served_from_one_node("w2", "w1", &at_once).contains("which goes first, waited"));
    assert_eq!(served_from_one_node("w1", "w2", &at_once), "");
}

#[test]
fn requests_that_arrived_in_order_are_in_order_however_they_were_carried_out() {
    let history = served_second_first(0, 0, 3000);
    // The pods are w1 at 3.05 s and w2 at 6.07 s.
    let arrived = |elder: i64, younger: i64| Rules {
        requests: requests([
            request("patch", "w1", younger, 200),
            request("patch", "w2", elder, 200),
        ]),
        ..Rules::default()
    };
    let accused = |rules: &Rules| text(&history.judged_by(rules));
    assert_eq!(accused(&arrived(3040, 3045)), "");
    assert!(accused(&arrived(4500, 3045)).contains("which goes first, waited"));
}

#[test]
fn an_urgent_claim_that_came_later_counts_once_the_operator_can_know_it() {
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    let urgent = |before_ms: i64| {
        let history = History::default().pool(2, json!({})).warm(2).new_claim("b", 0);
        let history = history.later(2000).new_claim("a", 9).later(before_ms);
        history.pod(&w1.held_by("b")).later(1400).pod(&w2.held_by("a"))
    };
    urgent(500).is_innocent();
    urgent(1500).is_guilty("I7", "claim a (priority 9), which goes first");
}

#[test]
fn an_elder_whose_binding_went_down_with_the_operator_or_failed_is_not_passed_over() {
    let history = served_second_first(0, 0, 3000);
    let accused = |rules: Rules| text(&history.judged_by(&rules));
    // Claim b is bound at 3.05 s.
    let down = |from: i64, to: i64| Rules {
        operator_down: vec![(moment(from), moment(to))],
        ..Rules::default()
    };
    assert_eq!(accused(down(3100, 4000)), "");
    assert!(accused(down(4500, 5000)).contains("which goes first, waited"));
    let failed = |at: i64| Rules {
        requests: requests([request("patch", "w2", at, 422), request("patch", "w2", 6060, 200)]),
        ..Rules::default()
    };
    assert_eq!(accused(failed(3060)), "");
    assert!(accused(failed(4500)).contains("which goes first, waited"));
}

#[test]
fn an_outage_excuses_nothing_that_the_next_operator_decided_on() {
    let history = served_second_first(0, 0, 6000);
    // Claim b is bound at 3.05 s. Connections of a new operator may take 5 s to open.
    let accused = |over_at: i64, gaps: bool| {
        let rules = Rules {
            operator_down: vec![(moment(over_at - 500), moment(over_at))],
            reordered: SignedDuration::from_secs(5),
            idle: None,
            gaps,
            ..Rules::default()
        };
        text(&history.judged_by(&rules))
    };
    // Its last requests may still have been on their way.
    assert_eq!(accused(2100, false), "");
    assert!(accused(1900, false).contains("which goes first, waited"));
    // The operator was there, and the API server was not: it goes on with what it had decided.
    assert_eq!(accused(1900, true), "");
}

/// So many claims wait. The youngest is bound first, and 6 s later the others, one after the other.
fn passed_over(elders: usize) -> History {
    let names: Vec<String> = (0..elders).map(|number| format!("e{number}")).collect();
    let pods = elders + 1;
    let queue = History::default().pool(40, json!({}));
    let queue = names.iter().fold(queue, |queue, name| queue.new_claim(name, 0));
    let served = queue.later(1500).new_claim("b", 0).warm(pods);
    let served = served
        .pod(&Pod::warm("w1").held_by("b"))
        .bound("b", "w1")
        .later(6000);
    let pod = |number: usize| format!("w{}", number + 2);
    names.iter().enumerate().fold(served, |history, (number, name)| {
        let bound = history.pod(&Pod::warm(&pod(number)).held_by(name));
        bound.bound(name, &pod(number))
    })
}

#[test]
fn an_outage_excuses_no_more_claims_than_had_bindings_in_flight() {
    let accused = |elders: usize| {
        let history = passed_over(elders);
        let bound = history.events.iter().find(|event| {
            event.name() == "w1" && event.object["metadata"]["labels"]["warmpool.dev/state"] == "claimed"
        });
        let at = bound.map(|event| event.at).unwrap();
        let rules = Rules {
            operator_down: vec![(at, at + SignedDuration::from_secs(1))],
            idle: None,
            ..Rules::default()
        };
        history.judged_by(&rules).accusations.len()
    };
    assert_eq!(accused(BINDINGS), 0);
    assert_eq!(accused(BINDINGS + 3), 3);
}

#[test]
fn bindings_of_before_an_outage_are_not_late_for_the_sake_of_its_new_connections() {
    let history = served_second_first(0, 0, 100);
    // Claim a is bound at 3.17 s.
    let accused = |over_at: i64| {
        let rules = Rules {
            operator_down: vec![(moment(over_at), moment(over_at))],
            late: 0,
            ..Rules::default()
        };
        text(&history.judged_by(&rules))
    };
    assert_eq!(accused(1000), "");
    assert!(accused(4500).contains("of 1 of 2 claims arrived after that of a younger claim"));
}

#[test]
fn a_failed_binding_excuses_what_is_served_until_it_is_tried_again() {
    let history = served_second_first(0, 0, 3000);
    // Claim b is bound at 3.05 s.
    let accused = |answered: i64, retried_after: i64| {
        let failed = Request {
            answered: moment(answered),
            ..request("patch", "w9", 100, 503)
        };
        let rules = Rules {
            requests: requests([failed, request("patch", "w2", 6060, 200)]),
            retried_after: SignedDuration::from_secs(retried_after),
            ..Rules::default()
        };
        text(&history.judged_by(&rules))
    };
    assert_eq!(accused(2500, 0), "");
    assert!(accused(1500, 0).contains("which goes first, waited"));
    assert_eq!(accused(1500, 1), "");
}

#[test]
fn a_failed_binding_excuses_one_claim_of_its_own_pool() {
    // Claims a and c wait. First b is served, after 3 s, and 3 s later the others.
    let [w1, w2, w3] = ["w1", "w2", "w3"].map(Pod::warm);
    let mut elsewhere = Pod::warm("x").object();
    elsewhere["metadata"]["labels"]["warmpool.dev/pool"] = json!("q");
    let pools = History::default().pool(3, json!({}));
    let pools = pools.write(Change::Modified, Kind::Pod, elsewhere);
    let queue = pools.new_claim("a", 0).new_claim("c", 0);
    let served = queue.later(1500).new_claim("b", 0).later(1500).warm(3);
    let served = served.pod(&w1.held_by("b")).later(3000);
    let history = served.pod(&w2.held_by("a")).pod(&w3.held_by("c"));
    let accused = |failed: &[&str]| {
        let failed = failed.iter().map(|pod| request("patch", pod, 3070, 422));
        let carried_out = [("w1", 3080), ("w2", 6080), ("w3", 6090)];
        let carried_out = carried_out.map(|(pod, at)| request("patch", pod, at, 200));
        let rules = Rules {
            requests: requests(failed.chain(carried_out)),
            ..Rules::default()
        };
        history.judged_by(&rules).accusations.len()
    };
    assert_eq!(accused(&[]), 2);
    assert_eq!(accused(&["w2"]), 1);
    assert_eq!(accused(&["w2", "w3"]), 0);
    assert_eq!(accused(&["w2", "x"]), 1);
}

#[test]
fn an_elder_that_is_given_up_long_after_it_was_passed_is_passed_over() {
    let given_up = |ms: i64| {
        let history = History::default().pool(2, json!({})).warm(1).new_claim("a", 0);
        let history = history.new_claim("b", 0).pod(&Pod::warm("w1").held_by("b"));
        history.later(ms).no_claim("a")
    };
    given_up(1000).is_innocent();
    given_up(6000).is_guilty("I7", "which goes first, waited");
}

#[test]
fn a_claim_that_has_just_come_or_has_failed_is_not_overtaken() {
    let w1 = Pod::warm("w1");
    let pool = || History::default().pool(1, json!({})).warm(1);
    pool()
        .new_claim("a", 0)
        .later(3000)
        .claim("a", json!({"phase": "Failed"}))
        .new_claim("b", 0)
        .pod(&w1.held_by("b"))
        .later(3000)
        .bound("b", "w1")
        .is_innocent();
    pool()
        .new_claim("b", 0)
        .new_claim("a", 9)
        .pod(&w1.held_by("b"))
        .later(3000)
        .bound("b", "w1")
        .is_innocent();
}

#[test]
fn a_gap_in_the_history_is_accused_unless_declared() {
    let mut history = bound_once();
    history.events.iter_mut().skip(3).for_each(|e| e.gap = true);
    history.is_guilty("history", "has a gap");
    let verdict = history.judged_by(&Rules {
        gaps: true,
        ..Rules::default()
    });
    assert!(verdict.accusations.is_empty(), "{}", text(&verdict));
    assert_eq!(verdict.figures.gaps, 2);
}

#[test]
fn events_of_all_kinds_are_ordered_by_resource_version() {
    let mut history = bound_once().no_claim("a");
    history.events.reverse();
    check::sort(&mut history.events);
    history.is_innocent();
    let mut world_sizes = Vec::new();
    check::replay(&history.events, |world, _| {
        world_sizes.push(world.pods.len() + world.claims.len())
    });
    assert_eq!(world_sizes, [0, 1, 2, 2, 2, 1]);
}
