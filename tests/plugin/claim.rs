//! Checks `kubectl warmpool claim`: the state of a claim, and the arguments.

use crate::command_line::{printed, run_as};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use warmpool::cli::kubectl::claim::state::{ClaimState, ReadySandbox, claim_state};

fn claim(status: &Value) -> DynamicObject {
    let claim = json!({
        "apiVersion": "warmpool.dev/v1alpha1",
        "kind": "SandboxClaim",
        "metadata": {"name": "run", "namespace": "sandboxes"},
        "spec": {"poolRef": {"name": "python"}},
        "status": status,
    });
    serde_json::from_value(claim).unwrap()
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message})
}

fn state(phase: &str, bound: &Value, ready: &Value) -> ClaimState {
    let sandboxes = json!([{"name": "python-7c9f-x2k4", "ip": "10.1.0.17"}]);
    claim_state(&claim(&json!({
        "phase": phase, "wait": "12ms", "conditions": [bound, ready], "sandboxes": sandboxes,
    })))
}

#[test]
fn a_claim_waits_until_its_sandbox_is_ready_and_shows_the_message_of_the_condition() {
    assert_eq!(claim_state(&claim(&Value::Null)), ClaimState::Waiting(None));
    let bound = condition("Bound", "False", "NoneAvailable", "none yet; first in line");
    let unready = condition("Ready", "False", "NotBound", "none yet; first in line");
    let waits = ClaimState::Waiting(Some("none yet; first in line".into()));
    assert_eq!(state("Pending", &bound, &unready), waits);
    let bound = condition("Bound", "True", "Bound", "sandbox x belongs to this claim");
    let unready = condition("Ready", "False", "SandboxNotReady", "sandbox x is not ready");
    let waits = ClaimState::Waiting(Some("sandbox x is not ready".into()));
    assert_eq!(state("Bound", &bound, &unready), waits);
    let ready = condition("Ready", "True", "SandboxReady", "sandbox x is ready");
    let ClaimState::Ready(sandbox) = state("Bound", &bound, &ready) else {
        panic!("the claim should be ready")
    };
    assert_eq!(
        sandbox.outcome(),
        "bound to sandbox python-7c9f-x2k4 (10.1.0.17) in 12ms"
    );
}

#[test]
fn an_ended_claim_shows_phase_reason_and_message() {
    let lost = condition("Bound", "False", "SandboxLost", "sandbox x is gone");
    let unready = condition("Ready", "False", "NotBound", "sandbox x is gone");
    for phase in ["Failed", "Expired"] {
        let ended = ClaimState::Ended(format!("is {phase} (SandboxLost: sandbox x is gone)"));
        assert_eq!(state(phase, &lost, &unready), ended);
    }
}

#[test]
fn the_outcome_omits_an_unknown_ip_and_wait() {
    let sandbox = ReadySandbox {
        name: "x".into(),
        ip: String::new(),
        wait: String::new(),
    };
    assert_eq!(sandbox.outcome(), "bound to sandbox x");
}

/// Runs the verb without a cluster. Exit code 2 means invalid arguments.
fn called_with(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run_as("kubectl-warmpool", &[&["claim", "python"], arguments].concat());
    (output.status.code(), printed(&output))
}

#[test]
fn flags_of_exec_come_with_a_command() {
    for bad in [
        &["--exec"][..],
        &["-i"],
        &["-t"],
        &["--container=main"],
        &["-o", "json", "--", "sh"],
        &["--dry-run=client", "--", "sh"],
    ] {
        let (code, printed) = called_with(bad);
        assert_eq!(code, Some(2), "{bad:?}: {printed}");
    }
    for good in [
        &["-it", "--rm", "--exec", "--", "sh", "-c", "exit 3"][..],
        &["-it", "--rm", "--", "sh", "-c", "exit 3"],
    ] {
        let (code, printed) = called_with(good);
        assert!(code == Some(1) && !printed.contains("Usage:"), "{printed}");
    }
}

#[test]
fn flags_that_need_the_sandbox_are_rejected_with_wait_false() {
    for (flags, what) in [
        (&["--rm"][..], "--rm"),
        (&["--", "sh"], "a command after --"),
        (&["--exec", "--", "sh"], "a command after --"),
    ] {
        let (code, printed) = called_with(&[&["--wait=false"], flags].concat());
        assert_eq!(code, Some(1));
        let words =
            format!("error: {what} requires that the call waits for the sandbox; leave out --wait=false\n");
        assert_eq!(printed, words);
    }
}

#[test]
fn exec_without_kubectl_in_the_path_creates_no_claim() {
    // `run_as` sets an empty PATH.
    let (code, printed) = called_with(&["--exec", "--", "sh"]);
    assert_eq!(code, Some(1));
    assert_eq!(
        printed,
        "error: the command is run with 'kubectl exec', and kubectl is not in the PATH\n"
    );
}

#[test]
fn a_dry_run_of_the_client_prints_the_claim_and_needs_no_cluster() {
    let arguments = [
        "--name=run-42",
        "--replicas=2",
        "--lifetime=1h",
        "--dry-run=client",
        "-o",
        "yaml",
    ];
    let (code, printed) = called_with(&arguments);
    assert_eq!(code, Some(0), "{printed}");
    let claim: Value = serde_yaml_ng::from_str(&printed).unwrap();
    assert_eq!(claim["apiVersion"], "warmpool.dev/v1alpha1");
    assert_eq!(claim["metadata"]["name"], "run-42");
    let spec = json!({"poolRef": {"name": "python"}, "replicas": 2, "lifetimeSeconds": 3600});
    assert_eq!(claim["spec"], spec);
    let (_, line) = called_with(&["--name=run-42", "--dry-run=client"]);
    assert_eq!(line, "sandboxclaim.warmpool.dev/run-42 created (dry run)\n");
}
