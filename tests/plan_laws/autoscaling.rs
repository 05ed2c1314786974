//! Checks how the size of an autoscaled pool is chosen, and what follows it.

use crate::world::{World, lines};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use warmpool::api::conditions::find;
use warmpool::cache::snapshot::Creation;
use warmpool::planner::{PlanPhase, WriteStatus};

fn autoscaled(fields: Value) -> World {
    let mut world = World::new(2, json!({"autoscaling": {"maxReplicas": 20}}));
    world.set(fields);
    world.converge();
    world
}

fn at(world: &mut World, now: &str) {
    world.now = now.parse().unwrap();
    world.step();
}

fn size(world: &World) -> i32 {
    world.plan().status.desired_replicas
}

/// Reason and message of the condition `ScalingLimited`.
fn limit(world: &World) -> (String, String) {
    let status = world.plan().status;
    let condition = find(&status.conditions, "ScalingLimited").unwrap();
    (condition.reason.clone(), condition.message.clone())
}

fn claims(world: &mut World, count: usize) {
    for number in 0..count {
        world.claim(&format!("claim-{number}"), json!({}));
    }
    world.step();
}

#[test]
fn without_autoscaling_the_size_is_replicas() {
    let world = World::full(7, json!({}));
    assert_eq!(size(&world), 7);
    assert_eq!(world.plan().status.autoscaling, None);
    assert!(find(&world.plan().status.conditions, "ScalingLimited").is_none());
}

#[test]
fn with_autoscaling_replicas_is_the_least_size() {
    let world = autoscaled(json!({}));
    assert_eq!(size(&world), 2);
    assert_eq!(limit(&world).0, "TooFewReplicas");
}

#[test]
fn claims_raise_the_size_at_once_and_those_that_find_no_sandbox_count_too() {
    let mut world = autoscaled(json!({}));
    claims(&mut world, 8);
    assert!((8..=20).contains(&size(&world)), "{}", size(&world));
    world.converge();
    let autoscaling = world.written().autoscaling.unwrap();
    assert_eq!(autoscaling.hit_rate.as_deref(), Some("25.0%"));
    assert_eq!(autoscaling.claims, 8);
}

#[test]
fn a_claim_for_several_counts_as_many() {
    let mut world = autoscaled(json!({}));
    world.claim("batch", json!({"replicas": 9}));
    world.step();
    assert!(size(&world) >= 9);
}

#[test]
fn claims_that_fail_where_none_is_available_count_too() {
    let mut world = autoscaled(json!({}));
    for number in 0..8 {
        world.claim(&format!("claim-{number}"), json!({"onEmpty": "Fail"}));
    }
    world.step();
    assert!(size(&world) >= 8);
}

#[test]
fn a_claim_for_several_that_only_waits_keeps_the_size_until_it_is_served() {
    let mut world = autoscaled(json!({"warmUpDeadlineSeconds": 100_000}));
    world.claim(
        "batch",
        json!({"replicas": 9, "onEmpty": "Wait", "waitTimeoutSeconds": 100_000}),
    );
    for _ in 0..30 {
        world.step();
        world.now += SignedDuration::from_mins(1);
    }
    assert!(size(&world) >= 9);
    world.converge();
    assert!(!world.claims["batch"].waiting());
}

#[test]
fn what_was_learned_outlives_a_restart() {
    let mut world = autoscaled(json!({}));
    claims(&mut world, 8);
    world.converge();
    let before = world.written();
    world.restart();
    world.claim("one-more", json!({}));
    world.converge();
    let after = world.written();
    let (learned, again) = (before.autoscaling.unwrap(), after.autoscaling.unwrap());
    assert_eq!((learned.claims, again.claims), (8, 9));
    assert_eq!(learned.warm_up_milliseconds, again.warm_up_milliseconds);
    assert_eq!(again.hit_rate.as_deref(), Some("33.3%"));
    assert!(after.desired_replicas >= before.desired_replicas);
}

#[test]
fn a_claim_that_waits_is_counted_once() {
    let mut world = autoscaled(json!({"scaleStrategy": {"maxUnavailable": 1}}));
    claims(&mut world, 6);
    let after = size(&world);
    for _ in 0..5 {
        world.step();
    }
    assert_eq!(size(&world), after);
    assert_eq!(world.demand.unwrap().arrivals.seen.total(), 6.0);
}

#[test]
fn no_claims_call_for_more_than_max_replicas() {
    let mut world = autoscaled(json!({}));
    claims(&mut world, 60);
    assert_eq!(size(&world), 20);
    let (reason, message) = limit(&world);
    assert_eq!(reason, "TooManyReplicas");
    assert!(message.contains("raise maxReplicas"), "{message}");
}

