//! Lists rejected fields that claims share with a pool's `claimDefaults`.

use super::claim_cases::{cel, keyword, pod_metadata};
use super::pool_cases::rejected;
use super::{ABOVE_INT32, Case};
use crate::objects::pool;
use serde_json::json;

pub fn of_claims() -> Vec<Case> {
    let mut all = vec![
        cel(
            "spec.waitTimeoutSeconds",
            "waitTimeoutSeconds must be 1 or more",
            json!({"waitTimeoutSeconds": 0}),
        ),
        cel(
            "spec.lifetimeSeconds",
            "lifetimeSeconds must be 1 or more",
            json!({"lifetimeSeconds": 0}),
        ),
        cel(
            "spec.lifetimeSeconds",
            "lifetimeSeconds must be 1 or more",
            json!({"lifetimeSeconds": -5}),
        ),
        cel(
            "spec.disruptionGracePeriodSeconds",
            "disruptionGracePeriodSeconds must be 1 or more",
            json!({"disruptionGracePeriodSeconds": 0}),
        ),
        keyword(
            "spec.disruption",
            "enum",
            "supported values: \"Block\", \"Allow\", \"Notify\"",
            json!({"disruption": "Forbid"}),
        ),
        cel(
            "spec.ttlSecondsAfterFinished",
            "ttlSecondsAfterFinished must be 0 or more",
            json!({"ttlSecondsAfterFinished": -1}),
        ),
        keyword(
            "spec.onEmpty",
            "enum",
            "supported values: \"Create\", \"Wait\", \"Fail\"",
            json!({"onEmpty": "Creat"}),
        ),
        keyword(
            "spec.revisionPolicy",
            "enum",
            "supported values: \"PreferLatest\", \"Latest\", \"Any\"",
            json!({"revisionPolicy": "Newest"}),
        ),
        keyword(
            "spec.releasePolicy",
            "enum",
            "supported values: \"Delete\", \"Retain\"",
            json!({"releasePolicy": "Keep"}),
        ),
        keyword(
            "spec.onSandboxLost",
            "enum",
            "supported values: \"Fail\", \"Replace\"",
            json!({"onSandboxLost": "Again"}),
        ),
    ];
    all.push(keyword(
        "spec.priority",
        "minimum",
        "should be greater than or equal to -2147483648",
        json!({"priority": -3_000_000_000_i64}),
    ));
    const HUGE: i64 = 3_000_000_000;
    let numbers = [
        ("spec.priority", json!({"priority": HUGE})),
        ("spec.waitTimeoutSeconds", json!({"waitTimeoutSeconds": HUGE})),
        ("spec.lifetimeSeconds", json!({"lifetimeSeconds": HUGE})),
        (
            "spec.disruptionGracePeriodSeconds",
            json!({"disruptionGracePeriodSeconds": HUGE}),
        ),
        (
            "spec.ttlSecondsAfterFinished",
            json!({"ttlSecondsAfterFinished": HUGE}),
        ),
    ];
    all.extend(
        numbers
            .into_iter()
            .map(|(at, spec)| keyword(at, "maximum", ABOVE_INT32, spec)),
    );
    all.extend(pod_metadata());
    all
}

/// The same, written as the defaults of a pool.
pub fn of_pools() -> Vec<Case> {
    let as_default = |case: Case| {
        let mut terms = case.object["spec"].clone();
        if let Some(terms) = terms.as_object_mut() {
            terms.remove("poolRef");
        }
        let at = case.at.replacen("spec.", "spec.claimDefaults.", 1);
        let object = pool("python", 2, &json!({"claimDefaults": terms}));
        rejected(at.leak(), case.rule, case.says, object)
    };
    of_claims().into_iter().map(as_default).collect()
}
