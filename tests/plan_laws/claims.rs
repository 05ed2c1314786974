//! Checks which claims are served, why others wait, and how interrupted bindings end.

use crate::world::{World, lines};
use jiff::SignedDuration;
use serde_json::json;
use smol_str::SmolStr;
use warmpool::api::claim::Phase as ClaimPhase;
use warmpool::api::labels;
use warmpool::cache::snapshot::{ExpectedWrite, PoolPresence};
use warmpool::model::sandbox::{Owner, PodPhase};
use warmpool::planner::{self, PlanPhase, Step};

fn served(world: &World) -> Vec<SmolStr> {
    let plan = world.plan();
    let bind = |a: &planner::Action| match &a.step {
        Step::BindClaim { claim, .. } => Some(claim.key.name.clone()),
        _ => None,
    };
    plan.actions.iter().filter_map(bind).collect()
}

fn reason(world: &World, claim: &str) -> &'static str {
    let uid = &world.claims[claim].uid;
    world
        .plan()
        .waiting
        .iter()
        .find(|(claim, _)| claim.uid == *uid)
        .unwrap()
        .1
        .reason
}

/// Binds an existing sandbox to a claim without writing the claim's status. Returns the sandbox's name.
pub fn half_bind(world: &mut World, claim: &str) -> SmolStr {
    let uid = world.claims[claim].uid.clone();
    let sandbox = world
        .sandboxes
        .values_mut()
        .find(|s| s.state == labels::WARM)
        .unwrap();
    sandbox.state = labels::CLAIMED.into();
    sandbox.owner = Owner::Claim {
        name: claim.into(),
        uid,
    };
    sandbox.key.name.clone()
}

#[test]
fn claims_are_served_by_priority_then_age() {
    let mut world = World::full(3, json!({}));
    world.claim("z-first", json!({})).claim("y-second", json!({}));
    world.now = world.now.checked_add(SignedDuration::from_secs(1)).unwrap();
    world
        .claim("a-late", json!({}))
        .claim("b-urgent", json!({"priority": 5}));
    assert_eq!(served(&world), ["b-urgent", "z-first", "y-second"]);
}

#[test]
fn each_claim_gets_a_sandbox_of_its_own() {
    let mut world = World::full(5, json!({}));
    for n in 0..5 {
        world.claim(&format!("c{n}"), json!({}));
    }
    world.step();
    let mut bound: Vec<_> = (0..5)
        .map(|n| world.bound_to(&format!("c{n}")).unwrap().uid.clone())
        .collect();
    bound.sort();
    bound.dedup();
    assert_eq!(bound.len(), 5);
}

#[test]
fn claims_take_available_sandboxes_before_a_rollout_replaces_them() {
    let mut world = World::full(2, json!({"updateStrategy": {"type": "Recreate"}}));
    world.set_image("image:2");
    let replaced = lines(&world.plan(), PlanPhase::Recreate);
    assert_eq!(replaced.len(), 2, "without claims: {replaced:?}");
    world.claim("a", json!({})).claim("b", json!({}));
    assert_eq!(
        served(&world),
        ["a", "b"],
        "I7: both claims take an available sandbox"
    );
}

#[test]
fn a_claim_is_never_bound_to_a_sandbox_that_is_not_available() {
    let mut world = World::new(0, json!({"minReadySeconds": 10, "capacity": {"maxWarm": 9}}));
    let revision = world.update();
    world
        .sandbox("terminating", &revision, |s| s.terminating = true)
        .sandbox("unready", &revision, |s| s.ready_since = None)
        .sandbox("too-young", &revision, |_| {})
        .sandbox("failed", &revision, |s| s.phase = PodPhase::Failed)
        .sandbox("by-hand", &revision, |s| s.state = labels::CLAIMED.into())
        .sandbox("stranger", &revision, |s| s.owner = Owner::Other)
        .sandbox("earlier-pool", &revision, |s| {
            s.owner = Owner::Pool { uid: "gone".into() }
        });
    world.claim("one", json!({"onEmpty": "Wait"}));
    assert!(served(&world).is_empty());
    world.now = world.now.checked_add(SignedDuration::from_secs(10)).unwrap();
    assert_eq!(
        lines(&world.plan(), PlanPhase::Scheduling),
        ["BindClaim one too-young"]
    );
}

#[test]
fn the_update_revision_is_preferred_and_its_best_sandbox_is_bound() {
    let mut world = World::new(4, json!({}));
    let revision = world.update();
    world
        .sandbox("old", "0123456789", |_| {})
        .sandbox("cheap", &revision, |s| s.deletion_cost = -5)
        .sandbox("dear", &revision, |s| s.deletion_cost = 5);
    for n in 0..3 {
        world.claim(&format!("c{n}"), json!({}));
    }
    assert_eq!(
        lines(&world.plan(), PlanPhase::Scheduling),
        ["BindClaim c0 dear", "BindClaim c1 cheap", "BindClaim c2 old"]
    );
}

