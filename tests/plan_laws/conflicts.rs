//! Checks plans for sandboxes whose last write met a version conflict.

use crate::world::{World, lines};
use serde_json::json;
use warmpool::cache::snapshot::ExpectedWrite;
use warmpool::planner::{PlanPhase, plan};

#[test]
fn a_sandbox_whose_deletion_met_a_conflict_does_not_count_as_available() {
    let mut world = World::full(2, json!({"updateStrategy": {"maxUnavailable": 1}}));
    world.sandboxes.values_mut().for_each(|s| s.evict = true);
    let mut snapshot = world.snapshot();
    assert_eq!(lines(&plan(&snapshot), PlanPhase::Eviction).len(), 1);
    snapshot.sandboxes[0].expected = Some(ExpectedWrite::Conflicted);
    assert!(
        lines(&plan(&snapshot), PlanPhase::Eviction).is_empty(),
        "the first deletion may have succeeded"
    );
}

#[test]
fn a_claim_with_on_empty_fail_waits_for_a_sandbox_with_a_version_conflict() {
    let mut world = World::full(1, json!({}));
    world.claim("run", json!({"onEmpty": "Fail"}));
    let mut snapshot = world.snapshot();
    snapshot.sandboxes[0].expected = Some(ExpectedWrite::Conflicted);
    let actions = lines(&plan(&snapshot), PlanPhase::Scheduling);
    assert!(actions.is_empty(), "{actions:?}");
}
