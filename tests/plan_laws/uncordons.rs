//! Checks what a node that is cordoned and uncordoned costs a pool: never an available sandbox that it wants.

use crate::drains::{on_two_nodes, only};
use crate::world::lines;
use serde_json::json;
use smol_str::format_smolstr;
use warmpool::cache::snapshot::CreationInFlight;
use warmpool::planner::{self, PlanPhase};

#[test]
fn a_node_uncordoned_in_time_costs_one_of_both_and_never_both() {
    let mut world = on_two_nodes(1, json!({}));
    let node = only(&mut world).node.clone().unwrap();
    world.cordon(&node);
    world.step();
    world.pass_second(|_| true);
    assert_eq!(world.available(), 2);
    world.open(&node);
    world.step();
    assert_eq!((world.available(), world.unclaimed().count()), (1, 1));
    assert!(world.plan().actions.is_empty());
}

#[test]
fn a_cordon_that_comes_and_goes_each_second_makes_no_more_than_one_replacement() {
    let mut world = on_two_nodes(1, json!({}));
    let node = only(&mut world).node.clone().unwrap();
    for second in 0..40 {
        if second % 2 == 0 {
            world.cordon(&node);
        } else {
            world.open(&node);
        }
        world.step();
        assert!((1..=2).contains(&world.unclaimed().count()));
        assert!(world.available() >= 1);
        world.pass_second(|_| second % 3 == 2);
    }
}

#[test]
fn a_cordon_taken_back_while_the_replacements_are_being_created_costs_no_available_sandbox() {
    let mut world = on_two_nodes(10, json!({"updateStrategy": {"maxUnavailable": 3}}));
    world.cordon("node-1");
    let surge = lines(&world.plan(), PlanPhase::Scale);
    assert_eq!(surge.len(), 3, "{surge:?}");
    world.open("node-1");
    let mut snapshot = world.snapshot();
    let revision = world.update();
    snapshot.creating = (0..surge.len())
        .map(|n| CreationInFlight {
            name: format_smolstr!("replacement-{n}"),
            revision: revision.clone(),
            is_answered: false,
        })
        .collect();
    let trimmed = lines(&planner::plan(&snapshot), PlanPhase::Scale);
    assert!(
        trimmed.is_empty(),
        "I6: an available sandbox goes for one that is not there yet: {trimmed:?}"
    );
    // Fewer are wanted as well: what is available above that goes, and no more.
    let mut pool = world.clone();
    pool.set(json!({"replicas": 8}));
    snapshot.pool = pool.snapshot().pool;
    let trimmed = lines(&planner::plan(&snapshot), PlanPhase::Scale);
    assert_eq!(trimmed.len(), 2, "{trimmed:?}");
    // Once they are seen, they cost less than available ones.
    for n in 0..surge.len() {
        let replacement = world.warming(&format!("replacement-{n}"), &revision);
        world.sandboxes.insert(replacement.key.name.clone(), replacement);
    }
    let mut trimmed = lines(&world.plan(), PlanPhase::Scale);
    trimmed.sort();
    let expected: Vec<_> = (0..surge.len())
        .map(|n| format!("DeletePod replacement-{n} ScaledDown"))
        .collect();
    assert_eq!(trimmed, expected);
}
