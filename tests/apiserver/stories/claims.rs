//! Checks that a claim gets a sandbox, keeps it and releases it.

use super::{all_bound, bound, burst, entered, in_phase, lasted, late_in_a_second, names, sandbox, says};
use crate::api::{CLAIMS, PODS};
use crate::check::event::{items, text};
use crate::cluster_state::{is, label, wait_until_at_rest};
use crate::objects::{self, sim};
use crate::scene::Scene;
use crate::wait;
use jiff::Timestamp;
use serde_json::json;

pub fn a_claim_on_a_warm_pool_is_bound_to_a_warm_sandbox(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    for name in names("run", 4) {
        let warm: Vec<String> = scene
            .pods()?
            .iter()
            .map(|p| text(p, "/metadata/uid").to_string())
            .collect();
        scene.create_claim(&name, "python", &json!({}))?;
        scene.kubectl(
            &[
                "wait",
                "--for=condition=Ready",
                "--timeout=30s",
                "sandboxclaim",
                &name,
            ],
            None,
        )?;
        let claim = scene.claim(&name)?;
        let (pod, uid) = sandbox(&claim);
        wait::ensure(warm.contains(&uid), || {
            format!("{name} got {pod}, which was not warm before it came")
        })?;
        wait::ensure(claim["status"]["sandboxes"][0]["warm"] == true, || {
            claim["status"].to_string()
        })?;
        wait_until_at_rest(scene, 30)?;
    }
    let printed = scene.kubectl(&["get", "sandboxclaims", "run-0"], None)?;
    let (pod, _) = sandbox(&scene.claim("run-0")?);
    wait::ensure(
        printed.contains(&pod) && printed.contains("Bound") && printed.contains("10."),
        || printed.clone(),
    )
}

pub fn a_claim_on_an_empty_pool_gets_a_sandbox_made_for_it(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 0, &sim(&[("ready-after", "500ms")])))?;
    wait_until_at_rest(scene, 30)?;
    let claims = burst(scene, "run", 6, "python", &json!({}))?;
    for name in &claims {
        let status = bound(scene, name)?["status"].clone();
        wait::ensure(status["sandboxes"][0]["warm"] == false, || {
            format!("{name} was there before its sandbox, and says that it was warm: {status}")
        })?;
    }
    // Six claims, six sandboxes, and none besides.
    wait_until_at_rest(scene, 30)?;
    let made = super::pods_created(&scene.history());
    wait::ensure(made == 6, || format!("{made} pods were made for 6 claims"))
}

pub fn a_claim_that_only_waits_gets_no_sandbox_made_for_it(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 0, &json!({})))?;
    scene.create_claim("run", "python", &json!({"onEmpty": "Wait"}))?;
    says(scene, "run", "Bound", "NoneAvailable")?;
    wait::throughout("no pod is made for it", 3, || {
        let pods = scene.pods()?.len();
        wait::ensure(pods == 0, || format!("there are {pods}"))
    })?;
    scene.kubectl(&["scale", "pool", "python", "--replicas=1"], None)?;
    bound(scene, "run")?;
    wait_until_at_rest(scene, 30)
}

pub fn a_claim_that_must_not_wait_fails_on_an_empty_pool(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 0, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    scene.create_claim("unlucky", "python", &json!({"onEmpty": "Fail"}))?;
    in_phase(scene, "unlucky", "Failed", 30)?;
    says(scene, "unlucky", "Bound", "PoolEmpty")?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 2}}))?;
    wait_until_at_rest(scene, 30)?;
    scene.create_claim("lucky", "python", &json!({"onEmpty": "Fail"}))?;
    bound(scene, "lucky")?;
    wait_until_at_rest(scene, 30)?;
    in_phase(scene, "unlucky", "Failed", 0).map(drop)
}

pub fn a_claim_not_bound_in_time_fails_for_good(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 0, &json!({})))?;
    let mut began = Vec::new();
    for (name, pool) in [("late", "python"), ("lost", "nowhere")] {
        late_in_a_second();
        began.push((name, Timestamp::now()));
        let waits = json!({"onEmpty": "Wait", "waitTimeoutSeconds": 1});
        scene.create_claim(name, pool, &waits)?;
    }
    for (name, began) in began {
        in_phase(scene, name, "Failed", 30)?;
        says(scene, name, "Bound", "WaitTimeout")?;
        let failed = entered(&scene.history_up_to_now()?, name, "Failed");
        lasted(scene, name, Some(began), failed, 1.0)?;
    }
    scene.patch_pool("python", &json!({"spec": {"replicas": 1}}))?;
    wait_until_at_rest(scene, 30)
}

