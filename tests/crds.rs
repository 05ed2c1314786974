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
