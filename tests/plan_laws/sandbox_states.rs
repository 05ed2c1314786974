//! Checks the state of a sandbox, which plans, counts, pool selection and metrics share.

use crate::world::{POOL_UID, World};
use jiff::SignedDuration;
use serde_json::json;
use warmpool::api::labels;
use warmpool::model::sandbox::{Owner, PodPhase, Sandbox};
use warmpool::model::sandbox_state::SandboxState;

/// The state of a Ready warm sandbox of the pool after a change.
fn state_after(change: impl FnOnce(&mut Sandbox)) -> SandboxState {
    let mut world = World::new(1, json!({"minReadySeconds": 5}));
    world.sandbox("a", "old", change);
    world.now += SignedDuration::from_secs(5);
    world.sandboxes["a"].state_at(POOL_UID, &world.pool().spec.availability_rule, world.now)
}

fn claim(sandbox: &mut Sandbox) {
    sandbox.owner = Owner::Claim {
        name: "run".into(),
        uid: "run".into(),
    };
}

#[test]
fn a_sandbox_is_in_exactly_one_state() {
    type Change = fn(&mut Sandbox);
    let table: [(Change, SandboxState); 13] = [
        (|_| (), SandboxState::Available),
        (|s| s.ready_since = None, SandboxState::Warming),
        (|s| s.phase = PodPhase::Pending, SandboxState::Warming),
        (
            |s| s.ready_since = s.ready_since.map(|at| at + SignedDuration::from_secs(1)),
            SandboxState::Warming,
        ),
        (|s| s.phase = PodPhase::Failed, SandboxState::Finished),
        (|s| s.state = labels::DRAINING.into(), SandboxState::Draining),
        (
            |s| (s.state, s.phase) = (labels::DRAINING.into(), PodPhase::Failed),
            SandboxState::Draining,
        ),
        (|s| s.state = "debug".into(), SandboxState::SetAside),
        (|s| s.terminating = true, SandboxState::Terminating),
        (claim, SandboxState::Claimed),
        (
            |s| (claim(s), s.phase = PodPhase::Succeeded).1,
            SandboxState::Claimed,
        ),
        (|s| (claim(s), s.terminating = true).1, SandboxState::Terminating),
        (
            |s| {
                s.owner = Owner::Pool {
                    uid: "another".into(),
                }
            },
            SandboxState::Foreign,
        ),
    ];
    for (index, (change, expected)) in table.into_iter().enumerate() {
        assert_eq!(state_after(change), expected, "row {index}");
    }
}
