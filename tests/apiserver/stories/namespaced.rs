//! Checks an operator that serves one namespace with a Role.

use super::metrics::served;
use super::{all_bound, burst};
use crate::accounts::account;
use crate::api::{NAMESPACES, PODS, POOLS};
use crate::cluster_state::wait_until_at_rest;
use crate::http;
use crate::objects::{NEW_IMAGE, pool};
use crate::operator::LONG_LEASE;
use crate::rbac::granted;
use crate::scene::{Scene, make_namespace};
use crate::wait;
use serde_json::{Value, json};

const OPERATOR: &str = "own-operator";

pub fn with_a_role_it_serves_its_namespace_and_leaves_others_alone(scene: &Scene) -> Result<(), String> {
    let rules: Vec<Value> = granted("clusterrole.yaml")?
        .into_iter()
        .chain(granted("role.yaml")?)
        .collect();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": OPERATOR}, "rules": rules,
    });
    scene.kubectl(&["create", "-f", "-"], Some(&role.to_string()))?;
    let kubeconfig = account(scene.lab, &scene.namespace, OPERATOR)?;
    let subject = format!("--serviceaccount={}:{OPERATOR}", scene.namespace);
    let role = format!("--role={OPERATOR}");
    scene.kubectl(&["create", "rolebinding", OPERATOR, &role, &subject], None)?;

    let elsewhere = format!("{}-2", scene.namespace.get(..40).unwrap_or(&scene.namespace));
    make_namespace(scene.lab, &elsewhere)?;
    scene
        .lab
        .api
        .create(POOLS, &elsewhere, &pool("python", 4, &json!({})))?;
    let arguments = [
        "--namespace",
        &scene.namespace,
        "--health-probe-bind-address=127.0.0.1:0",
    ];
    let arguments = [&arguments[..], &LONG_LEASE].concat();
    let operator = scene.lab.start_operator_as(&kubeconfig, &arguments)?;
    scene.create_pool(&pool("python", 4, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    // No Role grants the right to read nodes.
    let said = super::pool_says(scene, "python", "Available", "MinimumReplicasAvailable")?;
    let why = "the operator may not list and watch nodes";
    wait::ensure(said.contains(why), || said.clone())?;
    let times = operator.text()?.matches(why).count();
    wait::ensure(times == 1, || format!("the log says it {times} times"))?;
    let health = served(&operator, "health-probe-bind-address")?;
    let ready = http::get(&health, "/readyz")?;
    wait::ensure(ready == (200, "ok".to_string()), || format!("{ready:?}"))?;
    let claims = burst(scene, "run", 3, "python", &json!({}))?;
    all_bound(scene, &claims)?;
    scene.roll_to("python", NEW_IMAGE)?;
    wait_until_at_rest(scene, 60)?;
    let untouched = scene.lab.api.list(PODS, &elsewhere)?;
    let silent = scene.lab.api.get(POOLS, &elsewhere, "python")?;
    scene.lab.api.delete(NAMESPACES, "", &elsewhere)?;
    wait::ensure(untouched.is_empty(), || {
        format!("elsewhere there are {untouched:?}")
    })?;
    wait::ensure(
        silent.as_ref().is_some_and(|pool| pool["status"].is_null()),
        || format!("the pool elsewhere is {silent:?}"),
    )?;
    operator.stop()
}
