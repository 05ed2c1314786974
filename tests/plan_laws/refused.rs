//! What a refused write leaves unknown.

use crate::world::{World, lines};
use serde_json::json;
use warmpool::cache::snapshot::ExpectedWrite;
use warmpool::planner::{PlanPhase, plan};

#[test]
fn one_whose_deletion_was_refused_is_not_counted_on() {
    let mut world = World::full(2, json!({"updateStrategy": {"maxUnavailable": 1}}));
    world.sandboxes.values_mut().for_each(|s| s.evict = true);
    let mut view = world.view();
    assert_eq!(lines(&plan(&view), PlanPhase::Eviction).len(), 1);
    view.sandboxes[0].expected = Some(ExpectedWrite::Conflicted);
    assert!(
        lines(&plan(&view), PlanPhase::Eviction).is_empty(),
        "it may be going"
    );
}

#[test]
fn a_claim_that_must_not_wait_does_for_a_sandbox_that_is_left_alone_for_a_moment() {
    let mut world = World::full(1, json!({}));
    world.claim("run", json!({"onEmpty": "Fail"}));
    let mut view = world.view();
    view.sandboxes[0].expected = Some(ExpectedWrite::Conflicted);
    let decided = lines(&plan(&view), PlanPhase::Scheduling);
    assert!(decided.is_empty(), "{decided:?}");
}
