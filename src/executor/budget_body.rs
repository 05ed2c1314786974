//! The body and the patch of a PodDisruptionBudget.

use crate::api::{API_VERSION, labels};
use crate::model::disruption_budget::DisruptionBudget;
use crate::model::pool::Pool;
use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, ReplaceOperation, TestOperation};
use k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec;
use serde_json::{Value, json};

/// The PodDisruptionBudget with this name, which goes with the pool.
pub(crate) fn budget_body(pool: &Pool, name: &str, spec: &PodDisruptionBudgetSpec) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": name,
            "labels": {(labels::POOL): pool.key.name},
            "ownerReferences": [{
                "apiVersion": API_VERSION, "kind": "Pool", "name": pool.key.name, "uid": pool.uid,
                "controller": true, "blockOwnerDeletion": false,
            }],
        },
        "spec": spec,
    })
}

/// The patch that replaces the whole spec of a budget. A merge would leave what a user added to its selector.
pub(crate) fn budget_patch(budget: &DisruptionBudget, spec: &PodDisruptionBudgetSpec) -> Patch {
    Patch(vec![
        PatchOperation::Test(TestOperation {
            path: PointerBuf::from_tokens(["metadata", "uid"]),
            value: json!(budget.uid),
        }),
        PatchOperation::Replace(ReplaceOperation {
            path: PointerBuf::from_tokens(["spec"]),
            value: json!(spec),
        }),
    ])
}
