//! Checks objects that were stored under looser CRDs.
//!
//! These tests change the CRDs, so each runs alone.

use crate::api::{CLAIMS, CRDS, POOLS};
use crate::check::event::{condition, text};
use crate::cluster_state::{controller, wait_until_at_rest};
use crate::objects::{claim, pool, with};
use crate::operator::Operator;
use crate::scene::Scene;
use crate::stories::{bound, pool_says, says};
use crate::wait;
use serde_json::{Value, json};

/// Where the true schema of pools has its replicas.
const REPLICAS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas";

/// Makes the schema take anything, in the scale subresource as well.
fn loosen(crd: &str) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema =
        json!({"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": anything});
    let scale = json!({"op": "remove", "path": "/spec/versions/0/subresources/scale"});
    if crd.starts_with("pools") {
        json!([schema, scale])
    } else {
        json!([schema])
    }
}

/// Lets `store` write what the schemas forbid, and puts the schemas back.
fn while_loose(scene: &Scene, store: impl Fn() -> Result<(), String>) -> Result<(), String> {
    scene.declare(|rules| rules.gaps = true);
    let names = ["pools.warmpool.dev", "sandboxclaims.warmpool.dev"];
    for name in names {
        scene.kubectl(
            &[
                "patch",
                "crd",
                name,
                "--type=json",
                "-p",
                &loosen(name).to_string(),
            ],
            None,
        )?;
    }
    let stored = wait::until("the loose schemas were in force", 30, store);
    scene.kubectl(
        &["apply", "--server-side", "--force-conflicts", "-k", "crds"],
        None,
    )?;
    wait::until("the schemas were back in force", 30, || {
        let bad = pool("probe", -1, &json!({}));
        let taken = scene.lab.api.try_create(POOLS, &scene.namespace, &bad).is_ok();
        let there = scene
            .lab
            .api
            .get(CRDS, "", names[0])?
            .is_some_and(|crd| crd.pointer(REPLICAS).is_some());
        wait::ensure(there && !taken, || "a pool of -1 is still taken".into())
    })?;
    stored
}

fn create_loosely(scene: &Scene) -> Result<(), String> {
    let budget = json!({"updateStrategy": {"maxUnavailable": "abc"}});
    let mut wordy = pool("wordy", 2, &json!({}));
    wordy["spec"]["replicas"] = json!("x");
    let mut empty = pool("empty", 2, &json!({}));
    empty["spec"] = json!({"replicas": 2});
    let spoilt = with(
        claim("spoilt", "good", &json!({})),
        &json!({"spec": {"priority": "high"}}),
    );
    for (resource, object) in [
        (POOLS, pool("vague", 2, &budget)),
        (POOLS, wordy),
        (POOLS, empty),
        (POOLS, pool("negative", -3, &json!({}))),
        (CLAIMS, spoilt),
        (CLAIMS, claim("on-vague", "vague", &json!({}))),
    ] {
        match scene.lab.api.create(resource, &scene.namespace, &object) {
            // An earlier round may have come half-way.
            Err(error) if error.code != 409 => return Err(error.to_string()),
            _ => {}
        }
    }
    Ok(())
}

fn others_are_served(scene: &Scene, round: &str) -> Result<(), String> {
    let name = format!("run-{round}");
    scene.create_claim(&name, "good", &json!({}))?;
    bound(scene, &name)?;
    wait::until("the good pool was full", 30, || {
        let status = scene.pool("good")?["status"].clone();
        wait::ensure(status["available"] == 3, || status.to_string())
    })
}

/// What has no readable spec is skipped, and the log says so.
fn is_mentioned(scene: &Scene, operator: &Operator, name: &str) -> Result<(), String> {
    let full = format!("{}/{name}", scene.namespace);
    wait::until(&format!("the log warned of {name}"), 30, || {
        let log = operator.text()?;
        let warned = log
            .lines()
            .any(|l| l.contains(&full) && (l.contains("WARN") || l.contains("ERROR")));
        wait::ensure(warned, || "no such line".into())
    })
}

