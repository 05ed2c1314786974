//! The planner answers any input with a plan or with an error in a sentence.

// A test may panic: that is how it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use proptest::prelude::*;
use proptest::sample::Index as Somewhere;
use proptest::test_runner::{Config, TestCaseError};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};
use warmpool::cli::documents::Documents;
use warmpool::executor::pod_patch::claiming_patch;
use warmpool::model::int_or_percent::{IntOrPercent, Rounding};
use warmpool::model::revision::{ALPHABET, Template, hash};
use warmpool::planner::{self, Step};

/// Objects of every kind that a plan uses, with all their fields.
fn world() -> Value {
    let owner = |kind: &str, name: &str| {
        json!([{
            "apiVersion": "warmpool.dev/v1alpha1", "kind": kind, "name": name, "uid": format!("uid-{name}"),
            "controller": true,
        }])
    };
    let pod = |name: &str, state: &str, owner: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "7",
                "creationTimestamp": "2026-01-31T11:00:00Z",
                "labels": {
                    "warmpool.dev/pool": "python", "warmpool.dev/revision": "oldrevision",
                    "warmpool.dev/state": state,
                },
                "annotations": {"a": "b"},
                "finalizers": ["example.com/scrub"],
                "ownerReferences": owner,
            },
            "spec": {"nodeName": "node-1", "containers": []},
            "status": {
                "phase": "Running", "podIP": "10.0.0.1",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T11:00:05Z"}],
                "containerStatuses": [{"restartCount": 1}],
            },
        })
    };
    let claim = |name: &str, spec: Value, status: Value| {
        json!({
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim",
            "metadata": {
                "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "9",
                "creationTimestamp": "2026-01-31T11:59:00Z", "generation": 1,
            },
            "spec": spec, "status": status,
        })
    };
    json!([
        {
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool",
            "metadata": {
                "name": "python", "namespace": "default", "uid": "uid-python", "generation": 3,
                "labels": {"lang": "python"},
            },
            "spec": {
                "replicas": 3,
                "capacity": {"maxWarm": 5, "minTotal": 1, "maxTotal": 10},
                "template": {
                    "metadata": {"labels": {"app": "python"}, "annotations": {"a": "b"}},
                    "spec": {"containers": [{"name": "main", "image": "image:1"}]},
                },
                "updateStrategy": {
                    "type": "RollingUpdate", "maxUnavailable": "25%", "maxSurge": 1, "partition": "10%",
                    "paused": false,
                },
                "scaleStrategy": {"maxUnavailable": "100%"},
                "minReadySeconds": 1,
                "claimDefaults": {"lifetimeSeconds": 60, "waitTimeoutSeconds": 5},
                "lifecycle": {
                    "preNormal": {"labelsHandler": {"checked": "yes"}},
                    "preDelete": {"finalizersHandler": ["example.com/scrub"]},
                },
                "progressDeadlineSeconds": 600, "warmUpDeadlineSeconds": 600, "revisionHistoryLimit": 2,
            },
            "status": {
                "observedGeneration": 2, "updateRevision": "oldrevision", "currentRevision": "oldrevision",
                "collisionCount": 1, "lastProgressTime": "2026-01-31T11:00:00Z",
                "conditions": [{
                    "type": "Progressing", "status": "True", "reason": "RolloutComplete", "message": "",
                    "lastTransitionTime": "2026-01-31T11:00:00Z",
                }],
            },
        },
        {
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool",
            "metadata": {"name": "shared", "namespace": "default", "uid": "uid-shared", "generation": 1},
            "spec": {"replicas": 1, "templateRef": {"name": "template"}},
        },
        {
            "apiVersion": "v1", "kind": "PodTemplate",
            "metadata": {"name": "template", "namespace": "default", "uid": "uid-template"},
            "template": {"spec": {"containers": [{"name": "main", "image": "image:1"}]}},
        },
        {
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
            "metadata": {
                "name": "python-oldrevision", "namespace": "default", "uid": "uid-revision",
                "labels": {"warmpool.dev/pool": "python", "warmpool.dev/revision": "oldrevision"},
                "ownerReferences": owner("Pool", "python"),
            },
            "data": {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "image:0"}]}}}},
        },
        pod("warm", "warm", owner("Pool", "python")),
        pod("held", "claimed", owner("SandboxClaim", "bound")),
        claim("waiting", json!({"poolRef": {"name": "python"}, "priority": 3, "podMetadata": {
            "labels": {"l": "m"}, "annotations": {"c": "d"}}}), Value::Null),
        claim("batch", json!({"poolRef": {"name": "python"}, "replicas": 2, "onEmpty": "Create"}), Value::Null),
        claim("choosy", json!({"poolSelector": {"matchLabels": {"lang": "python"}}, "revisionPolicy": "Latest",
            "shutdownTime": "2026-02-01T00:00:00Z"}), Value::Null),
        claim("bound", json!({"poolRef": {"name": "python"}, "onSandboxLost": "Replace"}), json!({
            "phase": "Bound", "pool": "python",
            "sandboxes": [{
                "name": "held", "uid": "uid-held", "ip": "10.0.0.1", "revision": "oldrevision",
                "boundTime": "2026-01-31T11:30:00Z",
            }],
            "boundTime": "2026-01-31T11:30:00Z", "waitSeconds": 0.1, "defaults": {"lifetimeSeconds": 60},
        })),
    ])
}