#[test]
fn percentages_are_of_the_chosen_size() {
    let mut world = autoscaled(json!({"updateStrategy": {"maxUnavailable": "50%", "partition": "25%"}}));
    claims(&mut world, 60);
    let spec = world.snapshot().pool.spec.clone();
    assert_eq!(
        (spec.replicas, spec.max_unavailable, spec.partition, spec.max_warm),
        (20, 10, 5, 20)
    );
    world.set_image("image:2");
    world.converge();
    let status = world.written();
    assert_eq!((status.available, status.updated), (20, 15));
}

#[test]
fn max_warm_above_the_size_stays_as_written() {
    let world = autoscaled(json!({"capacity": {"maxWarm": 5}}));
    assert_eq!(world.snapshot().pool.spec.max_warm, 5);
}

#[test]
fn a_schedule_raises_the_size_while_it_is_active() {
    let mut world = autoscaled(json!({"autoscaling": {"schedules": [
        {"name": "office", "schedule": "0 8 * * 1-5", "durationSeconds": 36000, "timeZone": "Europe/Berlin", "minReplicas": 9},
        {"name": "morning", "schedule": "0 8 * * *", "durationSeconds": 3600, "timeZone": "Europe/Berlin", "minReplicas": 5},
    ]}}));
    // Monday, 2 February 2026; Berlin is an hour ahead of UTC.
    at(&mut world, "2026-02-02T06:59:59Z");
    assert_eq!(size(&world), 2);
    assert_eq!(world.plan().next, Some("2026-02-02T07:00:00Z".parse().unwrap()));
    at(&mut world, "2026-02-02T07:00:00Z");
    assert_eq!(size(&world), 9, "the highest active schedule counts");
    let message = &world.written().autoscaling.unwrap().message;
    assert!(message.contains("office"), "{message}");
    at(&mut world, "2026-02-02T16:59:59Z");
    assert_eq!(size(&world), 9);
    at(&mut world, "2026-02-02T17:00:00Z");
    assert!(size(&world) < 9, "{}", size(&world));
    // On a Sunday only the morning.
    at(&mut world, "2026-02-08T07:30:00Z");
    assert_eq!(size(&world), 5);
}

/// Checks at each of these times whether the schedule is active that wants 9 sandboxes.
fn assert_active(world: &mut World, times: &[(&str, bool)]) {
    for (now, expected) in times {
        world.now = now.parse().unwrap();
        world.demand = None;
        world.status = Value::Null;
        assert_eq!(size(world) == 9, *expected, "{now}");
    }
}

#[test]
fn a_schedule_follows_daylight_saving_time() {
    let mut world = autoscaled(json!({"autoscaling": {"schedules": [
        {"name": "night", "schedule": "30 2 * * *", "durationSeconds": 1800, "timeZone": "Europe/Berlin", "minReplicas": 9},
    ]}}));
    // On 29 March 2026 there is no 02:30: the clocks go from 02:00 to 03:00, which is 01:00 UTC.
    let times = [
        ("2026-03-28T01:29:59Z", false),
        ("2026-03-28T01:30:00Z", true),
        ("2026-03-29T00:59:59Z", false),
        ("2026-03-29T01:00:00Z", true),
        ("2026-03-30T00:30:00Z", true),
        ("2026-03-30T01:30:00Z", false),
    ];
    assert_active(&mut world, &times);
}

#[test]
fn a_schedule_of_several_times_a_day_has_each_also_when_the_clocks_change() {
    let mut world = autoscaled(json!({"autoscaling": {"schedules": [
        {"name": "twice", "schedule": "0 2,14 * * *", "durationSeconds": 1800, "timeZone": "Europe/Berlin", "minReplicas": 9},
    ]}}));
    // On 29 March 2026 there is no 02:00 before 01:00 UTC, and on 25 October 02:00 comes twice, from 00:00 UTC on.
    let times = [
        ("2026-03-28T01:00:00Z", true),
        ("2026-03-29T00:59:59Z", false),
        ("2026-03-29T01:00:00Z", true),
        ("2026-03-29T01:30:00Z", false),
        ("2026-03-29T12:00:00Z", true),
        ("2026-03-30T00:00:00Z", true),
        ("2026-10-25T00:00:00Z", true),
        ("2026-10-25T00:30:00Z", false),
        ("2026-10-25T13:00:00Z", true),
    ];
    assert_active(&mut world, &times);
}

