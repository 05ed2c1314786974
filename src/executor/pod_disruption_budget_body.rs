//! The body and the patch of a PodDisruptionBudget.

use crate::api::{API_VERSION, labels};
use crate::model::pod_disruption_budget::DisruptionBudget;
use crate::model::request::BudgetOwner;
use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, ReplaceOperation, TestOperation};
use k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec;
use serde_json::{Value, json};

/// The PodDisruptionBudget with this name, which goes with its owner.
pub(crate) fn budget_body(owner: &BudgetOwner, name: &str, spec: &PodDisruptionBudgetSpec) -> Value {
    let (label, kind, uid) = match owner {
        BudgetOwner::Pool(pool) => (labels::POOL, "Pool", &pool.uid),
        BudgetOwner::Claim(claim) => (labels::CLAIM, "SandboxClaim", &claim.uid),
    };
    let owner = &owner.key().name;
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": name,
            "labels": {label: owner},
            "ownerReferences": [{
                "apiVersion": API_VERSION, "kind": kind, "name": owner, "uid": uid,
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
