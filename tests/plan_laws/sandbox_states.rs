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

#[test]
fn pods_with_a_foreign_or_missing_state_label_count_in_the_total_and_the_status_names_one() {
    let mut world = World::full(8, json!({"capacity": {"maxTotal": 8}}));
    let names: Vec<_> = world.sandboxes.keys().take(2).cloned().collect();
    let message = |world: &World| {
        let conditions = world.written().conditions;
        let available = conditions.iter().find(|c| c.type_ == "Available");
        available.unwrap().message.clone()
    };
    world.step();
    assert!(!message(&world).contains("pod"), "{}", message(&world));
    for (name, state, value, who) in [
        (&names[1], "", "is missing", "pod"),
        (&names[0], "debug", "is \"debug\"", "2 pods"),
    ] {
        world.sandboxes.get_mut(name).unwrap().state = state.into();
        world.converge();
        let status = world.written();
        assert_eq!((status.total, status.replicas + status.claimed < 8), (8, true));
        let message = message(&world);
        assert!(message.contains(&format!("; {who} ")), "{message}");
        let about = format!("pod {name}");
        let what =
            format!("its label warmpool.dev/state {value}; set the label to \"warm\" or delete the pod");
        assert!(message.contains(&about) && message.ends_with(&what), "{message}");
        assert_eq!(
            world.plan().status,
            status,
            "nothing is written while nothing changes"
        );
    }
}
