//! Checks how claims end: lifetimes, lost sandboxes, release and deletion.

use crate::world::World;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use warmpool::api::claim::{Phase, ReleasePolicy};
use warmpool::cache::snapshot::{ClaimSnapshot, PoolPresence};
use warmpool::model::claim::Claim;
use warmpool::model::sandbox::PodPhase;
use warmpool::model::stored::StoredClaim;
use warmpool::planner::claim::plan;

/// A pool of two with the bound claim `run`.
pub fn bound(claim: Value, defaults: Value) -> World {
    let mut world = World::full(2, json!({"claimDefaults": defaults}));
    world.claim("run", claim);
    world.step();
    assert_eq!(phase(&world), Phase::Bound);
    world.converge();
    world
}

pub fn phase(world: &World) -> Phase {
    world.claims["run"].status.phase.unwrap()
}

pub fn later(world: &mut World, seconds: i64) {
    world.now += SignedDuration::from_secs(seconds);
}

fn condition(world: &World, type_: &str) -> (String, String) {
    let conditions = &world.claims["run"].status.conditions;
    let condition = conditions.iter().find(|c| c.type_ == type_).unwrap();
    (condition.status.clone(), condition.reason.clone())
}

pub fn pods(world: &World) -> usize {
    world.claim_snapshot("run").sandboxes.len()
}

/// Changes the claim's spec, as a user does.
pub fn edit(world: &mut World, fields: Value) {
    let claim = world.claims["run"].clone();
    let mut spec = serde_json::to_value(claim.spec.as_ref().unwrap()).unwrap();
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let stored = json!({
        "metadata": {
            "namespace": "default", "name": "run", "uid": claim.uid, "resourceVersion": "9",
            "generation": claim.generation + 1, "creationTimestamp": claim.created.to_string(),
        },
        "spec": spec,
        "status": claim.status,
    });
    let stored: StoredClaim = serde_json::from_value(stored).unwrap();
    let read = Claim::read(&stored, claim.sequence, claim.arrived);
    world.claims.insert("run".into(), read);
}

pub fn expires(world: &World) -> Option<Timestamp> {
    let at = world.claims["run"].status.expiration_time.as_ref();
    at.map(|time| time.0)
}

#[test]
fn a_claim_expires_after_its_lifetime_and_its_sandbox_goes() {
    let mut world = bound(json!({"lifetimeSeconds": 60}), json!({}));
    let end = expires(&world).unwrap();
    assert_eq!(plan(&world.claim_snapshot("run")).next, Some(end));
    world.now = end - SignedDuration::from_secs(1);
    world.reconcile_claim("run");
    assert_eq!((phase(&world), pods(&world)), (Phase::Bound, 1));
    world.now = end;
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
    assert_eq!(condition(&world, "Bound"), ("False".into(), "Expired".into()));
    world.reconcile_claim("run");
    assert_eq!(pods(&world), 0);
}

#[test]
fn a_retained_sandbox_stays_until_the_claim_goes() {
    let mut world = bound(
        json!({"lifetimeSeconds": 60, "releasePolicy": "Retain"}),
        json!({}),
    );
    later(&mut world, 3600);
    for _ in 0..3 {
        world.reconcile_claim("run");
    }
    assert_eq!((phase(&world), pods(&world)), (Phase::Expired, 1));
}

#[test]
fn the_lifetime_may_be_changed_while_the_claim_is_bound() {
    let mut world = bound(json!({"lifetimeSeconds": 60}), json!({}));
    let before = expires(&world).unwrap();
    edit(&mut world, json!({"lifetimeSeconds": 100}));
    world.reconcile_claim("run");
    assert_eq!(expires(&world), Some(before + SignedDuration::from_secs(40)));
    edit(&mut world, json!({"lifetimeSeconds": null}));
    world.reconcile_claim("run");
    assert_eq!(expires(&world), None);
    let shutdown = world.now + SignedDuration::from_secs(5);
    edit(&mut world, json!({"shutdownTime": shutdown.to_string()}));
    world.reconcile_claim("run");
    assert_eq!(expires(&world), Some(shutdown));
    later(&mut world, 5);
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
}

#[test]
fn a_claim_keeps_the_default_lifetime_of_its_binding() {
    let mut world = bound(json!({}), json!({"lifetimeSeconds": 60}));
    let end = expires(&world).unwrap();
    world.set(json!({"claimDefaults": {"lifetimeSeconds": 5}}));
    later(&mut world, 30);
    world.reconcile_claim("run");
    assert_eq!((phase(&world), expires(&world)), (Phase::Bound, Some(end)));
}

