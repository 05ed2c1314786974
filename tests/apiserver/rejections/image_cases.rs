//! Lists container images that the schema must reject.

use super::Case;
use super::pool_cases::{cel, container, keyword, with_pod};
use serde_json::json;

const IMAGE: &str =
    "image must be a container image reference like registry.example/team/name:tag (the name in lower case)";

pub fn cases() -> Vec<Case> {
    let long = format!("a/{}", "b".repeat(511));
    let mut all = Vec::new();
    for image in [
        "Python:3",
        "python:3:4",
        "-python",
        "python@sha256:12",
        "a b",
        "",
        "python:",
        "http://python",
    ] {
        let pod = json!({"containers": [container(image)]});
        all.push(cel(
            "spec.template.spec.containers[*].image",
            IMAGE,
            with_pod(pod),
        ));
    }
    let init = |image: &str| with_pod(json!({"initContainers": [{"name": "init", "image": image}]}));
    all.push(cel(
        "spec.template.spec.initContainers[*].image",
        IMAGE,
        init("Python:3"),
    ));
    let too_long = "may not be more than 512";
    let pod = json!({"containers": [container(&long)]});
    all.push(keyword(
        "spec.template.spec.containers[*].image",
        "maxLength",
        too_long,
        with_pod(pod),
    ));
    all.push(keyword(
        "spec.template.spec.initContainers[*].image",
        "maxLength",
        too_long,
        init(&long),
    ));
    all
}