pub fn a_released_claim_takes_its_sandbox_along(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let claims = burst(scene, "run", 3, "python", &json!({}))?;
    all_bound(scene, &claims)?;
    wait_until_at_rest(scene, 30)?;
    wait::ensure(scene.pods()?.len() == 6, || {
        "three claimed and three warm should be six".into()
    })?;
    let (pod, _) = sandbox(&scene.claim("run-1")?);
    scene.delete_claim("run-1")?;
    wait_until_at_rest(scene, 30)?;
    scene.expect_no_pod(&pod)?;
    wait::ensure(scene.pods()?.len() == 5, || {
        "two claimed and three warm should be five".into()
    })?;
    wait::ensure(scene.pool("python")?["status"]["total"] == 5, || {
        "status.total should be 5".into()
    })?;
    let deletes = scene.writes(|w| w.verb == "delete")?;
    wait::ensure(deletes.is_empty(), || {
        format!("a release needs no write of the operator's: {deletes:?}")
    })
}

pub fn the_claims_metadata_comes_with_the_binding(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 1, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let extra = json!({"podMetadata": {"labels": {"team": "red"}, "annotations": {"example.com/run": "42"}}});
    scene.create_claim("run", "python", &extra)?;
    let (pod, _) = sandbox(&bound(scene, "run")?);
    let events = scene.history_up_to_now()?;
    let taken = events
        .iter()
        .find(|e| e.name() == pod && label(&e.object, "state") == "claimed");
    let metadata = taken
        .map(|e| &e.object["metadata"])
        .ok_or("the binding was not seen")?;
    let there = metadata["labels"]["team"] == "red" && metadata["annotations"]["example.com/run"] == "42";
    wait::ensure(there, || format!("the write that bound it left {metadata}"))
}

pub fn a_claim_for_a_missing_pool_waits_and_is_served_when_it_appears(scene: &Scene) -> Result<(), String> {
    scene.create_claim("early", "python", &json!({}))?;
    let message = says(scene, "early", "Bound", "PoolNotFound")?;
    wait::ensure(message.contains("python"), || {
        format!("the message should name the pool: {message}")
    })?;
    wait::ensure(is(&scene.claim("early")?, "Bound", "False"), || {
        "Bound should be False".into()
    })?;
    scene.create_pool(&objects::pool("python", 1, &json!({})))?;
    bound(scene, "early")?;
    wait_until_at_rest(scene, 30)
}

pub fn a_bound_claim_tells_what_becomes_of_its_sandbox(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    burst(scene, "run", 3, "python", &json!({}))?;
    let pod_of = |claim: &str| Ok::<_, String>(sandbox(&bound(scene, claim)?).0);
    let steer = |pod: &str, key: &str, value: &str| {
        let patch = json!({"metadata": {"annotations": {format!("sim.warmpool.dev/{key}"): value}}});
        scene.lab.api.merge(PODS, &scene.namespace, pod, &patch).map(drop)
    };
    let (shaky, broken, deleted) = (pod_of("run-0")?, pod_of("run-1")?, pod_of("run-2")?);
    steer(&shaky, "unready", "true")?;
    says(scene, "run-0", "Ready", "SandboxNotReady")?;
    steer(&shaky, "unready", "false")?;
    says(scene, "run-0", "Ready", "SandboxReady")?;
    steer(&broken, "fail-after", "0s")?;
    says(scene, "run-1", "Bound", "SandboxLost")?;
    scene.kubectl(&["delete", "pod", &deleted], None)?;
    says(scene, "run-2", "Bound", "SandboxLost")?;
    // The failed pod stays, so that its claimant can inspect it. Only the claim removes it.
    wait::throughout("the failed sandbox stays with its claim", 3, || {
        let pod = scene.pod(&broken)?;
        wait::ensure(label(&pod, "claim") == "run-1", || pod["metadata"].to_string())
    })?;
    scene
        .lab
        .api
        .delete_all(CLAIMS, &scene.namespace, &names("run", 3))?;
    wait_until_at_rest(scene, 30)
}

pub fn a_full_pool_says_exhausted_and_serves_on_as_claims_go(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 2, &json!({"capacity": {"maxTotal": 3}})))?;
    let claims = burst(scene, "run", 5, "python", &json!({}))?;
    super::pool_says(scene, "python", "Exhausted", "MaxTotalReached")?;
    let waiting = wait::until("three claims were bound and two waited", 30, || {
        let all = scene.claims()?;
        let waiting: Vec<String> = all
            .iter()
            .filter(|c| items(c, "/status/sandboxes").is_empty())
            .map(|c| text(c, "/metadata/name").to_string())
            .collect();
        wait::ensure(waiting.len() == 2, || format!("{waiting:?} wait"))?;
        Ok(waiting)
    })?;
    waiting
        .iter()
        .try_for_each(|claim| says(scene, claim, "Bound", "Exhausted").map(drop))?;
    for claim in claims.iter().filter(|c| !waiting.contains(c)).take(2) {
        scene.delete_claim(claim)?;
    }
    all_bound(scene, &waiting)?;
    claims.iter().try_for_each(|claim| scene.delete_claim(claim))?;
    wait_until_at_rest(scene, 30)
}
