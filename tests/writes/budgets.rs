//! The PodDisruptionBudgets of a pool: how often they are written, and what follows when that fails.

use crate::world::{Reply, World, owner};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use warmpool::cache::watch::take_over_list;
use warmpool::model::stored::StoredDisruptionBudget;

const RESOURCE: &str = "poddisruptionbudgets";

/// A pool of two whose budgets are listed: there are none. The first requests on them are answered by `replies`, all others are
/// carried out.
fn world(replies: &'static [Reply]) -> World {
    let mut answered = 0;
    let mut world = World::new(move |asked| {
        if asked.resource != RESOURCE {
            return Reply::Done;
        }
        answered += 1;
        replies.get(answered - 1).cloned().unwrap_or(Reply::Done)
    });
    world.pool("default", "python", 2);
    world.context.shared.lock().retain_budgets(&HashSet::new());
    world.reconcile_all();
    world
}

/// Verb and name of each request on a budget.
fn asked(world: &World) -> Vec<String> {
    let verbs = ["POST", "PATCH", "DELETE"];
    let of = verbs.map(|verb| (verb, world.asked("default", verb, RESOURCE)));
    let lines = of
        .iter()
        .flat_map(|(verb, asked)| asked.iter().map(move |asked| format!("{verb} {}", asked.name)));
    lines.collect()
}

/// The watch shows the stored budgets, each with its pods counted anew.
fn watch_shows(world: &mut World) {
    let stored = world.stored(RESOURCE).into_iter();
    let stored: Vec<StoredDisruptionBudget> = stored.map(|b| serde_json::from_value(b).unwrap()).collect();
    take_over_list(&mut world.context.shared.lock(), stored);
    world.reconcile_all();
}

fn named(world: &World, name: &str) -> Value {
    let stored = world.stored(RESOURCE).into_iter();
    let mut such = stored.filter(|budget| budget["metadata"]["name"] == name);
    such.next().unwrap_or_default()
}

const BOTH: [&str; 2] = ["POST python-unclaimed", "POST python-claimed"];