#[test]
fn a_sandbox_with_an_expected_write_is_not_bound_again() {
    for write in [
        ExpectedWrite::Bind,
        ExpectedWrite::Delete,
        ExpectedWrite::Deleted,
        ExpectedWrite::Conflicted,
    ] {
        let mut world = World::full(1, json!({}));
        world.claim("one", json!({"onEmpty": "Wait"}));
        let mut snapshot = world.snapshot();
        snapshot.sandboxes[0].expected = Some(write);
        assert!(
            lines(&planner::plan(&snapshot), PlanPhase::Scheduling).is_empty(),
            "{write:?}"
        );
    }
}

#[test]
fn a_version_conflict_passes_the_claim_to_the_next_sandbox() {
    let mut world = World::full(2, json!({}));
    world.claim("one", json!({}));
    let first = match &world.plan().actions[0].step {
        Step::BindClaim { sandbox, .. } => sandbox.uid.clone(),
        other => panic!("{other:?}"),
    };
    let mut snapshot = world.snapshot();
    let conflicted = snapshot
        .sandboxes
        .iter_mut()
        .find(|s| s.sandbox.uid == first)
        .unwrap();
    conflicted.expected = Some(ExpectedWrite::Conflicted);
    assert_eq!(lines(&planner::plan(&snapshot), PlanPhase::Scheduling).len(), 1);
}

#[test]
fn on_empty_create_adds_to_the_demand_wait_does_not_and_fail_fails() {
    let mut world = World::new(2, json!({"scaleStrategy": {"maxUnavailable": 100}}));
    world
        .claim("a", json!({"onEmpty": "Create"}))
        .claim("b", json!({"onEmpty": "Wait"}));
    world.claim("c", json!({"onEmpty": "Fail"}));
    let plan = world.plan();
    assert_eq!(lines(&plan, PlanPhase::Scheduling), ["FailClaim c PoolEmpty"]);
    assert_eq!(lines(&plan, PlanPhase::Scale).len(), 3);
}

#[test]
fn the_first_sandbox_to_become_available_serves_the_oldest_claim() {
    let mut world = World::new(0, json!({"scaleStrategy": {"maxUnavailable": 100}}));
    world.claim("old", json!({})).claim("young", json!({}));
    world.step();
    let first = world.sandboxes.keys().next().unwrap().clone();
    world.pass_second(|s| s.key.name == first);
    assert_eq!(served(&world), ["old"]);
}

#[test]
fn a_waiting_claim_shows_why_and_how_many_are_ahead() {
    let mut world = World::new(0, json!({"capacity": {"maxTotal": 0}}));
    world.claim("a", json!({})).claim("b", json!({}));
    assert_eq!(reason(&world, "b"), "Exhausted");
    let plan = world.plan();
    let ahead: Vec<_> = plan
        .waiting
        .iter()
        .map(|(_, why)| why.position.unwrap().ahead)
        .collect();
    assert_eq!(ahead, [0, 1]);
    assert!(
        world
            .plan()
            .status
            .conditions
            .iter()
            .any(|c| c.type_ == "Exhausted" && c.status == "True")
    );
    world.set(json!({"capacity": {"maxTotal": 5}}));
    assert_eq!(reason(&world, "b"), "NoneAvailable");
}

#[test]
fn a_half_bound_claim_is_published_and_served_nothing_else() {
    let mut world = World::full(2, json!({}));
    world.claim("one", json!({}));
    let name = half_bind(&mut world, "one");
    assert!(served(&world).is_empty());
    let status = planner::claim::plan(&world.claim_snapshot("one")).status.unwrap();
    assert_eq!(
        (status.phase, status.sandboxes[0].name.as_str()),
        (Some(ClaimPhase::Bound), name.as_str())
    );
}

#[test]
fn a_second_sandbox_of_a_bound_claim_is_released_and_the_published_one_never() {
    let mut world = World::full(3, json!({}));
    world.claim("one", json!({})).step();
    let published = world.bound_to("one").unwrap().key.name.clone();
    let second = half_bind(&mut world, "one");
    let plan = planner::claim::plan(&world.claim_snapshot("one"));
    assert_eq!(
        plan.release
            .iter()
            .map(|s| s.key.name.clone())
            .collect::<Vec<_>>(),
        [second]
    );
    assert!(plan.release.iter().all(|s| s.key.name != published));
}

#[test]
fn no_surplus_sandbox_is_released_before_the_status_lists_the_kept_ones() {
    let mut world = World::full(2, json!({}));
    world.claim("one", json!({}));
    half_bind(&mut world, "one");
    half_bind(&mut world, "one");
    let plan = planner::claim::plan(&world.claim_snapshot("one"));
    assert_eq!(plan.status.unwrap().sandboxes.len(), 1);
    assert!(plan.release.is_empty());
}

