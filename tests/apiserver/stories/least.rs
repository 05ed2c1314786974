//! Checks that the operator's role grants what it uses, and nothing else.

use super::{bound, burst};
use crate::accounts::account;
use crate::api::{BUDGETS, LEASES, TEMPLATES};
use crate::cluster_state::wait_until_at_rest;
use crate::eviction_requests_api::{end, serve};
use crate::objects::{NEW_IMAGE, OLD_IMAGE, pool, pool_of, template};
use crate::operator::LONG_LEASE;
use crate::rbac::{Right, granted, rights};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The audit log has the reads of this account, too (`e2e/cluster/audit-policy.yaml`).
const ACCOUNT: &str = "audited";
const HOME: &str = "warmpool-system";
/// The User-Agent of the operator.
const AGENT: &str = concat!("warmpool/", env!("CARGO_PKG_VERSION"), " (controller)");

/// Rights that only something rare asks for, and the file that does.
const IN_TROUBLE: &[(&str, &str, &str)] = &[
    ("get", "sandboxclaims.warmpool.dev", "src/executor/send.rs"),
    ("get", "controllerrevisions.apps", "src/executor/send.rs"),
];

pub fn the_role_allows_what_it_does_and_nothing_that_it_never_does(scene: &Scene) -> Result<(), String> {
    let kubeconfig = account(scene.lab, HOME, ACCOUNT)?;
    let subject = format!("--serviceaccount={HOME}:{ACCOUNT}");
    let admin = |arguments: &[&str]| scene.lab.cluster.kubectl(arguments, None);
    admin(&[
        "create",
        "clusterrolebinding",
        ACCOUNT,
        "--clusterrole=warmpool",
        &subject,
    ])?;
    admin(&[
        "-n",
        HOME,
        "create",
        "rolebinding",
        ACCOUNT,
        "--role=warmpool",
        &subject,
    ])?;
    if scene.lab.api.get(LEASES, HOME, "warmpool")?.is_some() {
        scene.lab.api.delete(LEASES, HOME, "warmpool")?;
    }
    serve(scene.lab)?;
    let exercised = exercise(scene, &kubeconfig);
    end(scene.lab)?;
    exercised?;

    let user = format!("system:serviceaccount:{HOME}:{ACCOUNT}");
    let asked = scene.lab.cluster.audit_of(&user)?;
    let refused: Vec<_> = asked.iter().filter(|request| request.forbidden).collect();
    wait::ensure(refused.is_empty(), || {
        format!("the role does not allow {refused:?}")
    })?;
    let unsigned: Vec<_> = asked.iter().filter(|request| request.agent != AGENT).collect();
    wait::ensure(unsigned.is_empty(), || {
        format!("the audit log does not name the operator in {unsigned:?}")
    })?;
    let used: BTreeSet<Right> = asked
        .iter()
        .filter(|request| !request.resource.is_empty())
        .map(|request| {
            (
                request.verb.clone(),
                format!("{}.{}", request.resource, request.group),
            )
        })
        .collect();
    let mut rules = granted("clusterrole.yaml")?;
    rules.extend(granted("role.yaml")?);
    let rare = |(verb, resource): &&Right| IN_TROUBLE.iter().any(|(v, r, _)| v == verb && r == resource);
    let allowed: BTreeSet<Right> = rules.iter().flat_map(rights).collect();
    let unused: Vec<_> = allowed.difference(&used).filter(|right| !rare(right)).collect();
    wait::ensure(unused.is_empty(), || {
        format!("the role allows what nothing does: {unused:?}")
    })
}

fn exercise(scene: &Scene, kubeconfig: &Path) -> Result<(), String> {
    let operator = scene.lab.start_operator_as(kubeconfig, &LONG_LEASE)?;
    let standby = scene.lab.start_operator_as(kubeconfig, &LONG_LEASE)?;
    exercise_every_feature(scene)?;
    operator.stop()?;
    standby.stop()
}

/// Everything that users do with pools and claims, once.
fn exercise_every_feature(scene: &Scene) -> Result<(), String> {
    scene.create(TEMPLATES, &template("shared", &json!({})))?;
    scene.create_pool(&pool_of("shared", "shared", 1, &json!({})))?;
    scene.create_pool(&pool("python", 4, &json!({"revisionHistoryLimit": 1})))?;
    wait_until_at_rest(scene, 60)?;
    // A rollout back to what was there before has its revision counted up, and its event as well.
    for image in [NEW_IMAGE, OLD_IMAGE, NEW_IMAGE, "sandbox:3"] {
        scene.roll_to("python", image)?;
        wait_until_at_rest(scene, 60)?;
    }
    let claims = burst(scene, "run", 2, "python", &json!({}))?;
    for claim in &claims {
        let claim = bound(scene, claim)?;
        let name = claim.pointer("/status/sandboxes/0/name").and_then(Value::as_str);
        let pod = scene.pod(name.unwrap_or_default())?;
        let fields = &pod["metadata"]["managedFields"];
        let mut managers = fields.as_array().into_iter().flatten();
        wait::ensure(managers.any(|entry| entry["manager"] == "warmpool"), || {
            format!("no field of a bound pod is the operator's: {fields}")
        })?;
    }
    let ends = json!({"lifetimeSeconds": 1, "ttlSecondsAfterFinished": 1});
    scene.create_claim("short", "python", &ends)?;
    wait::until("a claim that has ended was deleted", 30, || {
        let names: Vec<Value> = scene
            .claims()?
            .iter()
            .map(|c| c["metadata"]["name"].clone())
            .collect();
        wait::ensure(!names.contains(&json!("short")), || format!("{names:?}"))
    })?;
    // The loss of a claimed sandbox is believed only after a live read.
    let (lost, _) = super::sandbox(&scene.claim(&claims[0])?);
    scene.kubectl(&["delete", "pod", &lost], None)?;
    super::in_phase(scene, &claims[0], "Failed", 30)?;
    scene.delete_claim(&claims[0])?;
    // The pool's PodDisruptionBudget follows.
    scene.patch_pool("python", &json!({"spec": {"replicas": 2}}))?;
    wait_until_at_rest(scene, 60)?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
    wait::until("the PodDisruptionBudget was gone", 30, || {
        let budget = scene.lab.api.get(BUDGETS, &scene.namespace, "python-unclaimed")?;
        wait::ensure(budget.is_none(), || format!("{budget:?}"))
    })?;
    wait_until_at_rest(scene, 60)
}
