//! Checks claims for several sandboxes, and defaults that a pool sets for claims.

use super::{all_bound, bound, burst, says};
use crate::api::PODS;
use crate::check::event::{items, text};
use crate::check::replay;
use crate::cluster_state::{ClusterState, label, wait_until_at_rest};
use crate::objects::{pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

fn sandboxes(claim: &Value) -> usize {
    items(claim, "/status/sandboxes").len()
}

/// Lets the sandboxes that are held become Ready until `check` succeeds.
fn warming_up_until<T>(
    scene: &Scene,
    condition: &str,
    check: impl Fn() -> Result<T, String>,
) -> Result<T, String> {
    let let_go = json!({"metadata": {"annotations": {"sim.warmpool.dev/hold": null}}});
    let is_held = |pod: &&Value| pod["metadata"]["annotations"]["sim.warmpool.dev/hold"] == "true";
    wait::until(condition, 60, || {
        for pod in scene.pods()?.iter().filter(is_held) {
            let name = text(pod, "/metadata/name");
            scene.lab.api.merge(PODS, &scene.namespace, name, &let_go)?;
        }
        check()
    })
}

pub fn a_batch_is_bound_all_together_and_younger_claims_wait_for_it(scene: &Scene) -> Result<(), String> {
    let at_rest = || ClusterState::read(scene)?.at_rest();
    let held = with(
        sim(&[("hold", "true")]),
        &json!({"scaleStrategy": {"maxUnavailable": 2}}),
    );
    scene.create_pool(&pool("python", 4, &held))?;
    warming_up_until(scene, "the pool was full", at_rest)?;
    scene.create_claim("batch", "python", &json!({"replicas": 10}))?;
    let younger = burst(scene, "younger", 4, "python", &json!({}))?;
    // No more sandboxes become Ready before a younger claim has said why it waits.
    let why = says(scene, "younger-0", "Bound", "NoneAvailable")?;
    wait::ensure(why.contains("ahead"), || {
        format!("a claim behind the batch says: {why}")
    })?;
    let batch = warming_up_until(scene, "the batch was bound", || {
        let batch = scene.claim("batch")?;
        wait::ensure(text(&batch, "/status/phase") == "Bound", || {
            batch["status"].to_string()
        })?;
        Ok(batch)
    })?;
    wait::ensure(sandboxes(&batch) == 10, || batch["status"].to_string())?;
    warming_up_until(scene, "all were bound and the pool was full", at_rest)?;
    all_bound(scene, &younger)?;
    younger_claims_waited_beside_available_sandboxes(scene, 4, 10)?;
    scene.delete_claim("batch")?;
    wait_until_at_rest(scene, 60)
}

/// Until the batch got its first sandbox, all the younger claims waited, and never beside fewer than `warm` available ones. What
/// is bound in one plan arrives in any order, so a younger claim may be first if it leaves the batch all that it wants.
fn younger_claims_waited_beside_available_sandboxes(
    scene: &Scene,
    warm: i64,
    wanted: i64,
) -> Result<(), String> {
    let (mut fewest, mut waited, mut passed) = (i64::MAX, 0, false);
    let mut batch_has_begun = false;
    replay(&scene.history_up_to_now()?, |world, event| {
        let holds = |prefix: &str| {
            let mut of = world
                .claims
                .values()
                .filter(|claim| claim.name.starts_with(prefix));
            of.any(|claim| world.held_by(&claim.uid) > 0)
        };
        batch_has_begun |= holds("batch");
        let waiting = world
            .claims
            .values()
            .filter(|claim| claim.name.starts_with("younger"));
        if waiting.count() == 4 && !batch_has_begun {
            let pool = world.pools.get("python");
            let available = pool.map_or(0, |pool| world.available(pool, event.at));
            waited += 1;
            passed |= holds("younger") && available < wanted;
            fewest = fewest.min(available);
        }
    });
    wait::ensure(!passed && waited > 0 && fewest >= warm, || {
        format!(
            "over {waited} events before the batch, a younger claim took what the batch wants: {passed}; fewest available {fewest}"
        )
    })
}

pub fn two_hundred_sandboxes_in_one_claim(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool(
        "python",
        5,
        &json!({"scaleStrategy": {"maxUnavailable": 100}}),
    ))?;
    scene.create_claim("many", "python", &json!({"replicas": 200}))?;
    let many = super::in_phase(scene, "many", "Bound", 60)?;
    wait::ensure(sandboxes(&many) == 200, || {
        format!("{} are listed", sandboxes(&many))
    })?;
    wait_until_at_rest(scene, 60)
}

pub fn what_a_pool_says_for_its_claims_holds_where_they_say_nothing(scene: &Scene) -> Result<(), String> {
    let metadata = json!({"labels": {"team": "red"}, "annotations": {"example.com/from": "pool"}});
    let defaults = json!({"claimDefaults": {"onEmpty": "Fail", "podMetadata": metadata}});
    scene.create_pool(&pool("python", 1, &defaults))?;
    wait_until_at_rest(scene, 60)?;
    let own = json!({"podMetadata": {"labels": {"team": "blue"}}});
    scene.create_claim("first", "python", &own)?;
    let first = bound(scene, "first")?;
    let pod = scene.pod(text(&first, "/status/sandboxes/0/name"))?;
    let metadata = &pod["metadata"];
    let merged =
        metadata["labels"]["team"] == "blue" && metadata["annotations"]["example.com/from"] == "pool";
    wait::ensure(merged, || metadata.to_string())?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("second", "python", &json!({}))?;
    super::in_phase(scene, "second", "Failed", 30)?;
    scene.create_claim("third", "python", &json!({"onEmpty": "Create"}))?;
    bound(scene, "third").map(drop)
}

pub fn a_batch_given_up_leaves_nothing_behind(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 3, &json!({"capacity": {"maxTotal": 3}})))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("first", "python", &json!({}))?;
    bound(scene, "first")?;
    let batch = json!({"replicas": 3, "onEmpty": "Wait", "waitTimeoutSeconds": 3});
    scene.create_claim("batch", "python", &batch)?;
    super::in_phase(scene, "batch", "Failed", 30)?;
    scene.delete_claim("first")?;
    wait_until_at_rest(scene, 60)?;
    let none = |pod: &&Value| label(pod, "claim") == "batch";
    let pods = scene.pods()?;
    wait::ensure(pods.iter().find(none).is_none(), || {
        "the batch holds a pod".into()
    })
}