/// Unexpected values for a field.
fn odd() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "",
        " ",
        "%",
        "-1%",
        "25 %",
        "1e3%",
        "99999999999999999999%",
        "200%",
        "0%",
        "100%",
        "NaN",
        "null",
        "true",
        "2026-13-45T99:99:99Z",
        "0000-01-01T00:00:00Z",
        "-009999-01-01T00:00:00Z",
        "9999-12-30T23:59:59Z",
        "Recreate",
        "Latest",
        "Bound",
        "Expired",
        "warm",
        "draining",
        "🦀",
        "a/b~1",
        "python",
        "uid-python",
    ]);
    let numbers = prop::sample::select(vec![
        0,
        -1,
        1,
        2,
        100,
        101,
        i64::from(i32::MAX),
        i64::from(i32::MIN),
        i64::from(u32::MAX),
        i64::MAX,
        i64::MIN,
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        numbers.prop_map(Value::from),
        any::<f64>().prop_map(|n| json!(n)),
        words.prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z/.]{0,8}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// Collects the JSON pointers of all values inside `value`.
fn paths(value: &Value, at: &str, out: &mut Vec<String>) {
    let mut each = |key: String, inner: &Value| {
        let path = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        paths(inner, &path, out);
        out.push(path);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| each(key.clone(), inner)),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(n, inner)| each(n.to_string(), inner)),
        _ => {}
    }
}

#[derive(Clone, Debug)]
enum Damage {
    Replaced(Value),
    Removed,
}

fn damages() -> impl Strategy<Value = Vec<(Somewhere, Damage)>> {
    let damage = prop_oneof![3 => odd().prop_map(Damage::Replaced), 1 => Just(Damage::Removed)];
    prop::collection::vec((any::<Somewhere>(), damage), 1..6)
}

fn damaged(damages: &[(Somewhere, Damage)]) -> Vec<Value> {
    let mut all = world();
    for (somewhere, damage) in damages {
        let mut pointers = Vec::new();
        paths(&all, "", &mut pointers);
        let pointer = somewhere.get(&pointers);
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match (damage, all.pointer_mut(parent).unwrap()) {
            (Damage::Replaced(odd), _) => *all.pointer_mut(pointer).unwrap() = odd.clone(),
            (Damage::Removed, Value::Object(map)) => {
                drop(map.remove(&key.replace("~1", "/").replace("~0", "~")))
            }
            (Damage::Removed, Value::Array(list)) if list.len() > 1 => {
                drop(list.remove(key.parse().unwrap()))
            }
            (Damage::Removed, _) => {}
        }
    }
    all.as_array().unwrap().clone()
}

fn stream(documents: &[Value]) -> String {
    let documents: Vec<String> = documents.iter().map(Value::to_string).collect();
    documents.join("\n---\n")
}

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().unwrap()
}

