//! Checks that lifecycle hooks delay availability and deletion.

use crate::world::{World, lines};
use jiff::SignedDuration;
use serde_json::{Value, json};
use smol_str::SmolStr;
use warmpool::api::labels;
use warmpool::cache::snapshot::ExpectedWrite;
use warmpool::model::sandbox::Sandbox;
use warmpool::planner::{PlanPhase, plan};

const CHECKED: &str = "example.com/checked";
const MOUNTED: &str = "example.com/mounted";

fn hook() -> Value {
    json!({"labelsHandler": {CHECKED: "yes"}, "finalizersHandler": [MOUNTED]})
}

fn add_handlers(sandbox: &mut Sandbox) {
    sandbox.labels.insert(CHECKED.into(), "yes".into());
    sandbox.finalizers = vec![MOUNTED.into()];
}

fn with_pre_normal_hook(replicas: usize) -> World {
    let mut world = World::new(replicas, json!({"lifecycle": {"preNormal": hook()}}));
    world.step();
    world.pass_second(|_| true);
    world
}

/// A full pool whose sandboxes carry both preDelete handlers.
fn with_pre_delete_handlers(replicas: usize, fields: Value) -> World {
    let mut world = World::full(replicas, fields);
    world.set(json!({"lifecycle": {"preDelete": hook()}}));
    world.sandboxes.values_mut().for_each(add_handlers);
    world
}

fn draining(world: &World) -> Vec<SmolStr> {
    let draining = world.sandboxes.values().filter(|s| s.state == labels::DRAINING);
    draining.map(|s| s.key.name.clone()).collect()
}

fn remove_handlers(world: &mut World) {
    for sandbox in world
        .sandboxes
        .values_mut()
        .filter(|s| s.state == labels::DRAINING)
    {
        sandbox.labels.clear();
        sandbox.finalizers.clear();
    }
}

#[test]
fn a_ready_sandbox_without_every_handler_is_neither_claimed_nor_counted() {
    let mut world = with_pre_normal_hook(2);
    world.claim("one", json!({}));
    let changes: [fn(&mut Sandbox); 4] = [
        |_| (),
        |s| drop(s.labels.insert(CHECKED.into(), "yes".into())),
        |s| s.finalizers = vec![MOUNTED.into()],
        |s| {
            add_handlers(s);
            s.labels.insert(CHECKED.into(), "no".into());
        },
    ];
    for change in changes {
        let mut world = world.clone();
        world.sandboxes.values_mut().for_each(change);
        let plan = world.plan();
        assert!(lines(&plan, PlanPhase::Scheduling).is_empty());
        assert_eq!((plan.status.ready, plan.status.available), (2, 0));
    }
    world.sandboxes.values_mut().for_each(add_handlers);
    let plan = world.plan();
    assert_eq!(lines(&plan, PlanPhase::Scheduling).len(), 1);
    assert_eq!(plan.status.available, 2);
}

#[test]
fn a_rollout_waits_for_the_pre_normal_handlers() {
    let mut world = with_pre_normal_hook(4);
    world.sandboxes.values_mut().for_each(add_handlers);
    world.converge();
    world
        .set_image("image:2")
        .set(json!({"updateStrategy": {"maxUnavailable": 1}}));
    for _ in 0..20 {
        world.step();
        world.pass_second(|_| true);
        assert!(world.available() >= 3);
    }
    assert_eq!(world.plan().status.updated, 1);
}

#[test]
fn an_invalid_pre_normal_hook_makes_no_sandbox_available() {
    let mut world = World::full(2, json!({}));
    world.claim("one", json!({}));
    world.set(json!({"replicas": "many", "lifecycle": {"preNormal": "yes"}}));
    assert!(lines(&world.plan(), PlanPhase::Scheduling).is_empty());
    world.spec["lifecycle"] = json!({"preNormal": hook()});
    assert!(lines(&world.plan(), PlanPhase::Scheduling).is_empty());
    world.sandboxes.values_mut().for_each(add_handlers);
    assert_eq!(lines(&world.plan(), PlanPhase::Scheduling).len(), 1);
}

#[test]
fn a_sandbox_with_handlers_is_drained_and_deleted_once_every_handler_is_removed() {
    let mut world = with_pre_delete_handlers(3, json!({}));
    world.set(json!({"replicas": 2}));
    let plan = world.step();
    assert_eq!(lines(&plan, PlanPhase::Scale).len(), 1);
    let [name] = &draining(&world)[..] else {
        panic!("{:?}", plan.actions)
    };
    assert_eq!(
        lines(&plan, PlanPhase::Scale),
        [format!("DrainPod {name} ScaledDown")]
    );
    let plan = world.step();
    assert!(plan.actions.is_empty(), "the sandbox waits for its handlers");
    assert_eq!((plan.status.replicas, plan.status.draining), (2, 1));
    world.sandboxes.get_mut(name).unwrap().labels.clear();
    assert!(
        world.step().actions.is_empty(),
        "the finalizer still delays the deletion"
    );
    world.sandboxes.get_mut(name).unwrap().finalizers.clear();
    assert_eq!(
        lines(&world.step(), PlanPhase::Eviction),
        [format!("DeletePod {name} Drained")]
    );
}

