//! Checks `warmpool plan -f` as a program.

// A test may panic: that is how it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod drains;
mod ending_claims;

use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};

const POOL: &str = "
apiVersion: warmpool.dev/v1alpha1
kind: Pool
metadata: {name: python, namespace: default, uid: pool-uid, generation: 3}
spec:
  replicas: 3
  template: {spec: {containers: [{name: main, image: 'image:1'}]}}
";

const CLAIM: &str = "
apiVersion: warmpool.dev/v1alpha1
kind: SandboxClaim
metadata: {name: run-42, namespace: default, uid: claim-uid, creationTimestamp: '2026-01-31T11:59:59Z'}
spec: {poolRef: {name: python}}
";

fn pod(name: &str, state: &str, owner: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: default
  uid: uid-{name}
  creationTimestamp: '2026-01-31T11:00:00Z'
  labels: {{warmpool.dev/pool: python, warmpool.dev/revision: oldrevision, warmpool.dev/state: {state}}}
  ownerReferences: [{{apiVersion: warmpool.dev/v1alpha1, kind: {owner}, controller: true}}]
spec: {{nodeName: node-1, containers: []}}
status:
  phase: Running
  podIP: 10.0.0.1
  conditions: [{{type: Ready, status: 'True', lastTransitionTime: '2026-01-31T11:00:05Z'}}]
"
    )
}

fn warm(name: &str) -> String {
    pod(name, "warm", "Pool, name: python, uid: pool-uid")
}

fn stream(documents: &[&str]) -> String {
    documents.join("\n---\n")
}

