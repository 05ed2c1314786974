//! Checks the sentence and the exit code of calls that cannot succeed.

use crate::command_line::{printed, run_as};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::io::pipe;
use std::process::Command;
use warmpool::cache::index::Index;
use warmpool::cli::kubectl::pool_report::report;
use warmpool::model::Key;

#[test]
fn a_wrong_kubeconfig_is_named_with_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("garbled"), "clusters: {").unwrap();
    let config = "{apiVersion: v1, kind: Config, clusters: [], contexts: [], users: []}";
    std::fs::write(path("empty"), config).unwrap();
    let rows: [(&[&str], &[&str]); 3] = [
        (&["--kubeconfig", &path("missing")], &["missing"]),
        (
            &["--kubeconfig", &path("garbled")],
            &["parse", "line 1 column 11"],
        ),
        (&["--kubeconfig", &path("empty"), "--context", "prod"], &["prod"]),
    ];
    for (flags, named) in rows {
        for verb in [
            &["top"][..],
            &["why", "run-42"],
            &["claim", "python"],
            &["rollout", "status", "python"],
        ] {
            let output = run_as("kubectl-warmpool", &[verb, flags].concat());
            let said = printed(&output);
            assert_eq!(output.status.code(), Some(1), "{verb:?} {flags:?}: {said}");
            assert!(
                said.starts_with("error: the kubeconfig cannot be used: "),
                "{said}"
            );
            assert!(named.iter().all(|part| said.contains(part)), "{said}");
        }
    }
}

fn pool() -> Value {
    json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool",
        "metadata": {"name": "python", "namespace": "ns", "uid": "pool-uid", "generation": 1},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "a"}]}}},
    })
}

#[test]
fn a_closed_pipe_ends_the_call_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pool.json");
    std::fs::write(&file, pool().to_string()).unwrap();
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let call = Command::new(env!("CARGO_BIN_EXE_warmpool"))
        .args(["plan", "-f"])
        .arg(&file)
        .stdout(writer)
        .output()
        .unwrap();
    let said = printed(&call);
    assert_eq!(call.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("error: cannot write the output: Broken pipe"),
        "{said}"
    );
}

/// What `status` says of a pool that an API server with a newer CRD has stored.
fn explanation(change: impl Fn(&mut Value)) -> Vec<String> {
    let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
    let mut pool = pool();
    change(&mut pool);
    let mut index = Index::default();
    index.apply_pool(&serde_json::from_value(pool).unwrap());
    report(&index, &Key::new("ns", "python"), now)
        .unwrap()
        .explanation
}

#[test]
fn of_a_pool_whose_crd_is_newer_a_new_field_is_ignored_and_a_new_value_is_named() {
    let known = explanation(|_| ());
    let field = explanation(|pool| pool["spec"]["novel"] = json!("a"));
    assert_eq!(field, known);
    let value = explanation(|pool| pool["spec"]["updateStrategy"] = json!({"type": "Novel"}));
    assert!(
        value
            .iter()
            .any(|line| line.contains("spec.updateStrategy") && line.contains("Novel")),
        "{value:#?}"
    );
}