#[test]
fn a_draining_sandbox_wanted_again_is_restored_unless_a_handler_was_removed() {
    for handler_removed in [false, true] {
        let mut world = with_pre_delete_handlers(3, json!({}));
        world.set(json!({"replicas": 2}));
        world.step();
        let name = draining(&world)[0].clone();
        if handler_removed {
            world.sandboxes.get_mut(&name).unwrap().labels.clear();
        }
        world.set(json!({"replicas": 3}));
        let plan = world.step();
        if handler_removed {
            assert_eq!(
                lines(&plan, PlanPhase::Scale),
                [format!("CreatePod {} Refill", world.update())]
            );
        } else {
            assert_eq!(
                lines(&plan, PlanPhase::Scale),
                [format!("RestorePod {name} WantedAgain")]
            );
        }
        world.converge();
        assert_eq!(world.available(), 3);
    }
}

#[test]
fn nothing_is_created_beside_a_sandbox_that_is_being_restored() {
    let mut world = with_pre_delete_handlers(3, json!({"updateStrategy": {"maxSurge": 1}}));
    world.set(json!({"replicas": 2})).step();
    let name = draining(&world)[0].clone();
    world.set(json!({"replicas": 3}));
    let mut snapshot = world.snapshot();
    let restored = snapshot
        .sandboxes
        .iter_mut()
        .find(|entry| entry.sandbox.key.name == name);
    restored.unwrap().expected = Some(ExpectedWrite::Restore);
    let actions = lines(&plan(&snapshot), PlanPhase::Scale);
    assert!(actions.is_empty(), "{actions:?}");
}

#[test]
fn no_old_sandbox_is_restored_for_a_claim_that_only_the_new_revision_can_serve() {
    let mut world = with_pre_delete_handlers(3, json!({"updateStrategy": {"paused": true}}));
    world.set(json!({"replicas": 2})).step();
    world.set_image("image:2").step();
    let update = world.update();
    world.revisions.retain(|revision| revision.hash == update);
    world.claim("run", json!({"replicas": 2, "revisionPolicy": "Latest"}));
    let actions = lines(&world.plan(), PlanPhase::Scale);
    assert!(
        !actions.iter().any(|line| line.starts_with("RestorePod")),
        "{actions:?}"
    );
    world.converge();
    assert_eq!(world.claims["run"].status.sandboxes.len(), 2);
}

#[test]
fn a_sandbox_that_drains_because_max_total_was_lowered_is_not_restored_for_a_claim() {
    let mut world = with_pre_delete_handlers(3, json!({}));
    world.set(json!({"replicas": 1}));
    world.claim("both", json!({"replicas": 2}));
    world.step();
    world.set(json!({"capacity": {"maxTotal": 2}}));
    world.step();
    assert_eq!(draining(&world).len(), 1);
    world.claim("third", json!({}));
    assert!(world.step().actions.is_empty());
}

#[test]
fn a_claim_on_an_empty_pool_restores_rather_than_creates() {
    let mut world = with_pre_delete_handlers(1, json!({}));
    world.set(json!({"replicas": 0}));
    world.step();
    assert_eq!(draining(&world).len(), 1);
    world.claim("one", json!({}));
    world.step();
    world.step();
    assert!(
        world
            .bound_to("one")
            .is_some_and(|s| s.revision == world.update())
    );
    assert_eq!(world.sandboxes.len(), 1);
}

#[test]
fn a_rollout_drains_within_the_budget_and_completes_once_the_handlers_are_removed() {
    let mut world = with_pre_delete_handlers(4, json!({"updateStrategy": {"maxUnavailable": 1}}));
    world.set_image("image:2");
    for _ in 0..40 {
        world.step();
        world.pass_second(|_| true);
        assert!(world.available() >= 3);
        assert!(
            world
                .sandboxes
                .values()
                .filter(|s| s.state == labels::WARM)
                .count()
                <= 4
        );
    }
    let update = world.update();
    assert!(
        world
            .unclaimed()
            .filter(|s| s.state == labels::WARM)
            .all(|s| s.revision == update)
    );
    assert_eq!(draining(&world).len(), 4, "draining sandboxes delay nothing else");
    remove_handlers(&mut world);
    world.converge();
    assert_eq!(world.sandboxes.len(), 4);
}

#[test]
fn a_rollback_restores_the_old_sandboxes_that_still_drain() {
    let mut world = with_pre_delete_handlers(4, json!({"updateStrategy": {"maxUnavailable": 2}}));
    let before: Vec<_> = world.sandboxes.keys().cloned().collect();
    world.set_image("image:2");
    world.step();
    assert_eq!(draining(&world).len(), 2);
    world.step();
    world.set_image("image:1");
    world.converge();
    assert_eq!(world.sandboxes.keys().cloned().collect::<Vec<_>>(), before);
    assert_eq!(world.available(), 4);
}

#[test]
fn an_evicted_sandbox_is_not_restored() {
    let mut world = with_pre_delete_handlers(
        2,
        json!({"warmUpDeadlineSeconds": 30, "updateStrategy": {"maxUnavailable": 1}}),
    );
    let names: Vec<_> = world.sandboxes.keys().cloned().collect();
    world.sandboxes.get_mut(&names[0]).unwrap().evict = true;
    world.step();
    assert_eq!(draining(&world), names[..1]);
    world.converge();
    assert_eq!(draining(&world), names[..1]);
    world.now += SignedDuration::from_secs(3600);
    world.sandboxes.get_mut(&names[1]).unwrap().ready_since = None;
    world.converge_where(|s| s.key.name != names[1]);
    assert_eq!(draining(&world), names);
    assert_eq!(world.available(), 2);
}

#[test]
fn a_draining_sandbox_is_never_claimed() {
    let mut world = with_pre_delete_handlers(1, json!({}));
    world.set(json!({"replicas": 0}));
    world.step();
    world.claim("one", json!({"onEmpty": "Wait"}));
    assert!(lines(&world.plan(), PlanPhase::Scheduling).is_empty());
}