pub fn objects_it_cannot_read_are_skipped_with_a_warning(scene: &Scene) -> Result<(), String> {
    let operator = scene.lab.start_operator()?;
    scene.create_pool(&pool("good", 3, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    while_loose(scene, || create_loosely(scene))?;
    others_are_served(scene, "before")?;
    // A start with such objects in the first list is the harder case.
    operator.stop()?;
    let operator = scene.lab.start_operator()?;
    others_are_served(scene, "after")?;
    for name in ["wordy", "empty"] {
        is_mentioned(scene, &operator, name)?;
    }
    wait::until("the pool whose budget is no number said so", 30, || {
        let pool = scene.pool("vague")?;
        let said = condition(&pool, "Progressing")
            .map(|c| text(c, "/message").to_string())
            .unwrap_or_default();
        wait::ensure(said.contains("maxUnavailable") && said.contains("abc"), || {
            pool["status"].to_string()
        })
    })?;
    says(scene, "on-vague", "Bound", "PoolInvalid")?;
    says(scene, "spoilt", "Bound", "InvalidSpec")?;
    // Nothing is made for what is not understood.
    let pods = scene.pods()?;
    let strays: Vec<_> = pods
        .iter()
        .filter(|p| p["metadata"]["labels"]["warmpool.dev/pool"] != "good")
        .collect();
    wait::ensure(strays.is_empty(), || {
        format!("pods of pools that are not understood: {strays:?}")
    })?;
    for (resource, name) in [
        (POOLS, "vague"),
        (POOLS, "wordy"),
        (POOLS, "empty"),
        (POOLS, "negative"),
        (CLAIMS, "spoilt"),
    ] {
        scene.lab.api.delete(resource, &scene.namespace, name)?;
    }
    scene.delete_claim("on-vague")?;
    wait_until_at_rest(scene, 30)?;
    operator.stop()
}

pub fn a_working_pool_spoilt_later_is_frozen_until_it_is_mended(scene: &Scene) -> Result<(), String> {
    let operator = scene.lab.start_operator()?;
    scene.create_pool(&pool("python", 4, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let names = |pods: Vec<Value>| -> Vec<String> {
        pods.iter()
            .map(|p| text(p, "/metadata/uid").to_string())
            .collect()
    };
    let before = names(scene.pods()?);
    while_loose(scene, || {
        let spoilt = json!({"spec": {
            "updateStrategy": {"maxUnavailable": "lots"},
            "template": {"spec": {"containers": [{"name": "main", "image": "sandbox:2"}]}},
        }});
        scene.patch_pool("python", &spoilt)
    })?;
    let said = what_is_wrong(scene, &operator, "python")?;
    wait::ensure(said.contains("maxUnavailable") && said.contains("lots"), || {
        said.clone()
    })?;
    wait::throughout("no sandbox is touched", 3, || {
        let now = names(scene.pods()?);
        wait::ensure(now == before, || format!("{before:?} became {now:?}"))
    })?;
    scene.patch_pool(
        "python",
        &json!({"spec": {"updateStrategy": {"maxUnavailable": 2}}}),
    )?;
    wait_until_at_rest(scene, 60)?;
    crate::stories::rollouts::everything_unclaimed_runs(scene, "python", "sandbox:2")?;
    operator.stop()
}

/// What the operator says is wrong with the spec of a pool: in its status, or else in the log. Kubernetes 1.30 takes no status
/// of an object whose spec breaks a rule, though the rule be newer than the object.
fn what_is_wrong(scene: &Scene, operator: &Operator, pool: &str) -> Result<String, String> {
    let status = json!({"status": {"replicas": scene.pool(pool)?["status"]["replicas"]}});
    let written = scene
        .lab
        .api
        .merge(POOLS, &scene.namespace, &format!("{pool}/status"), &status);
    match written {
        Ok(_) => pool_says(scene, pool, "Progressing", "InvalidSpec"),
        Err(error) if error.code == 422 => {
            let key = format!("pool={}/{pool}", scene.namespace);
            wait::until("the log said what is wrong", 30, || {
                let log = operator.text()?;
                let mut lines = log.lines().rev();
                let line =
                    lines.find(|line| line.contains("the pool is left as it is") && line.ends_with(&key));
                line.map(str::to_string).ok_or_else(|| operator.tail())
            })
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Fields of the strategy that are no partition, and the pool that gets each.
fn no_partitions() -> [(&'static str, Value, &'static str); 3] {
    [
        ("percent", json!("120%"), "120%"),
        ("negative", json!(-1), "-1"),
        ("word", json!("x"), "\"x\""),
    ]
}

fn pods_of(scene: &Scene, pool: &str) -> Result<Vec<String>, String> {
    let pods = scene.pods()?;
    let here = pods.iter().filter(|p| controller(p) == ("Pool", pool));
    Ok(here.map(|p| text(p, "/metadata/uid").to_string()).collect())
}

fn each_is_untouched(scene: &Scene, before: &[Vec<String>]) -> Result<(), String> {
    wait::throughout("no sandbox is touched", 3, || {
        for ((name, ..), before) in no_partitions().iter().zip(before) {
            let now = pods_of(scene, name)?;
            wait::ensure(now == *before, || format!("{name}: {before:?} became {now:?}"))?;
        }
        Ok(())
    })
}

pub fn a_stored_partition_that_is_none_stops_the_rollout_and_never_widens_it(
    scene: &Scene,
) -> Result<(), String> {
    let operator = scene.lab.start_operator()?;
    let half = json!({"updateStrategy": {"maxUnavailable": 1, "partition": 2}});
    for (name, ..) in no_partitions() {
        scene.create_pool(&pool(name, 4, &half))?;
    }
    wait_until_at_rest(scene, 30)?;
    for (name, ..) in no_partitions() {
        scene.roll_to(name, "sandbox:2")?;
        pool_says(scene, name, "Progressing", "PartitionComplete")?;
    }
    while_loose(scene, || {
        no_partitions().iter().try_for_each(|(name, partition, _)| {
            let spoilt = json!({"spec": {"updateStrategy": {"partition": partition}}});
            scene.patch_pool(name, &spoilt)
        })
    })?;
    for (name, _, shown) in no_partitions() {
        let message = what_is_wrong(scene, &operator, name)?;
        wait::ensure(message.contains("partition") && message.contains(shown), || {
            format!("pool {name} should name the partition {shown}: {message}")
        })?;
    }
    let names = no_partitions().map(|(name, ..)| name);
    let before: Vec<_> = names
        .iter()
        .map(|name| pods_of(scene, name))
        .collect::<Result<_, _>>()?;
    each_is_untouched(scene, &before)?;
    // Nor does an operator that finds them at its start take them for anything.
    operator.stop()?;
    let operator = scene.lab.start_operator()?;
    each_is_untouched(scene, &before)?;
    for name in names {
        scene.create_claim(&format!("on-{name}"), name, &json!({}))?;
        bound(scene, &format!("on-{name}"))?;
        scene.patch_pool(name, &json!({"spec": {"updateStrategy": {"partition": 0}}}))?;
    }
    wait_until_at_rest(scene, 60)?;
    for name in names {
        crate::stories::rollouts::everything_unclaimed_runs(scene, name, "sandbox:2")?;
    }
    operator.stop()
}
