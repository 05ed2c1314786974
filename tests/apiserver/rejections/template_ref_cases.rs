//! Lists pools with a missing, double or invalid template that must be rejected.

use super::Case;
use super::pool_cases::{cel, rejected};
use serde_json::{Value, json};

pub fn cases() -> Vec<Case> {
    const NAME: &str = "templateRef.name must be the name of a PodTemplate like \"python-3.13\": lower-case letters, digits, '-' and '.', with a letter or digit at both ends";
    const NEITHER: &str =
        "a pool needs a template: write spec.template, or name a PodTemplate in spec.templateRef";
    const BOTH: &str = "spec.template and spec.templateRef exclude each other; keep one of them";
    let named = |spec: Value| {
        json!({
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "metadata": {"name": "python"}, "spec": spec,
        })
    };
    let mut all = vec![
        cel("spec", BOTH, json!({"templateRef": {"name": "python"}})),
        rejected("spec", NEITHER, NEITHER, named(json!({"replicas": 1}))),
        rejected(
            "spec.templateRef",
            "required",
            "spec.templateRef.name: Required value",
            named(json!({"templateRef": {}})),
        ),
        rejected(
            "spec.templateRef.name",
            "maxLength",
            "may not be more than 253",
            named(json!({"templateRef": {"name": "p".repeat(254)}})),
        ),
        rejected(
            "spec.templateRef",
            "unknown",
            "unknown field \"spec.templateRef.namespace\"",
            named(json!({"templateRef": {"name": "python", "namespace": "other"}})),
        ),
    ];
    for name in [
        "", "Python", "python_3", "-python", "python-", "a..b", ".a", "a/b",
    ] {
        let object = named(json!({"templateRef": {"name": name}}));
        all.push(rejected("spec.templateRef.name", NAME, NAME, object));
    }
    all
}
