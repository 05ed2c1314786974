//! Checks that a sandbox that a claim already holds says that it replaces a lost one before the claim lists it: a second
//! leader may be about to delete it as surplus.

use crate::claim_requests::with_unlisted;
use crate::world::World;
use warmpool::api::claim::Phase;
use warmpool::planner::claim::plan;

/// A claim that has lost the sandbox that it lists, and holds another.
fn with_one_lost() -> World {
    let mut world = with_unlisted(&["spare"]);
    let listed = world.claims["one"].status.sandboxes[0].name.clone();
    world.sandboxes.remove(&*listed);
    let lost = plan(&world.claim_snapshot("one")).status.unwrap();
    assert!(lost.phase == Some(Phase::Pending) && lost.sandboxes.is_empty());
    world.claims.get_mut("one").unwrap().status = *lost;
    world
}

/// Names of the sandboxes that are to say that the claim chose them, and of those that the planned status lists.
fn planned(world: &World) -> (Vec<String>, Vec<String>) {
    let plan = plan(&world.claim_snapshot("one"));
    let chosen = plan.replacements.iter().map(|s| s.key.name.to_string());
    let listed = plan.status.into_iter().flat_map(|status| status.sandboxes);
    (chosen.collect(), listed.map(|sandbox| sandbox.name).collect())
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_string()).collect()
}

#[test]
fn a_sandbox_says_that_it_was_chosen_before_a_claim_lists_it_as_a_replacement() {
    let mut world = with_one_lost();
    let expected = (names(&["spare"]), vec![]);
    assert_eq!(planned(&world), expected, "I2: a deletion may be under way");
    let version = world.claims["one"].resource_version.clone();
    world.sandboxes.get_mut("spare").unwrap().chosen_on = version;
    assert_eq!(planned(&world), (vec![], names(&["spare"])));
}

#[test]
fn a_sandbox_chosen_on_another_version_of_the_claim_is_chosen_again() {
    let mut world = with_one_lost();
    world.sandboxes.get_mut("spare").unwrap().chosen_on = "an earlier one".into();
    let expected = (names(&["spare"]), vec![]);
    assert_eq!(
        planned(&world),
        expected,
        "I2: a deletion that was decided since may be under way"
    );
}

#[test]
fn a_claim_that_was_never_bound_is_published_without_any_further_write_on_its_sandboxes() {
    let mut world = with_one_lost();
    world.claims.get_mut("one").unwrap().status = Default::default();
    assert_eq!(planned(&world), (vec![], names(&["spare"])));
}

#[test]
fn a_sandbox_that_a_claim_still_lists_is_not_chosen_again() {
    let mut world = with_unlisted(&["spare"]);
    let mut stored = world.claims["one"].clone();
    stored.status.phase = Some(Phase::Pending);
    world.claims.insert("one".into(), stored);
    let listed = world.claims["one"].status.sandboxes[0].name.clone();
    assert_eq!(planned(&world), (vec![], vec![listed]));
}
