//! Has the API server judge each object that README and docs show.

use crate::cluster::repository;
use crate::scene::Scene;
use crate::wait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Groups of other projects, whose kinds this API server does not have: the page only has to be YAML.
const FOREIGN: [&str; 3] = ["keda.sh/", "argoproj.io/", "kustomize.toolkit.fluxcd.io/"];

fn pages(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|e| e.to_string())?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            pages(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// The YAML of a page: its YAML blocks, and what its commands read from a heredoc.
fn blocks(text: &str) -> Vec<&str> {
    let fenced = text
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let given = text
        .split("<<EOF\n")
        .skip(1)
        .filter_map(|rest| rest.split("\nEOF").next());
    fenced.chain(given).collect()
}

/// The objects of a block. A part of a spec is taken as a pool's.
fn objects(block: &str) -> Result<Vec<Value>, String> {
    let each = serde_yaml_ng::Deserializer::from_str(block).map(Value::deserialize);
    let mut objects: Vec<Value> = each.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    for object in &mut objects {
        if object["apiVersion"].is_null() {
            object["apiVersion"] = json!("warmpool.dev/v1alpha1");
            object["kind"] = json!("Pool");
            object["metadata"] = json!({"name": "part"});
            if object["spec"]["template"].is_null() && object["spec"]["templateRef"].is_null() {
                object["spec"]["templateRef"] = json!({"name": "part"});
            }
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
    }
    Ok(objects)
}

pub fn every_object_of_readme_and_docs_is_accepted(scene: &Scene) -> Result<(), String> {
    let mut found = ["README.md", "charts/warmpool/README.md", "SECURITY.md"]
        .map(|page| repository().join(page))
        .to_vec();
    pages(&repository().join("docs"), &mut found)?;
    let (mut judged, mut foreign) = (0, 0);
    for page in found {
        let text = fs::read_to_string(&page).map_err(|e| e.to_string())?;
        for block in blocks(&text) {
            for object in objects(block).map_err(|e| format!("{}: {e}:\n{block}", page.display()))? {
                let group = object["apiVersion"].as_str().unwrap_or_default();
                if FOREIGN.iter().any(|prefix| group.starts_with(prefix)) {
                    foreign += 1;
                    continue;
                }
                let check = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
                scene
                    .kubectl(&check, Some(&object.to_string()))
                    .map_err(|e| format!("{}: {e}:\n{block}", page.display()))?;
                judged += 1;
            }
        }
    }
    wait::ensure(judged >= 15 && foreign >= 3, || {
        format!("{judged} objects were judged and {foreign} left to other projects")
    })
}
