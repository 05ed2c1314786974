//! Checks that the refill of a pool yields to the bindings of its claims, and to nothing else.

use crate::world::{World, lines};
use jiff::SignedDuration;
use serde_json::json;
use std::sync::Arc;
use warmpool::cache::snapshot::{CreationInFlight, PoolSnapshot};
use warmpool::model::sandbox::Owner;
use warmpool::planner::{self, PlanPhase};

/// A pool of 20 whose sandboxes were bound to `claims`, which are not published yet. If there are more claims than sandboxes, some
/// wait.
fn while_binding(claims: usize) -> PoolSnapshot {
    while_binding_of(20, claims)
}

/// The same with a pool of `replicas`.
fn while_binding_of(replicas: usize, claims: usize) -> PoolSnapshot {
    let mut world = World::full(replicas, json!({}));
    (0..claims).for_each(|i| _ = world.claim(&format!("run-{i:02}"), json!({})));
    let waiting = world.snapshot().claims;
    world.step();
    let mut snapshot = world.snapshot();
    snapshot.claims = waiting;
    let owners: Vec<_> = snapshot
        .sandboxes
        .iter()
        .map(|entry| entry.sandbox.owner.clone())
        .collect();
    for claim in &mut snapshot.claims {
        let is_its_own =
            |owner: &&Owner| matches!(owner, Owner::Claim { uid, .. } if *uid == claim.claim.uid);
        claim.held = owners.iter().filter(is_its_own).count();
    }
    snapshot
}

fn created(snapshot: &PoolSnapshot) -> usize {
    lines(&planner::plan(snapshot), PlanPhase::Scale).len()
}

/// Checks how many refills the plan sends while claims are being bound.
fn assert_refills(snapshot: &PoolSnapshot, wanted: usize, case: &str) {
    let created = created(snapshot);
    assert!(
        created <= wanted,
        "I7: {created} refills compete with bindings: {case}"
    );
    assert!(
        created >= wanted,
        "I8: bindings keep the pool from its refill, {created} are sent: {case}"
    );
}

#[test]
fn four_refills_are_in_flight_while_claims_are_being_bound() {
    for (claims, refills) in [(3, 3), (4, 4), (5, 4), (20, 4)] {
        assert_refills(&while_binding(claims), refills, &format!("{claims} claims"));
    }
    for (in_flight, refills) in [(1, 3), (4, 0), (9, 0)] {
        let mut snapshot = while_binding(20);
        let creation = |i| CreationInFlight {
            name: format!("new-{i}").into(),
            revision: String::new(),
            is_answered: false,
        };
        snapshot.creating = (0..in_flight).map(creation).collect();
        assert_refills(&snapshot, refills, &format!("{in_flight} in flight"));
    }
}

#[test]
fn no_refill_is_sent_while_claims_wait_for_the_limit_of_bindings() {
    for (claims, refills) in [(31, 4), (32, 0)] {
        assert_refills(
            &while_binding_of(40, claims),
            refills,
            &format!("{claims} claims on 40"),
        );
    }
}

#[test]
fn a_burst_that_takes_long_to_bind_is_no_stream_once_it_has_come_to_its_end() {
    let mut snapshot = while_binding(12);
    let ago = |seconds| snapshot.now - SignedDuration::from_secs(seconds);
    snapshot.recent_claims = [vec![ago(4)], vec![ago(2); 11]].concat();
    for (arrived, refills) in [(ago(2), 12), (ago(3), 4)] {
        for waiting in &mut snapshot.claims {
            Arc::make_mut(&mut waiting.claim).arrived = arrived;
        }
        assert_refills(&snapshot, refills, &format!("the last claim came at {arrived}"));
    }
}

#[test]
fn a_refill_that_falls_behind_a_stream_of_claims_does_not_yield() {
    // Twelve sandboxes are missing. Claims took this many more than 3 s ago, and this many since.
    for (earlier, lately, refills) in [(1, 11, 12), (1, 12, 4), (0, 11, 4)] {
        let mut snapshot = while_binding(12);
        let ago = |seconds| snapshot.now - SignedDuration::from_secs(seconds);
        snapshot.recent_claims = [vec![ago(4); earlier], vec![ago(2); lately]].concat();
        assert_refills(&snapshot, refills, &format!("{earlier} claims, then {lately}"));
    }
}

#[test]
fn all_that_is_missing_is_created_when_no_claim_is_being_bound() {
    let mut snapshot = while_binding(20);
    snapshot.claims.clear();
    assert_eq!(created(&snapshot), 20);
}

#[test]
fn a_creation_that_a_claim_waits_for_never_yields() {
    let snapshot = while_binding(21);
    let sandboxes = snapshot.sandboxes.iter().map(|entry| &entry.sandbox);
    let warming = sandboxes.filter(|sandbox| matches!(sandbox.owner, Owner::Pool { .. }));
    // As many as `scaleStrategy.maxUnavailable` lets warm up at once.
    assert_eq!(warming.count() + created(&snapshot), 20);
}
