//! Checks what the columns of claims show: READY, REASON, and addresses of sandboxes that live.

use crate::lifetimes::{bound, later, phase};
use crate::world::World;
use serde_json::{Value, json};
use warmpool::api::claim::Phase;
use warmpool::model::retry::Purpose;
use warmpool::model::sandbox::{PodPhase, Sandbox};
use warmpool::planner::claim::{plan, purpose};

/// READY and REASON of the claim `run`.
fn columns(world: &World) -> (String, String) {
    let status = &world.claims["run"].status;
    (status.ready.clone(), status.reason.clone())
}

fn shown(ready: &str, reason: &str) -> (String, String) {
    (ready.into(), reason.into())
}

/// A claim that is bound to two sandboxes with the addresses 10.0.0.1 and 10.0.0.2.
fn with_addresses(claim: Value) -> World {
    let mut claim = claim;
    claim["replicas"] = json!(2);
    let mut world = bound(claim, json!({}));
    for (n, sandbox) in held(&mut world).into_iter().enumerate() {
        sandbox.ip = format!("10.0.0.{}", n + 1).into();
    }
    world.reconcile_claim("run");
    assert_eq!(addresses(&world), ["10.0.0.1", "10.0.0.2"]);
    world
}

/// The sandboxes of the claim, in the order of its status.
fn held(world: &mut World) -> Vec<&mut Sandbox> {
    let listed: Vec<String> = world.claims["run"]
        .status
        .sandboxes
        .iter()
        .map(|s| s.name.clone())
        .collect();
    let mut held: Vec<_> = world
        .sandboxes
        .values_mut()
        .filter(|s| listed.contains(&s.key.name.to_string()))
        .collect();
    held.sort_by_key(|s| listed.iter().position(|name| *name == s.key.name));
    held
}

fn addresses(world: &World) -> Vec<&str> {
    let sandboxes = world.claims["run"].status.sandboxes.iter();
    sandboxes.map(|s| s.ip.as_str()).collect()
}

#[test]
fn a_bound_claim_shows_how_many_of_its_sandboxes_are_ready_and_why_not_all_are() {
    let mut world = bound(json!({"replicas": 2}), json!({}));
    assert_eq!(columns(&world), shown("2/2", ""));
    held(&mut world)[0].ready_since = None;
    world.reconcile_claim("run");
    assert_eq!(columns(&world), shown("1/2", "SandboxNotReady"));
    held(&mut world)[1].terminating = true;
    world.reconcile_claim("run");
    assert_eq!(columns(&world), shown("0/2", "SandboxNotReady"));
}

#[test]
fn a_claim_that_waits_shows_why() {
    let mut world = World::new(0, json!({}));
    world.claim("run", json!({"replicas": 3, "onEmpty": "Wait"}));
    later(&mut world, 3);
    let mut snapshot = world.claim_snapshot("run");
    snapshot.wait_reason = Some(world.plan().waiting[0].1.clone());
    let status = plan(&snapshot).status.unwrap();
    assert_eq!(
        (status.ready.as_str(), status.reason.as_str()),
        ("0/3", "Exhausted")
    );
}

#[test]
fn a_claim_that_waits_for_a_replacement_shows_what_it_still_has() {
    let mut world = bound(json!({"replicas": 2, "onSandboxLost": "Replace"}), json!({}));
    held(&mut world)[0].phase = PodPhase::Failed;
    world.reconcile_claim("run");
    assert_eq!(columns(&world), shown("1/2", "SandboxLost"));
}

#[test]
fn an_expired_claim_shows_no_address_and_one_that_retains_its_sandboxes_shows_those_that_live() {
    for (policy, expected) in [("Delete", ["", ""]), ("Retain", ["10.0.0.1", "10.0.0.2"])] {
        let mut world = with_addresses(json!({"lifetimeSeconds": 60, "releasePolicy": policy}));
        later(&mut world, 3600);
        world.reconcile_claim("run");
        assert_eq!(phase(&world), Phase::Expired);
        assert_eq!(columns(&world), shown("0/2", "Expired"));
        assert_eq!(addresses(&world), expected, "{policy}");
    }
}

#[test]
fn a_failed_claim_shows_the_address_of_the_sandbox_that_it_keeps_and_not_of_the_one_that_it_lost() {
    for gone in [false, true] {
        let mut world = with_addresses(json!({}));
        let lost = held(&mut world).remove(0);
        lost.phase = PodPhase::Failed;
        let name = lost.key.name.clone();
        if gone {
            world.sandboxes.remove(&name);
        }
        world.reconcile_claim("run");
        assert_eq!(phase(&world), Phase::Failed);
        assert_eq!(addresses(&world), ["", "10.0.0.2"], "gone: {gone}");
        assert_eq!(
            plan(&world.claim_snapshot("run")).status,
            None,
            "nothing more to say"
        );
        // The sandbox that it kept goes, too.
        held(&mut world).pop().unwrap().terminating = true;
        let snapshot = world.claim_snapshot("run");
        let status = plan(&snapshot).status;
        assert_eq!(purpose(&snapshot.claim, status.as_deref()), Purpose::Report);
        world.reconcile_claim("run");
        assert_eq!(addresses(&world), ["", ""], "gone: {gone}");
        assert_eq!(plan(&world.claim_snapshot("run")).status, None);
    }
}
