//! Checks what a planned write waits for before it is sent.

use crate::world::World;
use jiff::SignedDuration;
use serde_json::json;
use warmpool::cache::snapshot::CreationInFlight;
use warmpool::planner::{Plan, Step, WaitsFor, plan};

/// How many bindings may be sent, and how many wait for the answers to others.
fn bindings(plan: &Plan) -> (usize, usize) {
    let bindings = plan
        .actions
        .iter()
        .filter(|action| matches!(action.step, Step::BindClaim { .. }));
    let (waiting, sent): (Vec<_>, Vec<_>) = bindings.partition(|action| action.waits_for.is_some());
    assert!(
        waiting
            .iter()
            .all(|action| action.waits_for == Some(WaitsFor::BindingsInFlight))
    );
    (sent.len(), waiting.len())
}

/// How far the binding of a claim for one sandbox is.
#[derive(Clone, Copy, Debug)]
enum Binding {
    /// Its W1 is in flight.
    W1,
    /// It holds its sandbox, and its status does not say so yet.
    Unpublished,
}

#[test]
fn a_pool_has_32_bindings_in_flight_from_w1_to_the_published_status() {
    use Binding::{Unpublished, W1};
    let rows = [
        (W1, 0, (32, 8)),
        (W1, 31, (1, 8)),
        (W1, 32, (0, 8)),
        (Unpublished, 31, (1, 8)),
        (Unpublished, 32, (0, 8)),
        (Unpublished, 39, (0, 1)),
    ];
    for (binding, in_flight, expected) in rows {
        let mut world = World::full(40, json!({}));
        (0..40).for_each(|n| {
            world.claim(&format!("run-{n:02}"), json!({}));
        });
        let mut snapshot = world.snapshot();
        for waiting in snapshot.claims.iter_mut().take(in_flight) {
            waiting.held = 1;
            waiting.binding = usize::from(matches!(binding, W1));
        }
        // The others wait for sandboxes that no claim holds yet.
        let claims = expected.0 + expected.1;
        snapshot.claims.truncate(in_flight + claims);
        assert_eq!(bindings(&plan(&snapshot)), expected, "{binding:?} {in_flight}");
    }
}

#[test]
fn a_claim_whose_end_could_not_be_written_is_planned_again_when_that_is_due() {
    let mut world = World::new(0, json!({}));
    world.claim("run", json!({"waitTimeoutSeconds": 1}));
    let retry_at = world.now + SignedDuration::from_secs(60);
    let mut snapshot = world.snapshot();
    snapshot.now = world.now + SignedDuration::from_secs(30);
    assert!(snapshot.claims[0].deadline().unwrap() < snapshot.now);
    snapshot.claims[0].retry_at = Some(retry_at);
    assert_eq!(plan(&snapshot).next, Some(retry_at));
}

#[test]
fn the_bindings_that_wait_are_the_last_in_order_of_service() {
    let mut world = World::full(34, json!({}));
    (0..33).for_each(|n| {
        world.claim(&format!("run-{n:02}"), json!({}));
    });
    world.claim("urgent", json!({"priority": 5}));
    let plan = world.plan();
    let names: Vec<_> = plan
        .bindings()
        .iter()
        .map(|(claim, _)| claim.key.name.clone())
        .collect();
    assert_eq!(names.len(), 32);
    assert_eq!((names[0].as_str(), names[31].as_str()), ("urgent", "run-30"));
    assert!(plan.waiting.is_empty(), "a sandbox is kept for each claim");
}

#[test]
fn a_claim_for_several_is_bound_to_all_its_sandboxes_together() {
    let mut world = World::full(43, json!({}));
    world.claim("batch", json!({"replicas": 40}));
    ["b", "c", "d"].iter().for_each(|name| {
        world.claim(name, json!({}));
    });
    assert_eq!(bindings(&world.plan()), (40, 3));
    let mut snapshot = world.snapshot();
    for waiting in snapshot.claims.iter_mut().filter(|w| w.claim.wanted() == 1) {
        (waiting.held, waiting.binding) = (1, 1);
    }
    assert_eq!(bindings(&plan(&snapshot)), (40, 0), "while 3 are in flight");
}

/// What each creation of the plan waits for.
fn creations(plan: &Plan) -> Vec<Option<WaitsFor>> {
    let creations = plan
        .actions
        .iter()
        .filter(|action| matches!(action.step, Step::CreatePod { .. }));
    creations.map(|action| action.waits_for).collect()
}

#[test]
fn no_pod_is_created_before_its_revision_is_stored_as_the_newest() {
    let stores = Some(WaitsFor::RevisionStored);
    let mut world = World::new(3, json!({}));
    let mut snapshot = world.snapshot();
    assert_eq!(creations(&plan(&snapshot)), [stores; 3]);
    snapshot.creation_proven = true;
    assert_eq!(creations(&plan(&snapshot)), [stores; 3]);
    world.converge();
    world.set_image("image:2").converge();
    world.set_image("image:1").sandboxes.clear();
    let mut snapshot = world.snapshot();
    snapshot.creation_proven = true;
    assert_eq!(
        creations(&plan(&snapshot)),
        [stores; 3],
        "the revision is stored under an old number"
    );
}

#[test]
fn one_pod_is_created_first_until_the_api_server_has_accepted_a_pod_of_the_pool() {
    let first = Some(WaitsFor::FirstPodCreated);
    let (unanswered, answered) = (false, true);
    type Row<'a> = (bool, &'a [bool], Vec<Option<WaitsFor>>);
    let rows: [Row; 6] = [
        (false, &[], vec![None, first, first, first]),
        (false, &[unanswered], vec![first, first, first]),
        (false, &[answered], vec![None, first, first]),
        (false, &[unanswered, answered], vec![first, first]),
        (true, &[], vec![None; 4]),
        (true, &[unanswered], vec![None; 3]),
    ];
    for (is_proven, in_flight, expected) in rows {
        let mut world = World::full(4, json!({}));
        world.sandboxes.clear();
        let mut snapshot = world.snapshot();
        snapshot.creation_proven = is_proven;
        let creation = |(n, is_answered): (usize, &bool)| CreationInFlight {
            name: format!("python-{n}").into(),
            revision: world.update(),
            is_answered: *is_answered,
        };
        snapshot.creating = in_flight.iter().enumerate().map(creation).collect();
        assert_eq!(creations(&plan(&snapshot)), expected, "{is_proven} {in_flight:?}");
    }
}