#[test]
fn the_spec_of_a_claim_overrides_the_defaults_of_the_pool() {
    let defaults = json!({"lifetimeSeconds": 60, "onSandboxLost": "Replace", "releasePolicy": "Retain"});
    let mut world = bound(json!({"releasePolicy": "Delete"}), defaults);
    let snapshot = world.claim_snapshot("run");
    assert_eq!(format!("{:?}", snapshot.resolved_spec.release_policy), "Delete");
    assert_eq!(format!("{:?}", snapshot.resolved_spec.on_sandbox_lost), "Replace");
    later(&mut world, 60);
    world.reconcile_claim("run");
    world.reconcile_claim("run");
    assert_eq!((phase(&world), pods(&world)), (Phase::Expired, 0));
}

#[test]
fn a_shutdown_time_also_ends_a_claim_that_waits() {
    let mut world = World::new(0, json!({}));
    let shutdown = world.now + SignedDuration::from_secs(5);
    let claim = json!({"shutdownTime": shutdown.to_string(), "onEmpty": "Wait"});
    world.claim("run", claim);
    assert_eq!(plan(&world.claim_snapshot("run")).next, Some(shutdown));
    later(&mut world, 5);
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
}

#[test]
fn a_claim_whose_shutdown_time_is_past_gets_no_sandbox_and_delays_no_other() {
    let mut world = World::full(1, json!({}));
    let shutdown = world.now.to_string();
    world.claim("run", json!({"shutdownTime": shutdown, "replicas": 2}));
    world.claim("next", json!({}));
    world.step();
    assert_eq!(world.claims["next"].status.phase, Some(Phase::Bound));
    assert_eq!(pods(&world), 0);
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
}

#[test]
fn an_ended_claim_is_deleted_after_its_time_and_not_before() {
    let mut world = bound(
        json!({"lifetimeSeconds": 60, "ttlSecondsAfterFinished": 10}),
        json!({}),
    );
    later(&mut world, 60);
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
    later(&mut world, 10);
    world.reconcile_claim("run");
    assert!(world.claims.contains_key("run"));
    later(&mut world, 1);
    world.reconcile_claim("run");
    assert!(!world.claims.contains_key("run"));
}

pub fn lose(world: &mut World, how: &str) {
    let name = &*world.claims["run"].status.sandboxes[0].name.clone();
    match how {
        "failed" => world.sandboxes.get_mut(name).unwrap().phase = PodPhase::Failed,
        "terminating" => world.sandboxes.get_mut(name).unwrap().terminating = true,
        _ => drop(world.sandboxes.remove(name)),
    }
}

#[test]
fn a_lost_sandbox_fails_the_claim_which_keeps_its_others() {
    let mut world = bound(json!({"replicas": 2}), json!({}));
    lose(&mut world, "gone");
    world.reconcile_claim("run");
    assert_eq!((phase(&world), pods(&world)), (Phase::Failed, 1));
    assert_eq!(condition(&world, "Bound").1, "SandboxLost");
    world.reconcile_claim("run");
    assert_eq!(
        pods(&world),
        1,
        "a published sandbox stays until the claim is deleted"
    );
}

#[test]
fn a_lost_sandbox_is_replaced_before_younger_claims_are_served() {
    for how in ["gone", "failed", "terminating"] {
        let mut world = bound(json!({"onSandboxLost": "Replace", "replicas": 2}), json!({}));
        let kept = world.claims["run"].status.sandboxes[1].clone();
        let first_wait = world.claims["run"].status.wait.clone();
        later(&mut world, 3600);
        lose(&mut world, how);
        world.claim("younger", json!({}));
        world.reconcile_claim("run");
        assert_eq!(phase(&world), Phase::Pending, "{how}");
        assert_eq!(condition(&world, "Ready").0, "False");
        world.step();
        assert_eq!(
            phase(&world),
            Phase::Bound,
            "{how}: the wait timeout counts from the loss"
        );
        let status = &world.claims["run"].status;
        assert_eq!(status.sandboxes.len(), 2);
        assert!(
            status.sandboxes.contains(&kept),
            "the other sandbox keeps its entry"
        );
        assert_eq!(status.wait, first_wait);
        assert_eq!(condition(&world, "Ready").0, "True");
    }
}

