//! Checks the PodDisruptionBudget of a claim that has outlived its pool, whose own is gone.

use crate::disruption_budgets::{budget, listed};
use crate::lifetimes::bound;
use crate::world::{POOL_UID, World};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::Arc;
use warmpool::cache::pod_disruption_budget_snapshot::Access;
use warmpool::cache::snapshot::{ClaimSnapshot, PoolPresence};
use warmpool::model::failure::{Class, Failure};
use warmpool::model::pod_disruption_budget::{
    BudgetProgress, BudgetStep, DisruptionBudget, Group, orphan_budget, orphan_budget_name,
};
use warmpool::model::retry::Tries;
use warmpool::model::sandbox::Owner;
use warmpool::planner::claim::{ClaimPlan, plan};

const NAME: &str = "run-orphaned";

/// A bound claim, and the budgets that are listed.
fn claimed(claim: Value, defaults: Value, budgets: Vec<Arc<DisruptionBudget>>) -> World {
    let mut world = bound(claim, defaults);
    world.reconcile_claim("run");
    world.budgets = listed(budgets);
    world
}

fn snapshot(world: &World, pool_presence: PoolPresence) -> ClaimSnapshot {
    let snapshot = world.claim_snapshot("run");
    let defaults = (pool_presence == PoolPresence::Present).then(|| world.pool().claim_defaults);
    ClaimSnapshot {
        resolved_spec: snapshot.claim.resolved_spec(defaults.as_ref()),
        pool_presence,
        ..snapshot
    }
}

fn planned(world: &World, pool: PoolPresence) -> ClaimPlan {
    plan(&snapshot(world, pool))
}

/// The claim's own budget, as the API server holds it.
fn own(world: &World, spec: &Value) -> Arc<DisruptionBudget> {
    let uid = world.claims["run"].uid.clone();
    let mut own = (*budget(NAME, None, spec)).clone();
    own.owner = Owner::Claim {
        name: "run".into(),
        uid,
    };
    Arc::new(own)
}

fn as_it_should_be(world: &World) -> Value {
    json!(orphan_budget(&world.claims["run"].uid))
}

fn of_pool(uid: &str) -> Arc<DisruptionBudget> {
    let spec = json!(Group::Claimed.budget("python", usize::MAX));
    budget("python-claimed", Some(uid), &spec)
}

#[test]
fn a_claim_that_does_not_allow_evictions_keeps_a_budget_once_its_pool_is_gone() {
    let rows = [
        (json!({}), json!({}), true),
        (
            json!({"disruption": "Block"}),
            json!({"disruption": "Allow"}),
            true,
        ),
        (json!({"disruption": "Notify"}), json!({}), true),
        (json!({"disruption": "Allow"}), json!({}), false),
        (json!({}), json!({"disruption": "Allow"}), false),
    ];
    for (claim, defaults, guarded) in rows {
        let world = claimed(claim.clone(), defaults.clone(), Vec::new());
        assert_eq!(
            planned(&world, PoolPresence::Present).budget_step,
            None,
            "{claim}"
        );
        let step = planned(&world, PoolPresence::Absent).budget_step;
        let expected =
            guarded.then(|| BudgetStep::Create(NAME.into(), orphan_budget(&world.claims["run"].uid)));
        assert_eq!(
            step, expected,
            "I2: who may evict the sandbox of {claim} with {defaults} once its pool is gone"
        );
    }
}

#[test]
fn the_budget_covers_the_sandboxes_of_the_claim_alone_and_shields_what_is_not_ready() {
    let mut world = claimed(json!({}), json!({}), Vec::new());
    let own = own(&world, &as_it_should_be(&world));
    let covered: Vec<_> = world
        .sandboxes
        .values()
        .filter(|s| own.covers(&s.all_labels()))
        .map(|s| s.uid.clone())
        .collect();
    assert_eq!(covered, [world.bound_to("run").unwrap().uid.clone()]);
    assert_eq!(
        as_it_should_be(&world),
        json!({
            "minAvailable": i32::MAX, "unhealthyPodEvictionPolicy": "IfHealthyBudget",
            "selector": {
                "matchLabels": {
                    "warmpool.dev/claim-uid": world.claims["run"].uid, "warmpool.dev/state": "claimed",
                },
                "matchExpressions": [
                    {"key": "warmpool.dev/disruption", "operator": "NotIn", "values": ["Allow"]},
                ],
            },
        })
    );
    // The grace of a claim with disruption Notify is over.
    let name = world.bound_to("run").unwrap().key.name.clone();
    world.sandboxes.get_mut(&name).unwrap().allows_disruption = true;
    assert_eq!(planned(&world, PoolPresence::Absent).budget_step, None);
    assert!(!own.covers(&world.sandboxes[&name].all_labels()));
}

