//! Checks what a user with rights on claims alone can reach.

use super::events::wait_for_events_in;
use super::{bound, in_phase, says};
use crate::api::{CLAIMS, NAMESPACES, PODS, POOLS};
use crate::check::event::text;
use crate::cluster::OPERATOR;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{claim, pool};
use crate::scene::{Scene, make_namespace};
use crate::wait;
use serde_json::{Value, json};

const TENANT: &str = "--as=tenant";

/// Grants the tenant the right to write claims, without their status.
fn grant_tenant_rights(scene: &Scene) -> Result<(), String> {
    scene.kubectl(
        &[
            "create",
            "role",
            "claimant",
            "--resource=sandboxclaims.warmpool.dev",
            "--verb=create,get,list,watch,update,patch,delete",
        ],
        None,
    )?;
    let to_tenant = [
        "create",
        "rolebinding",
        "claimant",
        "--role=claimant",
        "--user=tenant",
    ];
    scene.kubectl(&to_tenant, None).map(drop)
}

fn by_tenant(scene: &Scene, claim: &Value) -> Result<String, String> {
    scene.kubectl(&[TENANT, "create", "-f", "-"], Some(&claim.to_string()))
}

fn refused(answer: Result<String, String>, why: &str) -> Result<(), String> {
    match answer {
        Err(said) if said.contains(why) => Ok(()),
        other => Err(format!("that should be refused with {why:?}: {other:?}")),
    }
}

pub fn a_claim_reaches_no_pod_outside_the_pools_of_its_namespace(scene: &Scene) -> Result<(), String> {
    let (api, next_door) = (&scene.lab.api, "tenants-next-door");
    make_namespace(scene.lab, next_door)?;
    let mut theirs = pool("python", 2, &json!({}));
    theirs["metadata"]["labels"] = json!({"lang": "python"});
    let theirs = api.create(POOLS, next_door, &theirs)?;
    // The pool's events come after its status. A claim that is served at once has none, so a status is the last write.
    wait_for_events_in(api, next_door, &["NewRevision", "RolloutComplete"])?;
    api.create(CLAIMS, next_door, &claim("run", "python", &json!({})))?;
    let their_claim = wait::until("the pool next door was full and its claim bound", 30, || {
        let state = ClusterState::of(api, next_door)?;
        state.at_rest()?;
        let bound = state
            .claims
            .into_iter()
            .find(|claim| text(claim, "/status/phase") == "Bound");
        bound.ok_or_else(|| "no claim is bound".into())
    })?;
    let before = api.list(PODS, next_door)?;
    let since = jiff::Timestamp::now();
    grant_tenant_rights(scene)?;

    // A namespace cannot be named; where unknown fields are dropped, the pool is looked for at home.
    let mut elsewhere = claim("elsewhere", "python", &json!({}));
    elsewhere["spec"]["poolRef"]["namespace"] = json!(next_door);
    refused(
        by_tenant(scene, &elsewhere),
        "unknown field \"spec.poolRef.namespace\"",
    )?;
    let unchecked = [TENANT, "create", "--validate=ignore", "-f", "-"];
    scene.kubectl(&unchecked, Some(&elsewhere.to_string()))?;
    by_tenant(
        scene,
        &claim("a-path", &format!("{next_door}/python"), &json!({})),
    )?;
    let mut by_labels = claim("by-labels", "", &json!({}));
    by_labels["spec"] = json!({"poolSelector": {"matchLabels": {"lang": "python"}}});
    by_tenant(scene, &by_labels)?;
    // A claim that looks like one of theirs, as far as a claim can.
    let mut disguised = claim("run", "python", &json!({}));
    disguised["metadata"]["labels"] = before[0]["metadata"]["labels"].clone();
    disguised["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": "python",
        "uid": theirs["metadata"]["uid"], "controller": true,
    }]);
    disguised["status"] = their_claim["status"].clone();
    by_tenant(scene, &disguised)?;
    for claim in ["elsewhere", "a-path", "by-labels"] {
        let message = says(scene, claim, "Bound", "PoolNotFound")?;
        let leaks_pod = before.iter().any(|p| message.contains(text(p, "/metadata/name")));
        wait::ensure(!leaks_pod, || {
            format!("{claim} learns of a pod next door: {message}")
        })?;
    }
    // The garbage collector takes what names an owner that its namespace does not have.
    scene.kubectl(&[TENANT, "delete", "sandboxclaims", "--all"], None)?;

    let after = api.list(PODS, next_door)?;
    wait::ensure(before == after, || format!("{before:?}\nbecame\n{after:?}"))?;
    let audit = scene.lab.cluster.audit(next_door)?;
    let written = audit.iter().find(|w| w.user == OPERATOR && w.at > since);
    wait::ensure(written.is_none(), || format!("the operator wrote {written:?}"))?;
    Ok(api.delete(NAMESPACES, "", next_door)?)
}