#[test]
fn a_sandbox_bound_while_its_claim_failed_is_released() {
    let mut world = World::full(1, json!({}));
    world.claim("one", json!({}));
    let name = half_bind(&mut world, "one");
    world.claims.get_mut("one").unwrap().status.phase = Some(ClaimPhase::Failed);
    assert_eq!(
        planner::claim::plan(&world.claim_snapshot("one")).release[0]
            .key
            .name,
        name
    );
}

#[test]
fn a_forged_status_never_makes_a_sandbox_the_claims_own() {
    let mut world = World::full(1, json!({}));
    world.claim("victim", json!({})).step();
    world.claim("thief", json!({}));
    let stolen = world.claims["victim"].status.clone();
    world.claims.get_mut("thief").unwrap().status = stolen;
    let plan = planner::claim::plan(&world.claim_snapshot("thief"));
    assert_eq!(plan.status.unwrap().phase, Some(ClaimPhase::Failed));
    assert!(plan.release.is_empty());
}

#[test]
fn a_status_that_names_another_sandbox_than_the_claims_own_is_not_believed() {
    let mut world = World::full(2, json!({}));
    world.claim("victim", json!({})).step();
    world.claim("thief", json!({}));
    half_bind(&mut world, "thief");
    world.claims.get_mut("thief").unwrap().status = world.claims["victim"].status.clone();
    let plan = planner::claim::plan(&world.claim_snapshot("thief"));
    let status = plan.status.unwrap();
    assert_eq!(
        (status.phase, status.conditions[0].reason.as_str()),
        (Some(ClaimPhase::Failed), "SandboxLost")
    );
}

#[test]
fn ready_of_the_claim_follows_its_sandbox() {
    let mut world = World::full(1, json!({}));
    world.claim("one", json!({})).step();
    assert!(
        planner::claim::plan(&world.claim_snapshot("one"))
            .status
            .is_none(),
        "the status is up to date"
    );
    let name = world.bound_to("one").unwrap().key.name.clone();
    world.sandboxes.get_mut(&name).unwrap().ready_since = None;
    let status = planner::claim::plan(&world.claim_snapshot("one")).status.unwrap();
    let ready = status.conditions.iter().find(|c| c.type_ == "Ready").unwrap();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "SandboxNotReady")
    );
    assert_eq!(status.phase, Some(ClaimPhase::Bound));
}

#[test]
fn a_lost_sandbox_fails_the_claim_only_after_a_live_read() {
    let mut world = World::full(1, json!({}));
    world.claim("one", json!({})).step();
    let published = world.bound_to("one").unwrap().clone();
    world.sandboxes.remove(&published.key.name);
    let plan = planner::claim::plan(&world.claim_snapshot("one"));
    assert_eq!(plan.confirm_loss[0].uid, published.uid);
    assert_eq!(plan.status.unwrap().conditions[0].reason, "SandboxLost");
}

#[test]
fn a_claim_on_a_missing_pool_waits_and_its_status_is_written_once() {
    let mut world = World::new(0, json!({}));
    world.claim("one", json!({}));
    let mut snapshot = world.claim_snapshot("one");
    snapshot.pool_presence = PoolPresence::Absent;
    assert_eq!(
        planner::claim::plan(&snapshot).status,
        None,
        "the status waits, because the pool may appear in the meantime"
    );
    snapshot.now = planner::claim::plan(&snapshot).next.unwrap();
    let plan = planner::claim::plan(&snapshot);
    let status = *plan.status.unwrap();
    assert_eq!(status.conditions[0].reason, "PoolNotFound");
    world.claims.get_mut("one").unwrap().status = status;
    let mut snapshot = world.claim_snapshot("one");
    snapshot.pool_presence = PoolPresence::Absent;
    assert_eq!(planner::claim::plan(&snapshot).status, None);
}

#[test]
fn a_claim_with_an_invalid_spec_is_not_requeued() {
    let mut world = World::new(0, json!({}));
    world.claim("one", json!({"priority": "high"}));
    world.now += SignedDuration::from_secs(301);
    let mut snapshot = world.claim_snapshot("one");
    snapshot.pool_presence = PoolPresence::Absent;
    let plan = planner::claim::plan(&snapshot);
    assert_eq!(plan.status.unwrap().conditions[0].reason, "InvalidSpec");
    assert_eq!(plan.next, None);
}

#[test]
fn a_sandbox_on_a_node_whose_clock_is_ahead_is_available_as_soon_as_it_is_ready() {
    let mut world = World::full(1, json!({}));
    let ahead = world.now + SignedDuration::from_secs(30);
    world
        .sandboxes
        .values_mut()
        .for_each(|s| s.ready_since = Some(ahead));
    world.claim("run", json!({}));
    let plan = world.plan();
    assert_eq!((plan.status.available, plan.bindings().len()), (1, 1));
}