#[test]
fn a_claim_without_a_replacement_fails_at_its_wait_timeout() {
    let claim = json!({"onSandboxLost": "Replace", "waitTimeoutSeconds": 30});
    let mut world = bound(claim, json!({}));
    later(&mut world, 3600);
    lose(&mut world, "gone");
    world.set(json!({"replicas": 0, "capacity": {"maxTotal": 0}}));
    world.sandboxes.clear();
    world.reconcile_claim("run");
    later(&mut world, 30);
    world.step();
    assert_eq!(phase(&world), Phase::Pending);
    later(&mut world, 1);
    world.step();
    assert_eq!(phase(&world), Phase::Failed);
}

#[test]
fn a_claim_that_loses_more_while_it_waits_lists_its_remaining_sandboxes() {
    for how in ["gone", "failed", "terminating"] {
        let mut world = bound(json!({"onSandboxLost": "Replace", "replicas": 2}), json!({}));
        world.set(json!({"replicas": 0, "capacity": {"maxTotal": 2}}));
        world.converge();
        lose(&mut world, "gone");
        world.reconcile_claim("run");
        assert_eq!(world.claims["run"].status.sandboxes.len(), 1);
        lose(&mut world, how);
        world.reconcile_claim("run");
        assert!(world.claims["run"].status.sandboxes.is_empty(), "{how}");
        let snapshot = world.claim_snapshot("run");
        let not_terminating = snapshot.sandboxes.iter().filter(|s| !s.terminating).count();
        assert_eq!(
            plan(&snapshot).release.len(),
            not_terminating,
            "{how}: a sandbox that the status no longer lists is released"
        );
        world.reconcile_claim("run");
        world.sandboxes.retain(|_, sandbox| !sandbox.terminating);
        world.converge();
        assert_eq!(phase(&world), Phase::Bound, "{how}: maxTotal allows both again");
    }
}

#[test]
fn a_claim_keeps_a_completed_sandbox_while_another_is_replaced() {
    let mut world = bound(json!({"onSandboxLost": "Replace", "replicas": 2}), json!({}));
    let completed = world.claims["run"].status.sandboxes[1].clone();
    world.sandboxes.get_mut(&*completed.name).unwrap().phase = PodPhase::Succeeded;
    lose(&mut world, "failed");
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Pending);
    world.converge();
    assert_eq!(phase(&world), Phase::Bound);
    let listed = &world.claims["run"].status.sandboxes;
    assert!(listed.len() == 2 && listed.contains(&completed), "{listed:?}");
}

/// A claim for three sandboxes that lost one and waits. The pool creates no replacement for it.
fn with_one_lost(claim: Value, defaults: Value) -> World {
    let mut world = World::full(3, json!({"claimDefaults": defaults}));
    let mut fields = json!({"replicas": 3, "onSandboxLost": "Replace", "onEmpty": "Wait"});
    fields
        .as_object_mut()
        .unwrap()
        .extend(claim.as_object().unwrap().clone());
    world.claim("run", fields);
    world.step();
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Bound);
    let name = world.bound_to("run").unwrap().key.name.clone();
    world.sandboxes.remove(&name);
    world.reconcile_claim("run");
    assert_eq!((phase(&world), pods(&world)), (Phase::Pending, 2));
    world
}

#[test]
fn a_claim_that_waits_for_a_replacement_expires_at_its_lifetime() {
    let mut world = with_one_lost(json!({"lifetimeSeconds": 60}), json!({}));
    let end = expires(&world).unwrap();
    assert_eq!(plan(&world.claim_snapshot("run")).next, Some(end));
    world.now = end;
    assert!(
        world.plan().bindings().is_empty(),
        "a sandbox bound to an expired claim would be released with it"
    );
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
    world.reconcile_claim("run");
    assert_eq!(pods(&world), 0);
}

#[test]
fn a_lifetime_changed_while_a_claim_waits_for_a_replacement_applies_once_it_is_bound_again() {
    let mut world = with_one_lost(json!({"lifetimeSeconds": 60}), json!({}));
    let before = expires(&world).unwrap();
    edit(&mut world, json!({"lifetimeSeconds": 100}));
    later(&mut world, 61);
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Pending, "the edit extended the lifetime");
    world.converge();
    assert_eq!(phase(&world), Phase::Bound);
    assert_eq!(expires(&world), Some(before + SignedDuration::from_secs(40)));
}

