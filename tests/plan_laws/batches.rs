//! Checks that a claim for several sandboxes gets all of them or none.

use crate::world::{World, lines};
use jiff::SignedDuration;
use serde_json::{Value, json};
use warmpool::api::claim::Phase as ClaimPhase;
use warmpool::api::labels;
use warmpool::model::sandbox::{Owner, PodPhase};
use warmpool::planner::{PlanPhase, Step};

fn batch(replicas: usize) -> Value {
    json!({"replicas": replicas})
}

fn held(world: &World, claim: &str) -> usize {
    let uid = &world.claims[claim].uid;
    let is_claim = |owner: &Owner| matches!(owner, Owner::Claim { uid: owner, .. } if owner == uid);
    world.sandboxes.values().filter(|s| is_claim(&s.owner)).count()
}

fn phase(world: &World, claim: &str) -> Option<ClaimPhase> {
    world.claims[claim].status.phase
}

fn reason(world: &World, claim: &str) -> (&'static str, String) {
    let uid = &world.claims[claim].uid;
    let waiting = world.plan().waiting;
    let (_, wait_reason) = waiting.iter().find(|(claim, _)| claim.uid == *uid).unwrap();
    (wait_reason.reason, wait_reason.message.to_string())
}

/// Applies only the first binding of the plan, like an operator that crashes after it.
fn bind_one(world: &mut World) {
    let plan = world.plan();
    let first = plan
        .actions
        .iter()
        .find(|a| matches!(a.step, Step::BindClaim { .. }));
    world.apply(first.unwrap());
}

#[test]
fn all_are_bound_in_one_plan_and_published_in_one_write() {
    let mut world = World::full(5, json!({}));
    world.claim("five", batch(5));
    let plan = world.plan();
    assert_eq!(lines(&plan, PlanPhase::Scheduling).len(), 5);
    assert_eq!(plan.bindings().len(), 1);
    world.step();
    let status = &world.claims["five"].status;
    assert_eq!(
        (status.phase, status.sandboxes.len()),
        (Some(ClaimPhase::Bound), 5)
    );
    world.converge();
    assert_eq!((world.available(), held(&world, "five")), (5, 5));
}

#[test]
fn none_is_bound_while_there_are_too_few_and_the_missing_ones_are_created() {
    let mut world = World::full(3, json!({}));
    world.claim("five", batch(5));
    let plan = world.step();
    assert!(lines(&plan, PlanPhase::Scheduling).is_empty());
    assert_eq!(
        lines(&plan, PlanPhase::Scale).len(),
        3,
        "scaleStrategy limits how many warm up at once"
    );
    assert_eq!(held(&world, "five"), 0);
    world.converge();
    assert_eq!((world.available(), held(&world, "five")), (3, 5));
}

#[test]
fn a_batch_goes_before_younger_claims_and_after_more_urgent_claims() {
    let mut world = World::full(3, json!({"scaleStrategy": {"maxUnavailable": 1}}));
    world.claim("batch", batch(4));
    for name in ["a", "b", "c"] {
        world.claim(name, json!({}));
    }
    world.claim("urgent", json!({"priority": 1}));
    world.step();
    assert_eq!(held(&world, "urgent"), 1);
    for _ in 0..3 {
        world.pass_second(|_| true);
        assert!(["a", "b", "c"].iter().all(|c| held(&world, c) == 0) || held(&world, "batch") == 4);
        world.step();
    }
    world.converge();
    assert!(["a", "b", "c", "urgent"].iter().all(|c| held(&world, c) == 1));
    assert_eq!(held(&world, "batch"), 4);
}

#[test]
fn a_half_bound_batch_is_completed_with_the_sandboxes_it_holds() {
    let mut world = World::full(4, json!({}));
    world.claim("batch", batch(3)).claim("younger", json!({}));
    bind_one(&mut world);
    assert_eq!((held(&world, "batch"), phase(&world, "batch")), (1, None));
    let plan = world.plan();
    assert_eq!(lines(&plan, PlanPhase::Scheduling).len(), 2 + 1);
    world.step();
    assert_eq!(
        (held(&world, "batch"), phase(&world, "batch")),
        (3, Some(ClaimPhase::Bound))
    );
    assert_eq!(held(&world, "younger"), 1);
}

#[test]
fn a_half_bound_batch_fails_as_a_whole_at_its_wait_timeout() {
    let mut world = World::full(2, json!({"capacity": {"maxTotal": 3}}));
    world.claim("batch", json!({"replicas": 2, "waitTimeoutSeconds": 5}));
    bind_one(&mut world);
    let other = world.unclaimed().next().unwrap().key.name.clone();
    world.sandboxes.remove(&other);
    world.now += SignedDuration::from_secs(6);
    assert_eq!(
        lines(&world.step(), PlanPhase::Scheduling),
        ["FailClaim batch WaitTimeout"]
    );
    world.reconcile_claim("batch");
    assert_eq!(
        (held(&world, "batch"), phase(&world, "batch")),
        (0, Some(ClaimPhase::Failed))
    );
}

#[test]
fn a_sandbox_that_ends_before_it_is_published_is_replaced() {
    let mut world = World::full(3, json!({}));
    world.claim("batch", batch(2));
    bind_one(&mut world);
    let bound = world.sandboxes.values_mut().find(|s| s.state == labels::CLAIMED);
    bound.unwrap().phase = PodPhase::Failed;
    world.step();
    world.reconcile_claim("batch");
    world.converge();
    assert_eq!(world.claims["batch"].status.sandboxes.len(), 2);
    let named = world.claims["batch"]
        .status
        .sandboxes
        .iter()
        .map(|s| s.name.as_str());
    assert!(
        named
            .into_iter()
            .all(|name| world.sandboxes[name].phase == PodPhase::Running)
    );
}

#[test]
fn a_batch_that_the_pool_can_never_hold_is_exhausted_and_delays_no_other_claim() {
    for (capacity, claim) in [
        (json!({"maxTotal": 4}), json!({"replicas": 5})),
        (json!({"maxWarm": 4}), json!({"replicas": 4, "onEmpty": "Wait"})),
    ] {
        let mut world = World::full(3, json!({"capacity": capacity}));
        world.claim("batch", claim).claim("younger", json!({}));
        let created = lines(&world.step(), PlanPhase::Scale).len();
        assert_eq!((held(&world, "younger"), created), (1, 0));
        assert_eq!(reason(&world, "batch").0, "Exhausted");
    }
}

#[test]
fn a_batch_that_must_not_wait_fails_when_there_are_too_few() {
    let mut world = World::full(3, json!({}));
    world.claim("batch", json!({"replicas": 4, "onEmpty": "Fail"}));
    assert_eq!(
        lines(&world.plan(), PlanPhase::Scheduling),
        ["FailClaim batch PoolEmpty"]
    );
}

#[test]
fn a_waiting_batch_shows_how_many_sandboxes_it_wants() {
    let mut world = World::full(2, json!({}));
    world.claim("batch", batch(3));
    let (reason, message) = reason(&world, "batch");
    assert_eq!(reason, "NoneAvailable");
    assert!(
        message.starts_with("3 sandboxes are wanted together"),
        "{message}"
    );
}

#[test]
fn a_claim_can_hold_two_hundred_sandboxes() {
    let mut world = World::full(10, json!({}));
    world.claim("many", batch(200));
    world.converge();
    assert_eq!(world.claims["many"].status.sandboxes.len(), 200);
    assert_eq!(world.available(), 10);
}
