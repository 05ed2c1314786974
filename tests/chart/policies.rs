//! Checks the chart's admission policies.

use crate::api::{CLAIMS, NAMESPACES, PODS, POOLS, Resource};
use crate::objects::{claim, pool};
use crate::plane::{CHART, Plane, TEAM};
use crate::wait::{ensure, until};
use serde_json::{Value, json};

const PROTECTED: &str = "warmpool.dev/delete-protection";

fn refused(answer: Result<Value, crate::api::ApiError>, words: &[&str]) -> Result<(), String> {
    let said = match answer {
        Ok(object) => return Err(format!("it was not refused: {object}")),
        Err(error) => error.message,
    };
    let missing = words.iter().find(|w| !said.contains(**w));
    missing.map_or(Ok(()), |w| Err(format!("the refusal has no {w:?}: {said}")))
}

/// Deletes the pool, as kubectl would.
fn delete(plane: &Plane, name: &str) -> Result<Value, crate::api::ApiError> {
    plane.api.delete(POOLS, TEAM, name).map(|()| json!(null))
}

pub fn a_protected_pool_with_claims_cannot_be_deleted(plane: &Plane) -> Result<(), String> {
    plane.team()?;
    plane.install(CHART, &["--create-namespace"])?;
    let operator = plane.operator()?;
    for (name, labels) in [
        ("kept", json!({PROTECTED: "true"})),
        ("open", json!({})),
        ("off", json!({PROTECTED: "false"})),
    ] {
        let mut object = pool(name, 1, &json!({"capacity": {"maxTotal": 1}}));
        object["metadata"]["labels"] = labels;
        plane.create(POOLS, &object)?;
        plane.create(CLAIMS, &claim(&format!("holds-{name}"), name, &json!({})))?;
        plane.create(CLAIMS, &claim(&format!("waits-{name}"), name, &json!({})))?;
        until("one claim held its sandbox and one waited", 30, || {
            let status = plane.get(POOLS, TEAM, name)?["status"].clone();
            ensure(status["claimed"] == 1 && status["pendingClaims"] == 1, || {
                status.to_string()
            })
        })?;
    }
    until("the policy was at work", 30, || {
        refused(
            delete_dry(plane, "kept"),
            &[
                "pool kept",
                PROTECTED,
                "1 claimed sandboxes and 1 waiting claims",
                "delete the claims first",
            ],
        )
    })?;
    let everything = plane
        .cluster
        .kubectl(&["-n", TEAM, "delete", "pools", "--all", "--wait=false"], None);
    let said = everything.err().unwrap_or_default();
    ensure(said.contains("pool kept has the label"), || {
        format!("kubectl said {said:?}")
    })?;
    for gone in ["open", "off"] {
        ensure(plane.api.get(POOLS, TEAM, gone)?.is_none(), || {
            format!("pool {gone} is still there")
        })?;
    }

    for each in ["holds-kept", "waits-kept"] {
        refused(delete(plane, "kept"), &["pool kept has the label"])?;
        plane.api.delete(CLAIMS, TEAM, each)?;
    }
    until("a pool without claims could be deleted", 30, || {
        Ok(delete(plane, "kept").map(drop)?)
    })?;

    // A namespace takes its claims along, and is not held up.
    let mut object = pool("last", 1, &json!({}));
    object["metadata"]["labels"] = json!({PROTECTED: "true"});
    plane.create(POOLS, &object)?;
    plane.create(CLAIMS, &claim("holds-last", "last", &json!({})))?;
    plane.sandbox_of("holds-last")?;
    until("its claim was counted", 30, || {
        refused(delete_dry(plane, "last"), &["1 claimed sandboxes"])
    })?;
    operator.stop()?;
    plane.api.delete(NAMESPACES, "", TEAM)?;
    until("the namespace was gone", 60, || {
        let left = plane.api.get(NAMESPACES, "", TEAM)?;
        ensure(left.is_none(), || left.unwrap_or_default()["status"].to_string())
    })
}

/// Asks whether the pool could be deleted.
fn delete_dry(plane: &Plane, name: &str) -> Result<Value, crate::api::ApiError> {
    plane
        .api
        .delete(POOLS, TEAM, &format!("{name}?dryRun=All"))
        .map(|()| json!(null))
}