#[test]
fn the_budget_is_written_once_mended_and_withdrawn_for_another_that_covers_the_sandbox() {
    let mut world = claimed(json!({}), json!({}), Vec::new());
    let own_budget = own(&world, &as_it_should_be(&world));
    world.budgets = listed(vec![Arc::clone(&own_budget)]);
    let step = |world: &World, pool| planned(world, pool).budget_step;
    assert_eq!(
        step(&world, PoolPresence::Absent),
        None,
        "I8: it is as it should be"
    );
    let delete = Some(BudgetStep::Delete(Arc::clone(&own_budget)));
    assert_eq!(
        step(&world, PoolPresence::Present),
        None,
        "I2: the pool has none yet"
    );
    world.budgets.budgets.push(of_pool("another-pool"));
    assert_eq!(
        step(&world, PoolPresence::Present),
        delete,
        "the pool has its own"
    );
    assert_eq!(step(&world, PoolPresence::Absent), None, "it goes with the pool");
    world.budgets = listed(vec![Arc::clone(&own_budget)]);
    let users = budget(
        "mine",
        None,
        &json!({"minAvailable": 1, "selector": {"matchLabels": {"warmpool.dev/claim": "run"}}}),
    );
    world.budgets.budgets.push(Arc::clone(&users));
    assert_eq!(step(&world, PoolPresence::Absent), delete, "a user has one");
    world.budgets = listed(vec![users]);
    assert_eq!(step(&world, PoolPresence::Absent), None);
    let edited = own(&world, &json!({"minAvailable": 0}));
    world.budgets = listed(vec![Arc::clone(&edited)]);
    let wanted = orphan_budget(&world.claims["run"].uid);
    assert_eq!(
        step(&world, PoolPresence::Absent),
        Some(BudgetStep::Change(edited, wanted))
    );
    let stranger = budget(&orphan_budget_name("run"), None, &json!({"minAvailable": 0}));
    world.budgets = listed(vec![stranger]);
    assert_eq!(step(&world, PoolPresence::Absent), None, "another has the name");
    assert_eq!(step(&world, PoolPresence::Present), None);
}

#[test]
fn the_budget_of_a_pool_that_is_being_deleted_counts_and_that_of_one_that_is_gone_does_not() {
    for (pool, there, created) in [
        (PoolPresence::Terminating, true, false),
        (PoolPresence::Terminating, false, true),
        (PoolPresence::Absent, true, true),
    ] {
        let budgets = there.then(|| of_pool(POOL_UID)).into_iter().collect();
        let world = claimed(json!({}), json!({}), budgets);
        let step = planned(&world, pool).budget_step;
        assert_eq!(step.is_some(), created, "{pool:?}, the pool's is there: {there}");
    }
}

#[test]
fn without_a_sandbox_or_the_right_to_read_budgets_none_is_kept() {
    let mut world = claimed(json!({}), json!({}), Vec::new());
    for access in [Access::Unknown, Access::Denied] {
        world.budgets.access = access;
        assert_eq!(
            planned(&world, PoolPresence::Absent).budget_step,
            None,
            "{access:?}"
        );
    }
    world.budgets.access = Access::Listed;
    let name = world.bound_to("run").unwrap().key.name.clone();
    world.sandboxes.get_mut(&name).unwrap().terminating = true;
    assert_eq!(planned(&world, PoolPresence::Absent).budget_step, None);
}

#[test]
fn a_write_that_is_rejected_is_tried_again_a_minute_later() {
    let mut world = claimed(json!({}), json!({}), Vec::new());
    let failure = Failure {
        class: Class::Rejected,
        message: "quota".into(),
    };
    world.budgets.progress = BudgetProgress::Failed(Tries::after(None, failure, world.now));
    let due = world.now + SignedDuration::from_secs(60);
    let plan = planned(&world, PoolPresence::Absent);
    assert_eq!((plan.budget_step, plan.next), (None, Some(due)));
    world.now = due;
    assert!(planned(&world, PoolPresence::Absent).budget_step.is_some());
    world.budgets.progress = BudgetProgress::Sent(None);
    assert_eq!(planned(&world, PoolPresence::Absent).budget_step, None);
}
