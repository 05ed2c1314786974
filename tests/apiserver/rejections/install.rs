//! Checks that the CRDs, the samples and server-side apply work.

use crate::cluster::repository;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::pool;
use crate::scene::Scene;
use crate::wait;
use serde_json::json;
use std::fs;

/// Plain `kubectl apply` keeps the object in an annotation, and annotations end here.
const ANNOTATIONS_LIMIT: usize = 262_144;

pub fn the_crd_files_take_plain_kubectl_apply(scene: &Scene) -> Result<(), String> {
    let mut files = 0;
    for entry in fs::read_dir(repository().join("crds"))
        .map_err(|e| e.to_string())?
        .flatten()
    {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "yaml") {
            let size = fs::metadata(&path).map_err(|e| e.to_string())?.len();
            wait::ensure(size < ANNOTATIONS_LIMIT as u64, || {
                format!("{} has {size} bytes", path.display())
            })?;
            scene
                .lab
                .cluster
                .kubectl(&["apply", "-f", &path.to_string_lossy()], None)?;
            files += 1;
        }
    }
    wait::ensure(files == 2, || format!("crds/ has {files} CRD files"))
}

pub fn every_sample_is_accepted(scene: &Scene) -> Result<(), String> {
    let mut samples = 0;
    for entry in fs::read_dir(repository().join("config/samples"))
        .map_err(|e| e.to_string())?
        .flatten()
    {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".yaml") && name != "kustomization.yaml" {
            scene.kubectl(
                &[
                    "apply",
                    "--dry-run=server",
                    "--validate=strict",
                    "-f",
                    &path.to_string_lossy(),
                ],
                None,
            )?;
            samples += 1;
        }
    }
    wait::ensure(samples >= 2, || format!("config/samples has {samples} samples"))?;
    scene
        .kubectl(&["apply", "--dry-run=server", "-k", "config/samples"], None)
        .map(drop)
}

pub fn kubectl_explain_reads_like_documentation(scene: &Scene) -> Result<(), String> {
    let explained = |path: &str, words: &[&str]| {
        let text = scene.kubectl(&["explain", path], None)?;
        let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let missing = words.iter().find(|w| !flowing.contains(**w));
        missing.map_or(Ok(()), |w| {
            Err(format!("kubectl explain {path} has no {w:?}:\n{text}"))
        })
    };
    explained(
        "pool.spec.updateStrategy",
        &[
            "How a changed template replaces",
            "maxUnavailable",
            "type",
            "RollingUpdate",
            "rounded down",
        ],
    )?;
    explained(
        "pool.spec.replicas",
        &["Number of unclaimed sandboxes to keep warm"],
    )?;
    explained(
        "pool.spec.capacity",
        &["maxTotal", "minTotal", "maxWarm", "never exceed this number"],
    )?;
    explained("pool.spec.template", &["The pod to warm"])?;
    explained(
        "pool.spec.templateRef",
        &[
            "A PodTemplate (core/v1) in the namespace of the pool",
            "in place of `template`",
            "Name of the PodTemplate",
        ],
    )?;
    explained(
        "sandboxclaim.spec.onEmpty",
        &[
            "What happens when no sandbox is available",
            "Create",
            "Wait",
            "Fail",
        ],
    )?;
    explained("sandboxclaim.status", &["conditions", "sandboxes", "waitSeconds"])
}

pub fn a_misspelt_field_is_refused_by_kubectl(scene: &Scene) -> Result<(), String> {
    let typo = pool("python", 1, &json!({"updateStrategy": {"maxUnavailabel": 1}})).to_string();
    let name = pool("python", 1, &json!({"template": {"metadata": {"name": "mine"}}})).to_string();
    for (object, field) in [
        (typo, "spec.updateStrategy.maxUnavailabel"),
        (name, "spec.template.metadata.name"),
    ] {
        let said = scene
            .kubectl(&["create", "-f", "-"], Some(&object))
            .map_or_else(|e| e, |_| "nothing".into());
        wait::ensure(said.contains(&format!("unknown field \"{field}\"")), || {
            format!("kubectl said {said}")
        })?;
    }
    Ok(())
}

pub fn two_appliers_can_own_parts_of_one_template(scene: &Scene) -> Result<(), String> {
    let apply = |manager: &str, object: &serde_json::Value| {
        let flag = format!("--field-manager={manager}");
        scene.kubectl(
            &["apply", "--server-side", &flag, "-f", "-"],
            Some(&object.to_string()),
        )
    };
    let pod = json!({"template": {"spec": {"containers": [
        {"name": "main", "image": "sandbox:1", "env": [{"name": "MODE", "value": "fast"}]},
        {"name": "side", "image": "proxy:1"},
    ]}}});
    apply("team", &pool("python", 2, &pod))?;
    wait_until_at_rest(scene, 30)?;
    // An image updater knows the name of a container and its image, and nothing else.
    let update = json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "metadata": {"name": "python"},
        "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "proxy:2"}]}}},
    });
    let conflict = apply("updater", &update).err().unwrap_or_default();
    wait::ensure(conflict.contains("conflict"), || {
        format!("the image is the team's, but kubectl said {conflict:?}")
    })?;
    let flags = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=updater",
        "-f",
        "-",
    ];
    scene.kubectl(&flags, Some(&update.to_string()))?;
    let containers = scene.pool("python")?["spec"]["template"]["spec"]["containers"].clone();
    let whole = containers[0]["image"] == "sandbox:1"
        && containers[0]["env"][0]["value"] == "fast"
        && containers[1] == json!({"name": "side", "image": "proxy:2"});
    wait::ensure(whole, || format!("the containers are {containers}"))?;
    wait_until_at_rest(scene, 30)
}
