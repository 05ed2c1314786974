//! The files in `crds/` and in the chart are the output of the binary. `make crds` writes them.

#![allow(clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

use serde_json::Value;
use std::path::Path;
use std::process::Command;

const FILES: [&str; 2] = ["warmpool.dev_pools.yaml", "warmpool.dev_sandboxclaims.yaml"];

fn warmpool(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_warmpool"))
        .args(arguments)
        .output()
        .expect("the binary starts");
    assert!(
        output.status.success(),
        "warmpool {arguments:?} ended with {}",
        output.status
    );
    String::from_utf8(output.stdout).expect("its output is text")
}

fn committed(folder: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn documents(text: &str) -> Vec<Value> {
    use serde::Deserialize;
    let each =
        serde_yaml_ng::Deserializer::from_str(text).map(|d| Value::deserialize(d).expect("valid YAML"));
    each.filter(|document| !document.is_null()).collect()
}

#[test]
fn the_crd_files_are_what_the_binary_writes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    warmpool(&["crds", "--out-dir", &folder.path().to_string_lossy()]);
    let mut written: Vec<String> = std::fs::read_dir(folder.path())
        .expect("the folder is there")
        .map(|entry| {
            entry
                .expect("a readable entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    written.sort();
    assert_eq!(written, FILES, "one file for each kind");
    for file in FILES {
        let fresh = std::fs::read_to_string(folder.path().join(file)).expect("a readable file");
        for place in ["crds", "charts/warmpool/files/crds"] {
            assert!(
                fresh == committed(place, file),
                "{place}/{file} is not what the types say: run `make crds` and commit it"
            );
        }
    }
}

#[test]
fn the_crds_printed_are_those_in_the_files() {
    let printed = documents(&warmpool(&["crds"]));
    let filed: Vec<Value> = FILES
        .iter()
        .flat_map(|file| documents(&committed("crds", file)))
        .collect();
    assert!(
        printed == filed,
        "`warmpool crds` prints something else than the files in crds/ hold"
    );
    let names: Vec<&Value> = printed.iter().map(|crd| &crd["metadata"]["name"]).collect();
    assert_eq!(names, ["pools.warmpool.dev", "sandboxclaims.warmpool.dev"]);
}

/// The fields of a spec that need no default: without them there is no pool or claim, or another field takes their place.
const WITHOUT_DEFAULT: &[&str] = &[
    "template",
    "templateRef",
    "templateRef.name",
    "poolRef",
    "poolRef.name",
    "poolSelector",
    "poolSelector.matchLabels",
    // Each of their fields has one.
    "disruption",
    "updateStrategy",
    // It is required.
    "autoscaling.maxReplicas",
];

/// Adds a sentence for each field of `schema` that `kubectl explain` explains badly.
fn check(schema: &Value, path: &str, faults: &mut Vec<String>) {
    let said = schema["description"].as_str().unwrap_or_default();
    let (first, values) = said.split_once("\nPossible values:").unwrap_or((said, ""));
    if said.is_empty() || first.contains('\n') {
        faults.push(format!("{path}: no description in one line: {said:?}"));
    }
    if !WITHOUT_DEFAULT.contains(&path) && path != "scaleStrategy" && !first.contains("Default: ") {
        faults.push(format!("{path}: no default: {first:?}"));
    }
    for value in schema["enum"].as_array().into_iter().flatten() {
        let line = format!("\n - `{}`: ", value.as_str().unwrap_or_default());
        if !values.contains(&line) {
            faults.push(format!("{path}: the value {value} is not explained"));
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if path != "template" {
            let nested = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            check(field, &nested, faults);
        }
    }
}

#[test]
fn every_field_of_a_spec_explains_its_default_and_each_of_its_values_in_a_line() {
    let mut faults = Vec::new();
    for file in FILES {
        let crd = documents(&committed("crds", file)).remove(0);
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        for (name, field) in spec["properties"].as_object().into_iter().flatten() {
            check(field, name, &mut faults);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
