//! Checks that the API server accepts every object of the chart.

use crate::cluster::repository;
use crate::plane::{CHART, Plane, SYSTEM, documents};
use crate::wait::{ensure, until};
use std::collections::BTreeSet;

/// Sets of values, and how many objects each renders.
const SETS: [(&str, usize); 5] = [
    ("default", 21),
    ("everything", 27),
    ("least", 1),
    ("one-namespace", 21),
    ("shards", 22),
];

pub fn every_object_is_accepted_under_every_set_of_values(plane: &Plane) -> Result<(), String> {
    plane.restricted()?;
    plane.team()?;
    let folder = repository().join("tests/chart/values");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    plane
        .cluster
        .kubectl(&["apply", "-f", &path("monitoring-crds.yaml")], None)?;
    let mut kinds = BTreeSet::new();
    for (set, count) in SETS {
        let values = path(&format!("{set}.yaml"));
        let rendered = plane.helm(&["template", "warmpool", CHART, "-n", SYSTEM, "-f", &values])?;
        let objects = documents(&rendered)?;
        ensure(objects.len() == count, || {
            let names: Vec<_> = objects
                .iter()
                .map(|o| format!("{} {}", o["kind"], o["metadata"]["name"]))
                .collect();
            format!("{set}: {} objects: {names:?}", objects.len())
        })?;
        // The pod of `helm test` is refused without its account.
        let accounts: String = objects
            .iter()
            .filter(|o| o["kind"] == "ServiceAccount")
            .map(|o| format!("{o}\n"))
            .collect();
        if !accounts.is_empty() {
            plane.cluster.kubectl(&["apply", "-f", "-"], Some(&accounts))?;
        }
        let check = [
            "apply",
            "--dry-run=server",
            "--validate=strict",
            "-o",
            "name",
            "-f",
            "-",
        ];
        // The server may take a moment to serve new types.
        let taken = until(&format!("the server took the set {set}"), 20, || {
            plane.cluster.kubectl(&check, Some(&rendered))
        })?;
        ensure(taken.lines().count() == count, || {
            format!("{set}: the server took {taken}")
        })?;
        if !accounts.is_empty() {
            plane.cluster.kubectl(&["delete", "-f", "-"], Some(&accounts))?;
        }
        kinds.extend(
            objects
                .iter()
                .filter_map(|o| o["kind"].as_str())
                .map(str::to_string),
        );
    }
    plane
        .cluster
        .delete_types(&["-f", &path("monitoring-crds.yaml")])?;
    let expected = templates()?;
    ensure(kinds == expected, || {
        format!("the sets render {kinds:?}, the templates hold {expected:?}")
    })
}

/// Every kind that a template of the chart can render.
fn templates() -> Result<BTreeSet<String>, String> {
    fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) -> Result<(), String> {
        for entry in std::fs::read_dir(folder).map_err(|e| e.to_string())?.flatten() {
            if entry.path().is_dir() {
                files(&entry.path(), found)?;
            } else if entry.path().extension().is_some_and(|e| e == "yaml") {
                found.push(entry.path());
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    files(&repository().join(CHART).join("templates"), &mut found)?;
    let mut kinds = BTreeSet::from(["CustomResourceDefinition".to_string()]);
    for file in found {
        let text = std::fs::read_to_string(&file).map_err(|e| e.to_string())?;
        for kind in text.lines().filter_map(|line| line.strip_prefix("kind: ")) {
            match kind {
                "{{ $scope }}" => kinds.extend(["Role", "ClusterRole"].map(String::from)),
                "{{ $scope }}Binding" => {
                    kinds.extend(["RoleBinding", "ClusterRoleBinding"].map(String::from))
                }
                kind => _ = kinds.insert(kind.to_string()),
            }
        }
    }
    Ok(kinds)
}