#[tokio::test(start_paused = true)]
async fn both_budgets_are_created_once_whatever_the_watch_shows_and_claims_take() {
    let mut world = world(&[]);
    world.pass(2).await;
    assert_eq!(asked(&world), BOTH);
    assert_eq!(named(&world, "python-unclaimed")["spec"]["minAvailable"], 2);
    for n in 0..2 {
        watch_shows(&mut world);
        world.claim("default", &format!("run-{n}"), "python", &json!({}));
        world.pass(10).await;
        world.reconcile_all();
    }
    watch_shows(&mut world);
    world.pass(60).await;
    assert_eq!(asked(&world), BOTH);
    // Another operator finds them as they should be.
    world.restart();
    watch_shows(&mut world);
    world.pass(60).await;
    assert_eq!(asked(&world), BOTH);
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_fails_is_tried_again_and_one_that_is_rejected_a_minute_later() {
    let rows: [(&'static [Reply], u64, usize); 6] = [
        (&[Reply::Fails("no quorum")], 1, 3),
        (&[Reply::Throttled(3)], 2, 1),
        (&[Reply::Throttled(3)], 5, 3),
        (&[Reply::Code(409)], 1, 3),
        (&[Reply::Code(403)], 59, 1),
        (&[Reply::Code(403)], 62, 3),
    ];
    for (replies, seconds, requests) in rows {
        let mut world = world(replies);
        world.pass(seconds).await;
        let asked = asked(&world);
        assert_eq!(
            asked.len(),
            requests,
            "after {seconds} s of {replies:?}: {asked:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_scaled_pool_patches_its_budget_once_and_a_pool_of_none_deletes_it() {
    let mut world = world(&[]);
    world.pass(10).await;
    world.pool_is_scaled("default", "python", 5);
    world.pass(10).await;
    let mut expected: Vec<_> = BOTH.map(ToString::to_string).into();
    expected.push("PATCH python-unclaimed".into());
    assert_eq!(asked(&world), expected);
    assert_eq!(named(&world, "python-unclaimed")["spec"]["minAvailable"], 4);
    world.pool_is_scaled("default", "python", 0);
    world.pass(10).await;
    expected.push("DELETE python-unclaimed".into());
    assert_eq!(asked(&world), expected);
    world.pass(60).await;
    assert_eq!(asked(&world), expected);
}

#[tokio::test(start_paused = true)]
async fn a_budget_edited_or_deleted_by_hand_is_made_good() {
    let mut world = world(&[]);
    world.pass(10).await;
    let mut edited = named(&world, "python-unclaimed");
    edited["spec"]["minAvailable"] = json!(0);
    let stored: StoredDisruptionBudget = serde_json::from_value(edited).unwrap();
    let to_reconcile = world.context.shared.lock().apply_budget(&stored);
    world.trigger(to_reconcile);
    world.pass(1).await;
    assert_eq!(asked(&world).last().unwrap(), "PATCH python-unclaimed");
    let gone = named(&world, "python-claimed");
    let stored: StoredDisruptionBudget = serde_json::from_value(gone).unwrap();
    let to_reconcile = world.context.shared.lock().delete_budget(&stored);
    world.trigger(to_reconcile);
    world.pass(1).await;
    let asked = asked(&world);
    let made = asked.iter().filter(|line| *line == "POST python-claimed");
    assert_eq!(made.count(), 2, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_list_them_no_budget_is_written() {
    let mut world = world(&[]);
    world.pass(10).await;
    assert!(world.context.shared.lock().deny_budgets(), "it is news once");
    assert!(!world.context.shared.lock().deny_budgets());
    world.pool_is_scaled("default", "python", 5);
    world.pass(60).await;
    assert_eq!(asked(&world), BOTH);
}

/// The pool is gone, and with it, by the garbage collector, its budgets.
fn pool_goes(world: &mut World) {
    let mut to_reconcile = Vec::new();
    {
        let mut index = world.context.shared.lock();
        let metadata = json!({"namespace": "default", "name": "python", "uid": "uid-default-python"});
        let pool = serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap();
        to_reconcile.extend(index.delete_pool(&pool));
        for name in ["python-unclaimed", "python-claimed"] {
            let metadata = json!({"namespace": "default", "name": name});
            to_reconcile
                .extend(index.delete_budget(&serde_json::from_value(json!({"metadata": metadata})).unwrap()));
        }
    }
    world.trigger(to_reconcile);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_outlives_its_pool_keeps_a_budget_until_a_pool_of_that_name_is_there_again() {
    let mut world = world(&[]);
    world.pass(10).await;
    for (name, disruption) in [("stays", "Block"), ("goes", "Allow")] {
        world.claim("default", name, "python", &json!({"disruption": disruption}));
        world.pass(1).await;
        world.claim_is_seen_as_written("default", name);
    }
    pool_goes(&mut world);
    world.pass(10).await;
    let mut expected: Vec<String> = BOTH.map(ToString::to_string).into();
    expected.push("POST stays-orphaned".into());
    assert_eq!(asked(&world), expected);
    let made = named(&world, "stays-orphaned");
    let owner = &made["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["name"]),
        (&json!("SandboxClaim"), &json!("stays"))
    );
    // Another operator finds it as it should be.
    world.restart();
    let stored: Vec<StoredDisruptionBudget> = vec![serde_json::from_value(made).unwrap()];
    take_over_list(&mut world.context.shared.lock(), stored);
    pool_goes(&mut world);
    world.reconcile_all();
    world.pass(10).await;
    assert_eq!(asked(&world), expected);
    world.pool_is_scaled("default", "python", 2);
    world.pass(10).await;
    let asked = asked(&world);
    assert!(asked.contains(&"DELETE stays-orphaned".into()), "{asked:?}");
}

/// Another controller deletes the budget with this name whenever it is stored, for so many seconds.
async fn deletes(world: &mut World, name: &str, seconds: u64) {
    let mut known = asked(world).len();
    for _ in 0..10 * seconds {
        world.run_for(Duration::from_millis(100)).await;
        let now = asked(world).len();
        let is_stored = named(world, name).is_object();
        if std::mem::replace(&mut known, now) < now && is_stored {
            let gone = json!({"metadata": {"namespace": "default", "name": name}});
            let gone = serde_json::from_value(gone).unwrap();
            let to_reconcile = world.context.shared.lock().delete_budget(&gone);
            world.trigger(to_reconcile);
        }
    }
}

/// A pool that is gone, and a claim for one of its sandboxes that allows no eviction.
async fn orphaned(world: &mut World) {
    world.pass(10).await;
    world.claim("default", "stays", "python", &json!({"disruption": "Block"}));
    world.pass(1).await;
    world.claim_is_seen_as_written("default", "stays");
    pool_goes(world);
}

/// How often a write of this verb was asked for on the budget with this name.
fn count(world: &World, line: &str) -> usize {
    asked(world).iter().filter(|asked| *asked == line).count()
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_another_controller_deletes_is_created_again_after_a_pause() {
    let mut world = world(&[]);
    deletes(&mut world, "python-claimed", 12).await;
    let created = count(&world, "POST python-claimed");
    assert_eq!(
        created, 3,
        "I8: a budget of a pool is created at once, after 5 s and after 10 s"
    );
    assert_eq!(
        count(&world, "POST python-unclaimed"),
        1,
        "the other one is left alone"
    );
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_a_claim_without_a_pool_that_is_deleted_is_created_again_after_a_pause() {
    let mut world = world(&[]);
    orphaned(&mut world).await;
    deletes(&mut world, "stays-orphaned", 12).await;
    let created = count(&world, "POST stays-orphaned");
    assert_eq!(
        created, 3,
        "I8: the budget of a claim is created at once, after 5 s and after 10 s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_a_webhook_changes_is_written_again_after_a_pause() {
    let mut world = World::new(|asked| {
        if asked.resource != RESOURCE || asked.name != "stays-orphaned" {
            return Reply::Done;
        }
        let owner = owner("SandboxClaim", "stays", "uid-default-stays");
        Reply::Object(json!({
            "metadata": {
                "namespace": "default", "name": asked.name, "uid": "budget", "resourceVersion": "7",
                "ownerReferences": owner,
            },
            "spec": {"minAvailable": 0},
        }))
    });
    world.pool("default", "python", 2);
    world.context.shared.lock().retain_budgets(&HashSet::new());
    world.reconcile_all();
    orphaned(&mut world).await;
    world.pass(12).await;
    let written = ["POST", "PATCH"].map(|verb| count(&world, &format!("{verb} stays-orphaned")));
    assert_eq!(
        written,
        [1, 2],
        "I8: the budget of a claim is written at once, after 5 s and after 10 s"
    );
}
