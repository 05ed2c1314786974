//! Checks that a pool pauses while its PodTemplate is missing or invalid, and resumes afterwards.

use crate::world::{World, lines};
use serde_json::{Value, json};
use std::sync::Arc;
use warmpool::api::conditions::{claim, find, progressing};
use warmpool::model::Key;
use warmpool::model::pool_error::PoolError;
use warmpool::model::revision::Template;
use warmpool::planner::{Plan, PlanPhase};

fn image(name: &str) -> Template {
    Template::new(json!({"spec": {"containers": [{"name": "main", "image": name}]}}))
}

fn template_errors() -> [(PoolError, &'static str, &'static str); 2] {
    let key = Key::new("default", "shared");
    [
        (
            PoolError::not_found(&key),
            progressing::TEMPLATE_NOT_FOUND,
            claim::TEMPLATE_NOT_FOUND,
        ),
        (
            PoolError::invalid(&key, "it is bad; mend it"),
            progressing::TEMPLATE_INVALID,
            claim::TEMPLATE_INVALID,
        ),
    ]
}

fn condition(plan: &Plan, type_: &str) -> (String, String, String) {
    let condition = find(&plan.status.conditions, type_).unwrap();
    (
        condition.status.clone(),
        condition.reason.clone(),
        condition.message.clone(),
    )
}

/// A full pool that uses a PodTemplate with `image:1`.
fn world(replicas: usize, fields: Value) -> World {
    let mut world = World::new(replicas, fields);
    world.spec.as_object_mut().unwrap().remove("template");
    world.set(json!({"templateRef": {"name": "shared"}}));
    world.pod_template = Some(Ok(Arc::new(image("image:1"))));
    world.converge();
    world
}

#[test]
fn a_pool_without_its_template_creates_and_deletes_nothing_and_its_status_shows_why() {
    for (error, reason, _) in template_errors() {
        let mut world = world(4, json!({}));
        let name = world.unclaimed().next().unwrap().key.name.clone();
        world.sandboxes.remove(&name);
        let evict = world.unclaimed().next().unwrap().key.name.clone();
        world.sandboxes.get_mut(&evict).unwrap().evict = true;
        let before = world.plan();
        assert_ne!(
            lines(&before, PlanPhase::Scale).len() + lines(&before, PlanPhase::Eviction).len(),
            0
        );
        world.pod_template = Some(Err(error.clone()));
        let plan = world.plan();
        assert!(plan.actions.is_empty(), "{:?}", plan.actions);
        assert!(plan.revisions.store.is_none() && plan.revisions.trim.is_empty());
        let (status, actual_reason, message) = condition(&plan, "Progressing");
        assert_eq!((status.as_str(), actual_reason.as_str()), ("False", reason));
        assert!(
            message.contains("nothing is created or deleted") && message.contains(error.message()),
            "{message}"
        );
    }
}

#[test]
fn a_missing_template_keeps_the_revisions_and_counts_of_the_status() {
    let mut world = world(4, json!({"updateStrategy": {"partition": 1}}));
    let full = world.plan();
    world.pod_template = Some(Err(template_errors()[0].0.clone()));
    let plan = world.step();
    for (actual, before) in [
        (&plan.status.update_revision, &full.status.update_revision),
        (&plan.status.current_revision, &full.status.current_revision),
    ] {
        assert!(!before.is_empty());
        assert_eq!(actual, before);
    }
    assert_eq!(plan.status.expected_updated, full.status.expected_updated);
    assert_eq!(plan.status.updated_available, 4);
    assert_eq!(
        condition(&plan, "Available"),
        condition(&full, "Available"),
        "available sandboxes stay available"
    );
    // Restoring the same template starts no rollout.
    world.pod_template = Some(Ok(Arc::new(image("image:1"))));
    let plan = world.plan();
    assert_eq!(condition(&plan, "Progressing"), condition(&full, "Progressing"));
    assert!(plan.actions.is_empty() && plan.revisions.store.is_none());
}

#[test]
fn claims_are_served_while_the_template_is_missing_and_waiting_claims_show_why() {
    for (error, _, reason) in template_errors() {
        let mut world = world(2, json!({}));
        world.pod_template = Some(Err(error.clone()));
        for name in ["a", "b", "c"] {
            world.claim(name, json!({}));
        }
        let plan = world.step();
        assert_eq!(lines(&plan, PlanPhase::Scheduling).len(), 2);
        assert!(world.bound_to("a").is_some() && world.bound_to("b").is_some());
        let plan = world.plan();
        assert!(plan.actions.is_empty(), "{:?}", plan.actions);
        assert_eq!(plan.waiting.len(), 1);
        let (_, why) = &plan.waiting[0];
        assert_eq!(why.reason, reason);
        let message = format!("the pool's {}", error.message());
        assert!(why.message.contains(&message), "{}", why.message);
        world.pod_template = Some(Ok(Arc::new(image("image:1"))));
        world.converge();
        assert!(world.bound_to("c").is_some());
    }
}

#[test]
fn a_rollout_whose_template_is_deleted_stops_and_resumes_when_it_is_back() {
    let mut world = world(6, json!({"updateStrategy": {"maxUnavailable": 2}}));
    world.pod_template = Some(Ok(Arc::new(image("image:2"))));
    world.step();
    world.step();
    let (update, status) = (world.update(), world.plan().status);
    let old = world.unclaimed().filter(|s| s.revision != update).count();
    assert_eq!(old, 4, "in the middle of the rollout");
    assert_ne!(status.current_revision, status.update_revision);
    world.pod_template = Some(Err(template_errors()[0].0.clone()));
    for _ in 0..5 {
        let plan = world.step();
        assert!(plan.actions.is_empty(), "{:?}", plan.actions);
        assert_eq!(plan.status.update_revision, status.update_revision);
        assert_eq!(plan.status.current_revision, status.current_revision);
        world.pass_second(|_| true);
    }
    assert_eq!(world.unclaimed().filter(|s| s.revision != update).count(), old);
    world.pod_template = Some(Ok(Arc::new(image("image:2"))));
    world.converge();
    assert!(world.unclaimed().all(|s| s.revision == update));
    assert_eq!(world.plan().status.current_revision, update);
}

#[test]
fn moving_the_same_content_from_the_pool_to_a_template_rolls_nothing() {
    let mut world = World::full(3, json!({}));
    let before = world.update();
    world.spec.as_object_mut().unwrap().remove("template");
    world.set(json!({"templateRef": {"name": "shared"}}));
    world.pod_template = Some(Ok(Arc::new(image("image:1"))));
    let plan = world.plan();
    assert!(plan.actions.is_empty() && plan.revisions.store.is_none());
    assert_eq!(plan.status.update_revision, before);
}

#[test]
fn no_rollout_completes_while_the_template_is_missing() {
    let mut world = world(1, json!({"updateStrategy": {"maxUnavailable": 1}}));
    let old = world.plan().status.current_revision;
    world.pod_template = Some(Ok(Arc::new(image("image:2"))));
    while world.unclaimed().all(|s| s.revision == old) {
        world.step();
    }
    world.pass_second(|_| true);
    assert_ne!(
        world.plan().status.current_revision,
        old,
        "the next status completes the rollout"
    );
    world.pod_template = Some(Err(template_errors()[0].0.clone()));
    assert_eq!(world.plan().status.current_revision, old);
}
