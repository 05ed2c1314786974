//! Checks `kubectl warmpool exec` and `release`: which sandbox is chosen, and the arguments.

use crate::command_line::{printed, run_as};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use warmpool::cli::kubectl::exec::choose;

fn claim(phase: &str, ready: &str, message: &str) -> DynamicObject {
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "NoneAvailable", "message": message});
    let claim = json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim",
        "metadata": {"name": "run", "namespace": "sandboxes"},
        "status": {
            "phase": phase, "conditions": [condition("Bound", "False"), condition("Ready", ready)],
            "sandboxes": [{"name": "a"}, {"name": "b"}],
        },
    });
    serde_json::from_value(claim).unwrap()
}

fn error(claim: &DynamicObject, wanted: Option<&str>) -> String {
    choose(claim, wanted).unwrap_err().to_string()
}

#[test]
fn the_first_sandbox_is_chosen_unless_another_is_named() {
    let bound = claim("Bound", "True", "");
    assert_eq!(choose(&bound, None).unwrap(), "a");
    assert_eq!(choose(&bound, Some("b")).unwrap(), "b");
    assert_eq!(
        error(&bound, Some("c")),
        "sandboxclaim.warmpool.dev/run has no sandbox \"c\"; it has a, b"
    );
}

#[test]
fn a_claim_without_a_ready_sandbox_says_why() {
    let waiting = claim("Pending", "False", "no sandbox is available yet");
    assert_eq!(
        error(&waiting, None),
        "sandboxclaim.warmpool.dev/run waits: no sandbox is available yet"
    );
    let failed = claim("Failed", "False", "too late");
    assert_eq!(
        error(&failed, None),
        "sandboxclaim.warmpool.dev/run is Failed (NoneAvailable: too late)"
    );
    let fresh: DynamicObject =
        serde_json::from_value(json!({"metadata": {"name": "run"}, "status": Value::Null})).unwrap();
    assert!(error(&fresh, None).ends_with("waits, and its status is empty"));
}

#[test]
fn what_is_to_be_run_or_released_has_to_be_named() {
    let without = run_as("kubectl-warmpool", &["exec", "run-42"]);
    assert_eq!(without.status.code(), Some(1));
    let says = "error: write the command after --, as in 'kubectl warmpool exec run-42 -- sh'";
    assert!(printed(&without).starts_with(says), "{}", printed(&without));
    for wrong in [
        &["release"][..],
        &["release", "run-42", "-l", "a=b"],
        &["release", "pool/python"],
        &["exec", "pod/a", "--", "sh"],
    ] {
        let output = run_as("kubectl-warmpool", wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", printed(&output));
    }
}
