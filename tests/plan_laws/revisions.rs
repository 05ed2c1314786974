//! Checks that a revision's name depends on its content, not on its notation.

use crate::world::World;
use serde_json::json;
use std::sync::Arc;
use warmpool::model::revision::{Template, hash};
use warmpool::planner::revise::Store;

fn hash_of(template: serde_json::Value) -> String {
    hash(&Template::new(template).canonical, 0)
}

/// A change of any of these would replace every sandbox of every user at the next upgrade.
#[test]
fn golden_hashes_never_move() {
    let bare = json!({"spec": {"containers": [{"name": "main", "image": "python:3.13"}]}});
    let full = json!({
        "metadata": {"labels": {"team": "ai"}, "annotations": {"note": "ü \"quoted\" \n"}},
        "spec": {"containers": [{"name": "main", "image": "python:3.13", "env": [{"name": "A", "value": ""}],
            "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}, "ports": [{"containerPort": 80}]}],
            "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false},
    });
    assert_eq!(hash_of(bare.clone()), "dkxqjk6xpr");
    assert_eq!(hash_of(full), "m557zh9lsq");
    assert_eq!(hash(&Template::new(bare).canonical, 1), "fj6vvwxfjl");
}

#[test]
fn the_hash_ignores_how_an_absent_field_is_written() {
    let plain = json!({"spec": {"containers": [{"name": "a", "image": "b"}]}});
    let wordy = json!({
        "metadata": {"labels": {}, "annotations": null, "name": "ignored", "creationTimestamp": null},
        "spec": {"securityContext": {}, "nodeSelector": {}, "containers": [{"image": "b", "name": "a", "resources": {}}]},
    });
    assert_eq!(hash_of(plain), hash_of(wordy));
}

#[test]
fn the_hash_changes_with_every_difference_that_reaches_a_pod() {
    let with = |container: serde_json::Value| hash_of(json!({"spec": {"containers": [container]}}));
    let base = with(json!({"name": "a", "image": "b"}));
    assert_ne!(base, with(json!({"name": "a", "image": "c"})));
    assert_ne!(
        base,
        with(json!({"name": "a", "image": "b", "args": []})),
        "an empty list is not an absent one"
    );
    assert_ne!(base, with(json!({"name": "a", "image": "b", "tty": false})));
    assert_ne!(
        base,
        hash_of(
            json!({"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}})
        )
    );
}

#[test]
fn a_template_written_again_gets_its_old_revision_back_as_the_newest() {
    let mut world = World::full(2, json!({}));
    let first = world.update();
    world.set_image("image:2").converge();
    world.set_image("image:1");
    let revisions = world.plan().revisions;
    assert_eq!(revisions.update.hash, first);
    assert!(
        matches!(revisions.store, Some(Store::Renumber(_, 3))),
        "{:?}",
        revisions.store
    );
    world.converge();
    assert_eq!(world.revisions.len(), 2);
}

fn history(world: &World) -> Vec<(i64, Option<&str>)> {
    let mut all: Vec<_> = world
        .revisions
        .iter()
        .map(|r| (r.number, r.change_cause.as_deref()))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn a_change_cause_set_after_the_change_reaches_the_revision_without_a_new_number() {
    let mut world = World::full(2, json!({}));
    world.change_cause = Some("first".into());
    world.converge();
    world.set_image("image:2").converge();
    world.change_cause = Some("second".into());
    world.converge();
    assert_eq!(history(&world), [(1, Some("first")), (2, Some("second"))]);
    world.change_cause = None;
    world.converge();
    assert_eq!(history(&world), [(1, Some("first")), (2, None)]);
    assert_eq!(world.plan().revisions.store, None);
}

#[test]
fn a_hash_that_another_template_bears_is_not_used() {
    let mut world = World::new(1, json!({}));
    let used_hash = world.update();
    world.step();
    let stored = world.revisions.pop().unwrap();
    let other = Template::new(json!({"spec": {"containers": [{"name": "x", "image": "y"}]}}));
    world
        .revisions
        .push(Arc::new(warmpool::model::revision::Revision {
            template: Arc::new(other),
            ..(*stored).clone()
        }));
    let plan = world.plan();
    assert_ne!(plan.revisions.update.hash, used_hash);
    assert_eq!(plan.status.collision_count, Some(1));
}

#[test]
fn history_is_trimmed_to_the_limit_and_never_a_live_revision() {
    let mut world = World::full(2, json!({"revisionHistoryLimit": 2}));
    world.claim("keeper", json!({})).step();
    let held = world.bound_to("keeper").unwrap().revision.clone();
    for n in 2..9 {
        world.set_image(&format!("image:{n}")).converge();
    }
    world.converge();
    let stored: Vec<_> = world.revisions.iter().map(|r| r.hash.clone()).collect();
    assert_eq!(
        stored.len(),
        4,
        "two old revisions, the update revision and the revision of a claimed sandbox"
    );
    assert!(stored.iter().any(|hash| *hash == held));
    assert!(stored.contains(&world.update()));
}

#[test]
fn a_third_template_while_the_second_is_rolling_goes_straight_to_the_third() {
    let mut world = World::full(6, json!({"updateStrategy": {"maxUnavailable": 2}}));
    world.set_image("image:2");
    let second = world.update();
    world.step();
    world.step();
    world.set_image("image:3");
    let before = world.unclaimed().filter(|s| s.revision == second).count();
    while world.unclaimed().any(|s| s.revision != world.update()) {
        world.step();
        world.pass_second(|_| true);
        assert!(world.unclaimed().filter(|s| s.revision == second).count() <= before);
    }
}
