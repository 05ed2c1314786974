//! Checks that forged labels and statuses are ignored: the owner reference decides.

use super::{bound, in_phase, sandbox, says};
use crate::api::{CLAIMS, PODS};
use crate::check::event::text;
use crate::cluster_state::{ClusterState, is_terminating, label, wait_until_at_rest};
use crate::objects::pool;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

fn is_still_held(scene: &Scene, pod: &str, claim: &str) -> Result<(), String> {
    let pod = scene.pod(pod)?;
    wait::ensure(label(&pod, "claim") == claim && !is_terminating(&pod), || {
        pod["metadata"].to_string()
    })
}

/// Makes a claim on a pool that is not there, and writes into its status what another claim's says.
fn claim_with_forged_status(scene: &Scene, name: &str, more: &Value, status: &Value) -> Result<(), String> {
    scene.declare(|rules| _ = rules.forged.insert(name.into()));
    scene.create_claim(name, "later", more)?;
    says(scene, name, "Bound", "PoolNotFound")?;
    let path = format!("{name}/status");
    let forged = json!({ "status": status });
    Ok(scene
        .lab
        .api
        .merge(CLAIMS, &scene.namespace, &path, &forged)
        .map(drop)?)
}

pub fn a_status_that_names_anothers_sandbox_is_never_believed(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    scene.create_claim("mine", "python", &json!({}))?;
    let mine = bound(scene, "mine")?;
    let (pod, _) = sandbox(&mine);
    let mut expired = mine["status"].clone();
    expired["phase"] = json!("Expired");
    claim_with_forged_status(scene, "thief", &json!({}), &mine["status"])?;
    claim_with_forged_status(scene, "expired", &json!({}), &expired)?;
    claim_with_forged_status(
        scene,
        "patient",
        &json!({"onSandboxLost": "Replace"}),
        &mine["status"],
    )?;
    in_phase(scene, "thief", "Failed", 30)?;
    says(scene, "thief", "Bound", "SandboxLost")?;
    in_phase(scene, "patient", "Pending", 30)?;
    wait::throughout("the sandbox stays with its claim", 3, || {
        is_still_held(scene, &pod, "mine")
    })?;
    scene.create_pool(&pool("later", 1, &json!({})))?;
    let (own, _) = sandbox(&bound(scene, "patient")?);
    wait::ensure(own != pod, || format!("{own} was given to both"))?;
    for claim in ["thief", "expired", "patient"] {
        scene.delete_claim(claim)?;
    }
    wait_until_at_rest(scene, 30)?;
    is_still_held(scene, &pod, "mine")
}

pub fn a_sandbox_labelled_as_a_claims_is_not_the_claims(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    scene.create_claim("mine", "python", &json!({}))?;
    let mine = bound(scene, "mine")?;
    let state = ClusterState::read(scene)?;
    let victim = state.unclaimed("python").first().copied();
    let victim = victim.map(|p| text(p, "/metadata/name").to_string());
    let victim = victim.ok_or("no sandbox is warm")?;
    scene.declare(|rules| _ = rules.forged.insert(victim.clone()));
    let labelled = |state: Value, claim: Value, uid: Value| {
        let labels = json!({
            "warmpool.dev/state": state, "warmpool.dev/claim": claim, "warmpool.dev/claim-uid": uid,
        });
        let patch = json!({"metadata": {"labels": labels}});
        scene.lab.api.merge(PODS, &scene.namespace, &victim, &patch)
    };
    labelled(json!("claimed"), json!("mine"), mine["metadata"]["uid"].clone())?;
    wait::until("another was warm in its place", 30, || {
        let warm = ClusterState::read(scene)?.unclaimed("python").len();
        wait::ensure(warm == 3, || format!("{warm} are warm"))
    })?;
    let now = scene.claim("mine")?;
    wait::ensure(now["status"]["sandboxes"] == mine["status"]["sandboxes"], || {
        now["status"].to_string()
    })?;
    wait::until("the pool counted what its one claim owns", 30, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["claimed"] == 1 && status["available"] == 3, || {
            status.to_string()
        })
    })?;
    scene.delete_claim("mine")?;
    wait::throughout("the labelled sandbox outlives the claim", 3, || {
        let pod = scene.pod(&victim)?;
        wait::ensure(!is_terminating(&pod), || pod["metadata"].to_string())
    })?;
    // Labelled right again it is one too many, and one goes.
    labelled(json!("warm"), Value::Null, Value::Null)?;
    wait_until_at_rest(scene, 30)
}
