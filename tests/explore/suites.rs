//! What `make test`, `make explore` and `make soak` run.

use crate::scene::Scene;
use crate::search::{Bounds, Coverage, explore};
use crate::{scenes, walk};

/// Far more states than any small scene has.
const ENDLESS: usize = 100_000;

/// Searches through all of a small scene.
fn exhaust(scene: &'static Scene) {
    let coverage = search(scene, ENDLESS, 1);
    assert!(coverage.complete, "I8: no end after {} states", coverage.states);
}

/// Searches through the nearest worlds of a scene, and returns what it covered.
fn search(scene: &'static Scene, states: usize, threads: usize) -> Coverage {
    match explore(scene, Bounds { states, threads }) {
        Ok(coverage) => {
            println!("{}: {coverage}", scene.name);
            coverage
        }
        Err(story) => panic!("{story}"),
    }
}

/// A number out of the environment.
fn number<N: std::str::FromStr>(name: &str, default: N) -> N {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number"))
    })
}

macro_rules! suite {
    ($how:expr, $when:literal, $condition:meta, $($scene:ident)*) => {
        $(#[test]
        #[cfg_attr($condition, ignore = $when)]
        fn $scene() {
            $how(scenes::$scene());
        })*
    };
}

suite! {
    exhaust, "slow when not optimized; `make unit` runs it optimized", debug_assertions,
    a_claim_and_a_lost_answer
    a_pool_that_sizes_itself_and_a_crash
    a_claim_that_loses_its_sandbox
    two_claims_on_one_sandbox
    a_batch_and_a_crash
    a_rollout_and_a_crash
    a_rollout_that_never_comes_up
    a_surge_and_a_broken_watch
    an_eviction_and_a_claim
    two_evictions
    two_claims_that_fill_a_pool
    an_edit_and_a_crash
    two_edits_and_a_deleted_revision
    a_claim_and_a_quota
    a_claim_beside_a_batch_that_waits
    an_eviction_of_the_partition
    less_room_than_replicas_and_a_crash
    a_claim_whose_binding_is_rejected
    two_claims_and_a_rejected_binding
    a_pod_template_that_changes_and_a_crash
    a_pod_template_deleted_in_a_rollout
    a_missing_pod_template_and_a_crash
    a_cordoned_node_and_a_crash
    a_cordon_that_is_taken_back
}

suite! {
    |scene| search(scene, number("EXPLORE_STATES", 100_000), 2), "takes minutes; `make explore` runs it", all(),
    a_claim_and_a_crash
    a_claim_and_two_operators
    a_claim_on_either_of_two_pools
    a_sandbox_that_fails_or_falters
    a_claim_that_is_given_up
    a_broken_watch
    a_full_pool_and_a_crash
    a_rollout_and_a_claim
    a_rollout_and_a_lost_answer
    two_evictions_and_a_lost_answer
    a_scale_down_and_a_claim
    two_claims_a_crash_and_a_lost_answer
    two_claims_and_two_operators
    a_claim_two_operators_and_a_crash
    two_rollouts_a_crash_and_a_claim
    a_lost_answer_and_a_rejected_binding
    a_claim_that_loses_its_sandbox_and_two_operators
    a_lost_sandbox_that_two_operators_learn_of_late
    a_lost_sandbox_beside_a_surplus_one_and_two_operators
    a_cordoned_node_and_a_claim
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "slow when not optimized; `make unit` runs it optimized"
)]
fn walks_through_larger_worlds() {
    match std::env::var("WALK_SEED") {
        Ok(_) => walk::walks(number("WALK_SEED", 0), 1, 1),
        Err(_) => walk::walks(number("FROM", 0), number("WALKS", 5_000), 2),
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "slow when not optimized; `make unit` runs it optimized"
)]
fn a_seed_gives_the_same_walk_each_time() {
    walk::repeat_themselves(0..256);
}