fn plan_with(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warmpool"))
        .args(["plan", "-f", "-", "--now", "2026-01-31T12:00:00Z"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn plan(input: &str) -> Value {
    let output = plan_with(&["-o", "json"], input);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The actions of the first pool.
fn actions(plan: &Value) -> &Vec<Value> {
    plan["pools"][0]["actions"].as_array().unwrap()
}

/// Standard error of a call that rejects its input.
fn input_error(input: &str) -> String {
    let output = plan_with(&[], input);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_empty_pool_is_planned_with_exactly_the_documented_keys() {
    let plan = plan(POOL);
    let pool = &plan["pools"][0];
    assert_eq!(
        (&pool["namespace"], &pool["name"]),
        (&"default".into(), &"python".into())
    );
    let actions = actions(&plan);
    assert_eq!(actions.len(), 3);
    let mut keys: Vec<_> = actions[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, ["action", "claim", "phase", "pod", "reason", "revision"]);
    assert_eq!(
        (&actions[0]["phase"], &actions[0]["action"]),
        (&"scale".into(), &"CreatePod".into())
    );
    let name = format!("python-{}-", actions[0]["revision"].as_str().unwrap());
    assert!(actions[0]["pod"].as_str().unwrap().starts_with(&name));
    assert_eq!(pool["status"]["observedGeneration"], 3);
}

#[test]
fn the_same_input_gives_the_same_plan_in_any_order() {
    let (a, b, c) = (warm("a"), warm("b"), warm("c"));
    let expected = plan(&stream(&[POOL, &a, &b, &c, CLAIM]));
    let reordered = plan(&stream(&[CLAIM, &c, &a, &b, POOL]));
    assert_eq!(expected, reordered);
    let bind = &actions(&expected)[0];
    assert_eq!(
        (&bind["action"], &bind["claim"]),
        (&"BindClaim".into(), &"run-42".into())
    );
}

#[test]
fn lists_are_read_as_kubectl_prints_them_in_yaml_and_json() {
    let documents: Vec<Value> = [POOL, CLAIM, &warm("a")]
        .iter()
        .map(|document| serde_yaml_ng::from_str(document).unwrap())
        .collect();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": documents});
    let expected = plan(&stream(&[POOL, CLAIM, &warm("a")]));
    assert_eq!(plan(&list.to_string()), expected);
    assert_eq!(plan(&serde_yaml_ng::to_string(&list).unwrap()), expected);
}

#[test]
fn a_rollout_deletes_within_the_budget_and_never_a_claimed_pod() {
    let held = pod("held", "claimed", "SandboxClaim, name: run-1, uid: other-claim");
    let pool = POOL.replace(
        "replicas: 3",
        "replicas: 3\n  updateStrategy: {maxUnavailable: 50%}",
    );
    assert_ne!(pool, POOL);
    let plan = plan(&stream(&[&pool, &warm("a"), &warm("b"), &warm("c"), &held]));
    let actions = actions(&plan);
    let deleted: Vec<_> = actions.iter().filter(|a| a["action"] == "DeletePod").collect();
    assert_eq!(deleted.len(), 1, "50% of 3, rounded down");
    assert_eq!(
        (&deleted[0]["phase"], &deleted[0]["reason"]),
        (&"recreate".into(), &"OldRevision".into())
    );
    assert_ne!(deleted[0]["pod"], "held");
    assert_eq!(plan["pools"][0]["status"]["claimed"], 1);
}

#[test]
fn the_binding_of_a_half_bound_claim_is_planned() {
    let held = pod("held", "claimed", "SandboxClaim, name: run-42, uid: claim-uid");
    let plan = plan(&stream(&[POOL, CLAIM, &held, &warm("a"), &warm("b"), &warm("c")]));
    let actions = actions(&plan);
    let binds: Vec<_> = actions.iter().filter(|a| a["action"] == "BindClaim").collect();
    assert_eq!(binds.len(), 1);
    assert_eq!(
        (&binds[0]["pod"], &binds[0]["reason"]),
        (&"held".into(), &"HalfBound".into())
    );
}

#[test]
fn pods_belong_to_a_pool_by_label_and_controller_owner_both() {
    let foreign = warm("stranger").replace("pool-uid", "another-uid");
    let plan = plan(&stream(&[POOL, &foreign]));
    let actions = actions(&plan);
    assert_eq!(actions.len(), 3);
    assert!(actions.iter().all(|a| a["action"] == "CreatePod"));
}

#[test]
fn the_text_form_is_a_table_that_lines_up() {
    let output = plan_with(&[], &stream(&[POOL, CLAIM, &warm("a")]));
    let text = String::from_utf8(output.stdout).unwrap();
    let header = text.lines().find(|l| l.contains("PHASE")).unwrap();
    let bind = text.lines().find(|l| l.contains("BindClaim")).unwrap();
    let create = text.lines().find(|l| l.contains("CreatePod")).unwrap();
    for column in ["ACTION", "POD", "CLAIM", "REVISION", "REASON"] {
        let at = header.find(column).unwrap();
        for line in [bind, create] {
            assert!(
                line.as_bytes()[at - 1] == b' ' && line.as_bytes()[at] != b' ',
                "{column}:\n{text}"
            );
        }
    }
}

#[test]
fn invalid_input_is_rejected_with_the_document_and_the_field() {
    for (input, words) in [
        ("{", vec!["document 1", "not valid YAML"]),
        ("metadata: {name: x}", vec!["document 1", "kind: missing"]),
        (
            "kind: Pool\nmetadata: {name: x}",
            vec!["document 1", "apiVersion: missing"],
        ),
        (
            "apiVersion: warmpool.dev/v1alpha1\nkind: Pool\nmetadata: {}",
            vec!["document 1 (Pool )", "metadata.name"],
        ),
        (
            &stream(&[CLAIM, &POOL.replace("replicas: 3", "replicas: three")]),
            vec!["Pool default/python", "spec.replicas"],
        ),
        (
            &POOL.replace("replicas: 3", "replicas: -1"),
            vec!["spec.replicas", "negative", "write 0 or more"],
        ),
        (
            &POOL.replace("replicas: 3", "updateStrategy: {maxUnavailable: abc}"),
            vec![
                "spec.updateStrategy.maxUnavailable",
                "\"abc\"",
                "percentage like \"25%\"",
            ],
        ),
        (
            &CLAIM.replace("{poolRef: {name: python}}", "{}"),
            vec!["SandboxClaim default/run-42", "poolRef"],
        ),
        (
            &CLAIM.replace(
                "{poolRef: {name: python}}",
                "{poolRef: {name: python}, onEmpty: Maybe}",
            ),
            vec!["spec.onEmpty", "Maybe"],
        ),
        (
            &warm("a").replace("labels: {", "labels: {x: [], "),
            vec!["document 1 (Pod a)", "metadata.labels"],
        ),
    ] {
        let message = input_error(input);
        for word in words {
            assert!(
                message.contains(word),
                "{word:?} is not in: {message}\nfor: {input}"
            );
        }
    }
}

#[test]
fn an_invalid_time_is_rejected() {
    let arguments = ["plan", "-f", "/dev/null", "--now", "tomorrow"];
    let output = Command::new(env!("CARGO_BIN_EXE_warmpool"))
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("tomorrow"));
}

const TEMPLATE: &str = "
apiVersion: v1
kind: PodTemplate
metadata: {name: python-3.13, namespace: default}
template: {metadata: {creationTimestamp: null}, spec: {containers: [{name: main, image: 'image:1'}]}}
";

fn pool_of_template() -> String {
    let inline = "template: {spec: {containers: [{name: main, image: 'image:1'}]}}";
    POOL.replace(inline, "templateRef: {name: python-3.13}")
}

#[test]
fn a_pool_is_planned_from_the_template_that_it_names() {
    let named = plan(&stream(&[&pool_of_template(), TEMPLATE]));
    assert_eq!(
        named,
        plan(POOL),
        "the same template gives the same plan, wherever it is written"
    );
    let other = TEMPLATE.replace("image:1", "image:2");
    let revision = |plan: &Value| plan["pools"][0]["status"]["updateRevision"].clone();
    assert_ne!(
        revision(&plan(&stream(&[&pool_of_template(), &other]))),
        revision(&named)
    );
}

#[test]
fn a_missing_template_is_part_of_the_plan_and_not_an_input_error() {
    for (documents, reason) in [
        (pool_of_template(), "TemplateNotFound"),
        (
            stream(&[
                &pool_of_template(),
                &TEMPLATE.replace("creationTimestamp: null", "labels: {warmpool.dev/pool: x}"),
            ]),
            "TemplateInvalid",
        ),
    ] {
        let plan = plan(&stream(&[&documents, &warm("a"), CLAIM]));
        let pool = &plan["pools"][0];
        let planned: Vec<_> = actions(&plan).iter().map(|a| &a["action"]).collect();
        assert_eq!(planned, ["BindClaim"]);
        let progressing = pool["status"]["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|c| c["type"] == "Progressing")
            .unwrap();
        assert_eq!(
            (&progressing["status"], &progressing["reason"]),
            (&"False".into(), &reason.into())
        );
        assert!(
            progressing["message"]
                .as_str()
                .unwrap()
                .contains("PodTemplate python-3.13")
        );
    }
}

#[test]
fn nothing_is_planned_for_a_pool_that_is_being_deleted() {
    let deleted = POOL.replace(
        "generation: 3",
        "generation: 3, deletionTimestamp: '2026-01-31T11:59:00Z'",
    );
    let plan = plan(&stream(&[&deleted, &warm("a"), CLAIM]));
    let pool = &plan["pools"][0];
    assert_eq!(pool["actions"], Value::Array(Vec::new()));
    assert_eq!(
        pool["status"]["observedGeneration"], 0,
        "the status of a pool that is being deleted is not written"
    );
}

/// Standard error of a plan from the pool and one more document.
fn warnings(document: &str) -> String {
    let output = plan_with(&[], &stream(&[POOL, document]));
    assert!(output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn nodes_are_read_without_a_warning() {
    assert_eq!(
        warnings("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}"),
        ""
    );
}

#[test]
fn other_kinds_are_ignored_with_a_warning() {
    let printed = warnings("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}");
    assert!(
        printed.contains("warning: document 2 (ConfigMap notes) is ignored"),
        "{printed}"
    );
}

#[test]
fn a_claim_or_pod_without_a_creation_time_came_at_the_time_of_the_plan() {
    let claim = CLAIM.replace(", creationTimestamp: '2026-01-31T11:59:59Z'", "");
    let pool = POOL.replace("replicas: 3", "replicas: 1, warmUpDeadlineSeconds: 30");
    let young = warm("young")
        .replace("  creationTimestamp: '2026-01-31T11:00:00Z'\n", "")
        .replace("phase: Running", "phase: Pending")
        .replace("status: 'True'", "status: 'False'");
    let pool = pool.replace(
        "  replicas: 1, warmUpDeadlineSeconds: 30",
        "  replicas: 1\n  warmUpDeadlineSeconds: 30",
    );
    let plan = plan(&stream(&[&pool, &claim, &young]));
    let planned: Vec<_> = actions(&plan)
        .iter()
        .map(|a| a["action"].as_str().unwrap())
        .collect();
    assert!(
        !planned.contains(&"FailClaim") && !planned.contains(&"DeletePod"),
        "neither has waited since 1970: {planned:?}"
    );
}

#[test]
fn a_field_that_a_kind_does_not_have_is_an_error_that_names_it() {
    for (wrong, field) in [
        (
            POOL.replace("replicas: 3", "replica: 3"),
            "spec.replica: unknown field",
        ),
        (
            POOL.replace(
                "containers: [{name: main, image: 'image:1'}]",
                "containers: [{name: a, image: b, imagge: c}]",
            ),
            "spec.template.spec.containers[0].imagge: unknown field",
        ),
        (
            POOL.replace("\nspec:", "\nspecs: 1\nspec:"),
            "specs: unknown field",
        ),
        (
            CLAIM.replace("spec: {", "spec: {lifetime: 3, "),
            "document 1 (SandboxClaim run-42): spec.lifetime: unknown field",
        ),
    ] {
        let error = input_error(&wrong);
        assert!(error.contains(field), "{error}");
    }
    let with_labels = POOL.replace(
        "  replicas: 3",
        "  replicas: 3\n  lifecycle: {preNormal: {labelsHandler: {any: key}}}",
    );
    assert!(plan(&with_labels)["pools"][0]["actions"].is_array());
}

#[test]
fn an_empty_input_is_an_error() {
    for empty in ["", "\n", "---\n---\n", "null"] {
        let error = input_error(empty);
        assert!(
            error.starts_with("error: the input holds no object"),
            "{empty:?}: {error}"
        );
    }
}

#[test]
fn a_plan_is_printed_as_yaml_as_well() {
    let output = plan_with(&["-o", "yaml"], POOL);
    let yaml: Value = serde_yaml_ng::from_slice(&output.stdout).unwrap();
    assert_eq!(yaml, plan(POOL));
}
