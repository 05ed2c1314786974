//! Has the API server judge each object that README and docs show, those of other projects by the CRDs of these.

use crate::cluster::{output_of, repository};
use crate::scene::Scene;
use crate::wait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The groups of other projects.
const OTHERS: [&str; 3] = ["keda.sh/", "argoproj.io/", "kustomize.toolkit.fluxcd.io/"];

/// The CRDs of other projects. They are there as long as this is.
struct OtherCrds<'a> {
    scene: &'a Scene,
    folder: String,
}

impl<'a> OtherCrds<'a> {
    fn install(scene: &'a Scene) -> Result<Self, String> {
        let printed = output_of(Command::new(repository().join("e2e/other_crds.sh")), None)?;
        let folder = printed.trim().to_string();
        let crds = Self { scene, folder };
        scene.kubectl(&["apply", "--server-side", "-f", &crds.folder], None)?;
        let established = ["wait", "--for=condition=Established", "--timeout=30s", "-f"];
        // kubectl fails on a CRD that has no status yet.
        wait::until("the CRDs of other projects were established", 60, || {
            let waited = scene.kubectl(&[&established[..], &[&crds.folder]].concat(), None);
            waited.map(drop)
        })?;
        Ok(crds)
    }
}

impl Drop for OtherCrds<'_> {
    fn drop(&mut self) {
        _ = self
            .scene
            .kubectl(&["delete", "--ignore-not-found", "-f", &self.folder], None);
    }
}

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
    let _others = OtherCrds::install(scene)?;
    let (mut judged, mut of_others) = (0, BTreeSet::<&str>::new());
    for page in found {
        let text = fs::read_to_string(&page).map_err(|e| e.to_string())?;
        for block in blocks(&text) {
            for object in objects(block).map_err(|e| format!("{}: {e}:\n{block}", page.display()))? {
                let group = object["apiVersion"].as_str().unwrap_or_default();
                of_others.extend(OTHERS.into_iter().filter(|prefix| group.starts_with(prefix)));
                let check = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
                scene
                    .kubectl(&check, Some(&object.to_string()))
                    .map_err(|e| format!("{}: {e}:\n{block}", page.display()))?;
                judged += 1;
            }
        }
    }
    wait::ensure(judged >= 15 && of_others.len() == OTHERS.len(), || {
        format!("{judged} objects were judged, of other projects those of {of_others:?}")
    })
}