#[test]
fn an_invalid_field_keeps_the_last_size_and_is_named() {
    let mut world = autoscaled(json!({}));
    claims(&mut world, 8);
    world.converge();
    let before = size(&world);
    let schedule = |schedule: &str, zone: &str| {
        json!({"schedules": [{
            "name": "a", "schedule": schedule, "durationSeconds": 60, "timeZone": zone, "minReplicas": 3,
        }]})
    };
    for (fields, named) in [
        (
            json!({"maxReplicas": 1}),
            "maxReplicas: 1 is below spec.replicas 2",
        ),
        (json!({"targetHitRate": "0%"}), "targetHitRate: \"0%\""),
        (json!({"targetHitRate": "100%"}), "targetHitRate: \"100%\""),
        (json!({"targetHitRate": "150%"}), "targetHitRate: \"150%\""),
        (json!({"targetHitRate": "abc"}), "targetHitRate: \"abc\""),
        (schedule("0 8 * *", "UTC"), "is not a cron schedule"),
        (schedule("0 0 30 2 *", "UTC"), "never comes"),
        (schedule(", * * * *", "UTC"), "has a list with an empty item"),
        (schedule("0 8,,20 * * *", "UTC"), "has a list with an empty item"),
        (
            schedule("0 8 * * *", "Europe/Nowhere"),
            "\"Europe/Nowhere\" is not a time zone",
        ),
    ] {
        let mut broken = world.clone();
        broken.set(json!({"autoscaling": fields}));
        broken.restart();
        assert_eq!(size(&broken), before, "{named}");
        let (reason, message) = limit(&broken);
        assert_eq!(reason, "InvalidAutoscaling", "I10: {named}");
        assert!(message.contains(named), "I10: {message}");
        let removed = lines(&broken.plan(), PlanPhase::Scale);
        assert_eq!(removed, Vec::<String>::new(), "{named}");
    }
}

#[test]
fn while_the_api_server_rejects_sandboxes_the_pool_keeps_its_size() {
    let mut world = autoscaled(json!({}));
    world.creation = Creation::BackOff {
        until: world.now + SignedDuration::from_secs(60),
        message: "exceeded quota".into(),
    };
    claims(&mut world, 8);
    assert_eq!(size(&world), 2);
    assert_eq!(limit(&world).0, "FailedCreate");
    world.creation = Creation::Open;
    world.step();
    assert!(size(&world) >= 8);
}

#[test]
fn a_pool_that_max_total_keeps_small_says_so() {
    let mut world = autoscaled(json!({"capacity": {"maxTotal": 4}}));
    claims(&mut world, 8);
    world.step();
    assert_eq!(limit(&world).0, "MaxTotalReached");
}

#[test]
fn a_warming_ceiling_that_is_too_low_for_the_claims_is_named() {
    let mut world = autoscaled(json!({"scaleStrategy": {"maxUnavailable": 1}}));
    claims(&mut world, 6);
    assert_eq!(limit(&world).0, "WarmingLimited");
}

#[test]
fn when_claims_stay_away_the_warming_ceiling_is_found_high_enough_without_any_event() {
    let mut world = autoscaled(json!({"scaleStrategy": {"maxUnavailable": 1}}));
    claims(&mut world, 6);
    world.converge();
    for _ in 0..40 {
        let next = world.plan().next.filter(|_| limit(&world).0 == "WarmingLimited");
        let Some(next) = next else { break };
        world.now = next;
        world.step();
    }
    assert_ne!(limit(&world).0, "WarmingLimited");
}

#[test]
fn numbers_that_change_with_every_claim_are_no_reason_to_write_the_status() {
    let mut world = autoscaled(json!({}));
    claims(&mut world, 1);
    world.converge();
    let learned = world.written().autoscaling.unwrap();
    world.now += SignedDuration::from_secs(5);
    let plan = world.plan();
    assert_eq!(plan.write_status, WriteStatus::No);
    assert_eq!(plan.status.autoscaling.unwrap(), learned);
}

#[test]
fn a_clock_that_goes_back_changes_no_size() {
    let mut world = autoscaled(json!({}));
    claims(&mut world, 8);
    world.converge();
    let before = size(&world);
    world.now -= SignedDuration::from_hours(2);
    assert_eq!(size(&world), before);
    world.restart();
    assert_eq!(size(&world), before);
    world.now = Timestamp::UNIX_EPOCH;
    assert_eq!(size(&world), before);
}

#[test]
fn a_clock_that_goes_forward_takes_one_step_at_most() {
    let mut world = autoscaled(json!({}));
    claims(&mut world, 8);
    world.converge();
    let before = size(&world);
    world.now += SignedDuration::from_hours(9);
    world.step();
    assert!(size(&world) * 4 >= before * 3, "{} after {before}", size(&world));
    world.step();
    assert!(size(&world) * 4 >= before * 3, "{} after {before}", size(&world));
}

#[test]
fn autoscaling_that_is_taken_away_leaves_nothing_in_the_status() {
    let mut world = autoscaled(json!({}));
    claims(&mut world, 8);
    world.spec["autoscaling"].take();
    world.converge();
    let status = world.written();
    assert_eq!((status.desired_replicas, status.autoscaling), (2, None));
    assert!(find(&status.conditions, "ScalingLimited").is_none());
}