pub fn a_claim_cannot_leave_its_sandboxes_behind(plane: &Plane) -> Result<(), String> {
    plane.team()?;
    plane.install(CHART, &["--create-namespace"])?;
    let operator = plane.operator()?;
    plane.create(POOLS, &pool("python", 2, &json!({})))?;
    for name in ["first", "second", "third"] {
        plane.create(CLAIMS, &claim(name, "python", &json!({})))?;
        plane.sandbox_of(name)?;
    }
    let delete = |how: &str| {
        let deleted = plane.api.delete(CLAIMS, TEAM, &format!("first?{how}"));
        deleted.map(|()| json!(null))
    };
    let why = [
        "claim first cannot leave its sandboxes behind",
        "--cascade=orphan",
    ];
    until("the policy was at work", 30, || {
        refused(delete("propagationPolicy=Orphan&dryRun=All"), &why)
    })?;
    refused(delete("propagationPolicy=Orphan"), &why)?;
    refused(delete("orphanDependents=true"), &why)?;
    let finalizers = json!({"metadata": {"finalizers": ["orphan"]}});
    refused(
        plane.api.merge(CLAIMS, TEAM, "first", &finalizers),
        &["take orphan out of metadata.finalizers"],
    )?;
    let mut born_with = claim("fourth", "python", &json!({}));
    born_with["metadata"]["finalizers"] = json!(["orphan"]);
    refused(
        plane.api.create(CLAIMS, TEAM, &born_with),
        &["take orphan out of metadata.finalizers"],
    )?;
    let kubectl = |arguments: &[&str]| {
        let all = [&["-n", TEAM, "delete", "sandboxclaims"], arguments].concat();
        plane.cluster.kubectl(&all, None)
    };
    let said = kubectl(&["--all", "--cascade=orphan"]).err().unwrap_or_default();
    ensure(said.contains("cannot leave its sandboxes behind"), || {
        format!("kubectl said {said:?}")
    })?;

    // Any other deletion passes, and takes the sandbox along.
    let sandboxes = ["first", "second", "third"].map(|claim| plane.sandbox_of(claim));
    plane.api.delete(CLAIMS, TEAM, "first")?;
    kubectl(&["second"])?;
    kubectl(&["third", "--cascade=foreground"])?;
    for sandbox in sandboxes {
        let sandbox = sandbox?;
        let name = sandbox["name"].as_str().unwrap_or_default();
        until("the garbage collector took the sandbox", 60, || {
            let left = plane.api.get(PODS, TEAM, name)?;
            ensure(left.is_none(), || format!("{name} is still there"))
        })?;
    }
    operator.stop()
}

pub fn nobody_but_the_operator_writes_the_labels_of_sandboxes(plane: &Plane) -> Result<(), String> {
    const WHY: &str = "only the operator writes the labels of a sandbox";
    plane.team()?;
    plane.install(CHART, &["--create-namespace"])?;
    let operator = plane.operator()?;
    plane.create(POOLS, &pool("python", 2, &json!({})))?;
    plane.available("python", 2)?;
    let pods = plane.api.list(PODS, TEAM)?;
    let name = pods[0]["metadata"]["name"].as_str().unwrap_or_default();
    let labels = |at: &str, labels: Value| {
        plane.api.merge(
            PODS,
            TEAM,
            &format!("{name}{at}"),
            &json!({"metadata": {"labels": labels}}),
        )
    };

    until("the policy was at work", 30, || {
        refused(
            labels("", json!({"warmpool.dev/state": "claimed"})),
            &[WHY, "warmpool.dev/state may not be"],
        )
    })?;
    refused(
        labels("", json!({"warmpool.dev/pool": null})),
        &[WHY, "warmpool.dev/pool may not be"],
    )?;
    refused(
        labels("", json!({"warmpool.dev/claim": "mine"})),
        &[WHY, "warmpool.dev/claim may not be"],
    )?;
    refused(
        labels("/status", json!({"warmpool.dev/revision": "0"})),
        &[WHY, "warmpool.dev/revision may not be"],
    )?;
    // An operator on somebody's machine, with the rights of that person, finds out what it needs.
    let elsewhere = [
        "-n",
        TEAM,
        "label",
        "pod",
        name,
        "warmpool.dev/state=claimed",
        "--overwrite",
    ];
    let elsewhere = [&elsewhere[..], &["--field-manager=warmpool"]].concat();
    let said = plane.cluster.kubectl(&elsewhere, None).err().unwrap_or_default();
    ensure(
        said.contains("kubectl -n warmpool-system create token warmpool"),
        || format!("the policy says {said:?}"),
    )?;
    let forged = |kind: Resource, name: &str, more: Value| {
        let mut object = json!({"metadata": {"name": name, "labels": {"warmpool.dev/pool": "python"}}});
        for (key, value) in more.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        plane.api.create(kind, TEAM, &object)
    };
    let spec = json!({"spec": {"containers": [{"name": "main", "image": "any"}], "schedulerName": "nobody"}});
    refused(forged(PODS, "forged", spec.clone()), &[WHY])?;
    plane.api.create(
        PODS,
        TEAM,
        &json!({"metadata": {"name": "plain"}, "spec": spec["spec"]}),
    )?;
    let target = json!({"target": {"kind": "Node", "name": "node-0"}});
    refused(forged(Resource("/api/v1", "bindings"), "plain", target), &[WHY])?;

    // What is not ours, and what asks for a replacement, may be written by anybody.
    let changed = labels(
        "",
        json!({"example.com/team": "red", "warmpool.dev/evict": "true"}),
    )?;
    ensure(changed["metadata"]["labels"]["example.com/team"] == "red", || {
        changed["metadata"].to_string()
    })?;
    until("the evicted sandbox was replaced", 30, || {
        let left = plane.api.get(PODS, TEAM, name)?;
        ensure(left.is_none(), || "it is still there".into())
    })?;
    // The operator claims, the node reports, the garbage collector and the namespace's end clear away.
    plane.create(CLAIMS, &claim("run-1", "python", &json!({})))?;
    let sandbox = plane.sandbox_of("run-1")?;
    plane.available("python", 2)?;
    plane.api.delete(CLAIMS, TEAM, "run-1")?;
    // It looks for new types every 30 s, and claims are new here.
    until("the garbage collector took the sandbox", 60, || {
        let left = plane
            .api
            .get(PODS, TEAM, sandbox["name"].as_str().unwrap_or_default())?;
        ensure(left.is_none(), || "it is still there".into())
    })?;
    operator.stop()
}