/// Reads the text and plans every pool and claim in it, as the operator does.
fn plan_all(text: &str) -> Result<(), TestCaseError> {
    let index = match Documents::read(text) {
        Ok(documents) => documents.into_index(Timestamp::UNIX_EPOCH),
        Err(error) => {
            prop_assert!(error.to_string().contains(' '), "{error} is no sentence");
            return Ok(());
        }
    };
    if let Err(error) = Documents::check(&index) {
        prop_assert!(error.to_string().contains(' '), "{error} is no sentence");
    }
    for key in index.pool_keys() {
        let Some(snapshot) = planner::pool_snapshot(&index, &key, now(), 7) else {
            continue;
        };
        let plan = planner::plan(&snapshot);
        for action in &plan.actions {
            let changes_stock = matches!(action.step, Step::CreatePod { .. } | Step::DeletePod { .. });
            prop_assert!(
                snapshot.pool.error.is_none() || !changes_stock,
                "{:?}: {action:?}",
                snapshot.pool.error
            );
            if let Step::BindClaim { claim, sandbox } = &action.step {
                let patch = claiming_patch(claim, sandbox, &snapshot.pool);
                prop_assert!(patch.is_ok(), "{patch:?}");
            }
        }
    }
    for key in index.claim_keys() {
        if let Some(snapshot) = index.claim_snapshot(&key, now()) {
            planner::claim::plan(&snapshot);
        }
    }
    Ok(())
}

/// Runs this number of cases. Prints failing cases and does not write them to a file.
fn cases(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn damaged_objects_are_planned_or_rejected_with_a_sentence(damages in damages()) {
        plan_all(&stream(&damaged(&damages)))?;
    }

}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn any_text_is_planned_or_rejected_with_a_sentence(text in r"([ \n]|[-:,\[\]{}&*!|>'%@`#?]|kind|items|Pool|[a-z0-9]){0,60}") {
        plan_all(&text)?;
    }

    #[test]
    fn a_percentage_is_parsed_exactly_or_rejected_with_a_sentence(text in "[-+0-9%. ]{0,6}|[0-9]{1,14}%", number in any::<i32>()) {
        let digits = text.strip_suffix('%').filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
        let meant = digits.and_then(|d| d.parse().ok()).map(IntOrPercent::Percent);
        match IntOrPercent::parse("partition", &IntOrString::String(text)) {
            Ok(parsed) => {
                prop_assert_eq!(Some(parsed), meant);
                for replicas in [0, 1, 2, 99, 100, usize::MAX] {
                    prop_assert!(parsed.of(replicas, Rounding::Down) <= parsed.of(replicas, Rounding::Up));
                    prop_assert!(parsed.kept_of(replicas) <= replicas);
                }
            }
            Err(sentence) => {
                prop_assert_eq!(meant, None);
                prop_assert!(sentence.starts_with("partition: "), "{}", sentence);
            }
        }
        let parsed = IntOrPercent::parse("partition", &IntOrString::Int(number));
        prop_assert_eq!(parsed.ok(), u32::try_from(number).ok().map(IntOrPercent::Int));
    }

    #[test]
    fn any_template_has_a_hash_that_can_be_a_label(template in odd(), spec in odd(), collisions in any::<i32>()) {
        for value in [template, json!({"metadata": {"labels": spec.clone()}, "spec": spec})] {
            let template = Template::new(value);
            let hash = hash(&template.canonical, collisions);
            prop_assert!(hash.len() == 10 && hash.bytes().all(|b| ALPHABET.contains(&b)), "{}", hash);
            let again: Value = serde_json::from_str(&template.canonical).unwrap_or_default();
            prop_assert_eq!(Template::new(again).canonical, template.canonical);
        }
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn the_command_ends_with_a_plan_or_with_exit_code_2_and_a_sentence(damages in damages()) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_warmpool"))
            .args(["plan", "-f", "-", "--now", "2026-01-31T12:00:00Z"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stream(&damaged(&damages)).as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => prop_assert!(!output.stdout.is_empty()),
            Some(2) => prop_assert!(printed.trim().contains(' '), "{printed} is no sentence"),
            other => return Err(TestCaseError::fail(format!("{other:?}: {printed}"))),
        }
    }
}