pub fn metadata_that_no_pod_can_have_fails_its_claim_alone(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    grant_tenant_rights(scene)?;
    let labels = json!({"podMetadata": {"labels": {"warmpool.dev/state": "warm"}}});
    refused(
        by_tenant(scene, &claim("forged", "python", &labels)),
        "must not hold keys under warmpool.dev/",
    )?;
    // More than a pod can hold, in values that are each fine.
    let chapter = "x".repeat(10_000);
    let book: serde_json::Map<_, _> = (0..30)
        .map(|n| (format!("chapter-{n}"), json!(chapter)))
        .collect();
    let heavy = json!({"podMetadata": {"annotations": book}, "priority": 10});
    by_tenant(scene, &claim("heavy", "python", &heavy))?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    let failed = in_phase(scene, "heavy", "Failed", 15)?;
    let reason = text(&failed, "/status/conditions/0/reason");
    let message = text(&failed, "/status/conditions/0/message");
    wait::ensure(
        reason == "InvalidSpec" && message.contains("metadata.annotations"),
        || failed["status"].to_string(),
    )?;
    wait_until_at_rest(scene, 30)
}

pub fn a_claim_made_anew_under_its_name_gets_another_sandbox(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    grant_tenant_rights(scene)?;
    let mut seen = Vec::new();
    for _ in 0..3 {
        by_tenant(
            scene,
            &claim("run", "python", &json!({"releasePolicy": "Retain"})),
        )?;
        let (_, uid) = super::sandbox(&bound(scene, "run")?);
        wait::ensure(!seen.contains(&uid), || {
            format!("{uid} was given twice: {seen:?}")
        })?;
        seen.push(uid);
        scene.kubectl(&[TENANT, "delete", "sandboxclaim", "run"], None)?;
    }
    wait_until_at_rest(scene, 30)
}

pub fn metadata_that_cannot_be_read_stops_no_operator_that_runs_or_starts(
    scene: &Scene,
) -> Result<(), String> {
    let operator = scene.lab.start_operator()?;
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    grant_tenant_rights(scene)?;
    by_tenant(scene, &claim("odd", "python", &json!({})))?;
    bound(scene, "odd")?;
    // The API server takes a time that most clients cannot hold.
    let mut odd = scene.claim("odd")?;
    odd["metadata"]["managedFields"] = json!([{
        "manager": "tenant", "operation": "Update", "apiVersion": "warmpool.dev/v1alpha1",
        "time": "9999-12-31T23:59:59Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:poolRef": {}}},
    }]);
    scene.kubectl(&[TENANT, "replace", "-f", "-"], Some(&odd.to_string()))?;
    let kept = scene.claim("odd")?["metadata"]["managedFields"].to_string();
    wait::ensure(kept.contains("9999"), || format!("the API server keeps {kept}"))?;
    // Of what a template's metadata holds only labels and annotations are checked.
    let deep = format!("{}1{}", r#"{"a":"#.repeat(300), "}".repeat(300));
    let nested = format!(
        r#"{{"apiVersion": "v1", "kind": "PodTemplate", "metadata": {{"name": "odd"}}, "template": {{
            "metadata": {{"managedFields": [{{"fieldsType": "FieldsV1", "fieldsV1": {deep}}}]}},
            "spec": {{"containers": [{{"name": "main", "image": "sandbox:1"}}]}}
        }}}}"#
    );
    scene.kubectl(&["create", "--validate=ignore", "-f", "-"], Some(&nested))?;
    // The API server does not check that metadata is valid UTF-8 either. No client would send such bytes, so kubectl
    // sends them raw.
    let bytes = b"{\"apiVersion\": \"v1\", \"kind\": \"PodTemplate\", \"metadata\": {\"name\": \"bytes\"}, \"template\": {
        \"metadata\": {\"managedFields\": [{\"fieldsType\": \"FieldsV1\", \"fieldsV1\": {\"f:\xff\": {}}}]},
        \"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"sandbox:1\"}]}
    }}";
    let file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    std::fs::write(file.path(), bytes).map_err(|e| e.to_string())?;
    let path = format!("/api/v1/namespaces/{}/podtemplates", scene.namespace);
    let from = file.path().to_string_lossy();
    scene.kubectl(&["create", "--raw", &path, "-f", &from], None)?;
    // The controllers of StatefulSets and DaemonSets store their templates, with the labels of these.
    let revision = format!(
        r#"{{"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "metadata": {{
            "name": "odd", "labels": {{"warmpool.dev/pool": "python", "warmpool.dev/revision": "odd"}}
        }}, "data": {{"spec": {{"template": {{"metadata": {{"managedFields": [{{"fieldsV1": {deep}}}]}}}}}}}}}}"#
    );
    scene.kubectl(&["create", "--validate=ignore", "-f", "-"], Some(&revision))?;
    scene.create_claim("while-it-runs", "python", &json!({}))?;
    bound(scene, "while-it-runs")?;
    operator.stop()?;
    let successor = scene.lab.start_operator()?;
    scene.create_claim("after-a-start", "python", &json!({}))?;
    bound(scene, "after-a-start")?;
    wait_until_at_rest(scene, 30)?;
    successor.stop()
}