#[test]
fn an_edit_after_a_replacement_does_not_move_the_end_of_a_claim() {
    for spec in [json!({"lifetimeSeconds": 3600}), json!({})] {
        let mut world = bound(spec, json!({"lifetimeSeconds": 3600, "onSandboxLost": "Replace"}));
        let end = expires(&world);
        later(&mut world, 600);
        lose(&mut world, "gone");
        world.reconcile_claim("run");
        assert_eq!(phase(&world), Phase::Pending);
        world.converge();
        assert_eq!((phase(&world), expires(&world)), (Phase::Bound, end));
        edit(&mut world, json!({"ttlSecondsAfterFinished": 5}));
        world.reconcile_claim("run");
        assert_eq!((phase(&world), expires(&world)), (Phase::Bound, end));
    }
}

/// The claim's snapshot once its pool is deleted.
fn without_pool(world: &World) -> ClaimSnapshot {
    let snapshot = world.claim_snapshot("run");
    ClaimSnapshot {
        pool_presence: PoolPresence::Absent,
        resolved_spec: snapshot.claim.resolved_spec(None),
        ..snapshot
    }
}

#[test]
fn a_sandbox_that_the_pool_had_retained_survives_the_pool() {
    let defaults = json!({"lifetimeSeconds": 60, "releasePolicy": "Retain", "ttlSecondsAfterFinished": 600});
    let mut world = bound(json!({}), defaults);
    later(&mut world, 60);
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
    let plan = plan(&without_pool(&world));
    assert!(plan.release.is_empty());
    assert_eq!(plan.next, Some(world.now + SignedDuration::from_secs(601)));
}

#[test]
fn the_default_lifetime_of_a_bound_claim_survives_the_pool_and_an_edit() {
    let mut world = bound(json!({}), json!({"lifetimeSeconds": 60}));
    let end = expires(&world);
    edit(&mut world, json!({"ttlSecondsAfterFinished": 5}));
    let status = plan(&without_pool(&world)).status.unwrap();
    assert_eq!(status.expiration_time.map(|time| time.0), end);
}

#[test]
fn a_claim_whose_spec_becomes_invalid_keeps_its_sandbox() {
    let mut world = bound(json!({"lifetimeSeconds": 60}), json!({}));
    later(&mut world, 60);
    world.reconcile_claim("run");
    edit(&mut world, json!({"priority": "high"}));
    let plan = plan(&world.claim_snapshot("run"));
    assert_eq!((phase(&world), plan.release.len()), (Phase::Expired, 0));
}

#[test]
fn claim_defaults_apply_while_the_rest_of_the_spec_is_invalid() {
    let mut world = bound(json!({}), json!({"releasePolicy": "Retain"}));
    world.set(json!({"replicas": "many"}));
    let resolved_spec = world.claim_snapshot("run").resolved_spec;
    assert_eq!(resolved_spec.release_policy, ReleasePolicy::Retain);
}

#[test]
fn an_expired_claim_says_when_it_ended_by_its_last_spec() {
    let mut world = bound(json!({"lifetimeSeconds": 3600}), json!({}));
    later(&mut world, 100);
    edit(&mut world, json!({"lifetimeSeconds": 60}));
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
    let end = expires(&world).unwrap();
    assert!(end <= world.now, "{end} is after {}", world.now);
}

#[test]
fn an_edit_of_a_claim_that_has_ended_is_observed() {
    let mut world = bound(json!({"lifetimeSeconds": 60}), json!({}));
    later(&mut world, 3600);
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
    edit(&mut world, json!({"ttlSecondsAfterFinished": 7200}));
    world.reconcile_claim("run");
    let claim = &world.claims["run"];
    assert_eq!(claim.status.observed_generation, claim.generation);
}

#[test]
fn a_claim_that_fails_unbound_names_the_pool_that_was_to_serve_it_last() {
    let mut world = World::full(0, json!({}));
    world.claim("run", json!({"onEmpty": "Wait", "waitTimeoutSeconds": 5}));
    world.claims.get_mut("run").unwrap().status.pool = "the-one-before".into();
    later(&mut world, 10);
    world.step();
    let status = &world.claims["run"].status;
    assert_eq!(status.phase, Some(Phase::Failed));
    assert_eq!(status.pool, world.pool().key.name);
}
