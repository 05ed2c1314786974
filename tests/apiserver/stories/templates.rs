//! Checks pools that take their template from a PodTemplate.

use super::rollouts::everything_unclaimed_runs;
use super::{bound, pool_says, says};
use crate::api::TEMPLATES;
use crate::check::event::{condition, text};
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{NEW_IMAGE, OLD_IMAGE, pool, pool_of, sim, template, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

/// UIDs of all pods, sorted.
pub fn uids(scene: &Scene) -> Result<Vec<String>, String> {
    let uid = |pod: &Value| text(pod, "/metadata/uid").to_string();
    let mut all: Vec<_> = scene.pods()?.iter().map(uid).collect();
    all.sort();
    Ok(all)
}

/// Fails if, within `seconds`, the pool gives another reason for no progress, or a pod is created or deleted.
pub fn says_throughout(scene: &Scene, pool: &str, reason: &str, seconds: u64) -> Result<(), String> {
    let before = uids(scene)?;
    wait::throughout("the pool is left as it is", seconds, || {
        let (now, seen) = (uids(scene)?, scene.pool(pool)?);
        let said = condition(&seen, "Progressing");
        let same = said.is_some_and(|c| c["reason"] == reason && c["status"] == "False")
            && condition(&seen, "ReplicaFailure").is_none();
        wait::ensure(same && now == before, || {
            format!("{}; the pods were {before:?} and are {now:?}", seen["status"])
        })
    })
}

fn change(scene: &Scene, template: &str, patch: &Value) -> Result<(), String> {
    let changed = scene.lab.api.merge(TEMPLATES, &scene.namespace, template, patch);
    Ok(changed.map(drop)?)
}

/// A patch of the image, and of nothing else.
fn image(name: &str) -> Value {
    json!({"template": {"spec": {"containers": [{"name": "main", "image": name}]}}})
}

pub fn a_changed_template_rolls_every_pool_that_uses_it_and_no_other(scene: &Scene) -> Result<(), String> {
    for name in ["shared", "other"] {
        scene.create(TEMPLATES, &template(name, &json!({})))?;
    }
    for (of, name) in [("shared", "first"), ("shared", "second"), ("other", "third")] {
        scene.create_pool(&pool_of(of, name, 3, &json!({})))?;
    }
    scene.create_pool(&pool("fourth", 3, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let of = |name: &str| -> Result<Vec<String>, String> {
        let state = ClusterState::read(scene)?;
        let uid = |pod: &&Value| text(pod, "/metadata/uid").to_string();
        Ok(state.unclaimed(name).iter().map(uid).collect())
    };
    let before = [of("third")?, of("fourth")?];
    change(scene, "shared", &image(NEW_IMAGE))?;
    for name in ["first", "second"] {
        wait::until(&format!("pool {name} was rolled"), 60, || {
            everything_unclaimed_runs(scene, name, NEW_IMAGE)
        })?;
    }
    wait_until_at_rest(scene, 60)?;
    let after = [of("third")?, of("fourth")?];
    wait::ensure(before == after, || {
        format!("the other pools had {before:?} and have {after:?}")
    })?;
    // A change that reaches no pod rolls nothing.
    let all = uids(scene)?;
    change(scene, "shared", &json!({"metadata": {"labels": {"team": "red"}}}))?;
    wait::throughout("no pod comes or goes", 3, || {
        let now = uids(scene)?;
        wait::ensure(now == all, || format!("{all:?} became {now:?}"))
    })
}

pub fn a_missing_template_stops_the_pool_until_it_appears(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool_of("shared", "python", 3, &json!({})))?;
    scene.create_claim("run", "python", &json!({}))?;
    let messages = [
        pool_says(scene, "python", "Progressing", "TemplateNotFound")?,
        says(scene, "run", "Bound", "TemplateNotFound")?,
    ];
    for message in messages {
        let sentence = format!(
            "PodTemplate shared does not exist in namespace {}; create it",
            scene.namespace
        );
        wait::ensure(message.contains(&sentence), || format!("not: {message}"))?;
    }
    says_throughout(scene, "python", "TemplateNotFound", 3)?;
    wait::ensure(scene.pods()?.is_empty(), || {
        "there is nothing to make pods from".into()
    })?;
    scene.create(TEMPLATES, &template("shared", &json!({})))?;
    bound(scene, "run")?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", OLD_IMAGE)
}

pub fn a_template_with_labels_of_ours_stops_the_pool_until_it_is_mended(scene: &Scene) -> Result<(), String> {
    scene.create(TEMPLATES, &template("shared", &json!({})))?;
    scene.create_pool(&pool_of("shared", "python", 4, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let spoilt = json!({"template": {"metadata": {"labels": {"warmpool.dev/state": "warm"}}}});
    change(scene, "shared", &with(spoilt, &image(NEW_IMAGE)))?;
    let message = pool_says(scene, "python", "Progressing", "TemplateInvalid")?;
    let words = [
        "PodTemplate shared",
        "template.metadata.labels",
        "warmpool.dev/state",
        "remove it",
    ];
    wait::ensure(words.iter().all(|word| message.contains(word)), || {
        format!("not: {message}")
    })?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    says_throughout(scene, "python", "TemplateInvalid", 3)?;
    let fixed = json!({"template": {"metadata": {"labels": {"warmpool.dev/state": null}}}});
    change(scene, "shared", &fixed)?;
    wait::until("the pool had rolled", 60, || {
        everything_unclaimed_runs(scene, "python", NEW_IMAGE)
    })?;
    wait_until_at_rest(scene, 60)
}

pub fn a_template_deleted_in_mid_rollout_stops_the_rollout(scene: &Scene) -> Result<(), String> {
    let slow = sim(&[("ready-after", "400ms")]);
    scene.create(TEMPLATES, &template("shared", &slow))?;
    let up_to_half = json!({"updateStrategy": {"maxUnavailable": 1, "partition": 4}});
    scene.create_pool(&pool_of("shared", "python", 8, &up_to_half))?;
    wait_until_at_rest(scene, 60)?;
    change(scene, "shared", &image(NEW_IMAGE))?;
    let runs = |pod: &&&Value| text(pod, "/spec/containers/0/image") == NEW_IMAGE;
    let new = || -> Result<usize, String> {
        let state = ClusterState::read(scene)?;
        Ok(state.unclaimed("python").iter().filter(runs).count())
    };
    pool_says(scene, "python", "Progressing", "PartitionComplete")?;
    scene.lab.api.delete(TEMPLATES, &scene.namespace, "shared")?;
    pool_says(scene, "python", "Progressing", "TemplateNotFound")?;
    let to_the_end = json!({"updateStrategy": {"partition": 0}});
    scene.patch_pool("python", &json!({ "spec": to_the_end }))?;
    wait::until("the status was about the latest spec", 30, || {
        let pool = scene.pool("python")?;
        let observed = &pool["status"]["observedGeneration"];
        wait::ensure(*observed == pool["metadata"]["generation"], || {
            pool["status"].to_string()
        })
    })?;
    says_throughout(scene, "python", "TemplateNotFound", 3)?;
    let count = new()?;
    wait::ensure(count == 4, || {
        format!("{count} are new, and the rollout should stand in the middle")
    })?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    scene.create(TEMPLATES, &template("shared", &with(slow, &image(NEW_IMAGE))))?;
    wait::until("the rollout had gone on", 60, || {
        everything_unclaimed_runs(scene, "python", NEW_IMAGE)
    })?;
    wait_until_at_rest(scene, 60)
}
