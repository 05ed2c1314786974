//! Builds the objects that the tests write.

use serde_json::{Value, json};

pub const OLD_IMAGE: &str = "sandbox:1";
pub const NEW_IMAGE: &str = "sandbox:2";

/// A pool with a small pod; `more` is merged over its spec.
pub fn pool(name: &str, replicas: i64, more: &Value) -> Value {
    let mut pool = json!({
        "apiVersion": "warmpool.dev/v1alpha1",
        "kind": "Pool",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "main", "image": OLD_IMAGE}],
                },
            },
        },
    });
    merge(&mut pool["spec"], more);
    pool
}

/// A PodTemplate with the small pod of [`pool`]; `more` is merged over it.
pub fn template(name: &str, more: &Value) -> Value {
    let mut template = json!({
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": name},
        "template": pool(name, 0, &json!({}))["spec"]["template"],
    });
    merge(&mut template, more);
    template
}

/// A pool that uses a PodTemplate; `more` is merged over its spec.
pub fn pool_of(template: &str, name: &str, replicas: i64, more: &Value) -> Value {
    let mut pool = pool(name, replicas, &json!({}));
    pool["spec"] = json!({"replicas": replicas, "templateRef": {"name": template}});
    merge(&mut pool["spec"], more);
    pool
}

/// A part of a pool's spec or of a PodTemplate: annotations of its pods, by which a test steers the simulated node.
pub fn sim(annotations: &[(&str, &str)]) -> Value {
    let all = annotations
        .iter()
        .map(|(key, value)| (format!("sim.warmpool.dev/{key}"), json!(value)));
    json!({"template": {"metadata": {"annotations": Value::Object(all.collect())}}})
}

/// Both parts of a spec in one.
pub fn with(mut spec: Value, more: &Value) -> Value {
    merge(&mut spec, more);
    spec
}

/// A claim; `more` is merged over its spec.
pub fn claim(name: &str, pool: &str, more: &Value) -> Value {
    let mut claim = json!({
        "apiVersion": "warmpool.dev/v1alpha1",
        "kind": "SandboxClaim",
        "metadata": {"name": name},
        "spec": {"poolRef": {"name": pool}},
    });
    merge(&mut claim["spec"], more);
    claim
}

/// RFC 7386, without its deletions.
fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}
