//! Checks an installation by `kubectl apply -k`, without Helm.

use crate::api::{CLAIMS, POOLS};
use crate::objects::{claim, pool};
use crate::plane::{CHART, Plane, TEAM};
use crate::wait::{ensure, until};
use serde_json::json;

pub fn kubectl_apply_k_installs_it(plane: &Plane) -> Result<(), String> {
    let installed = install_and_check(plane);
    // Helm does not know what kubectl created, so the test removes it.
    let types = plane.cluster.delete_types(&["-k", "crds"]);
    let delete = ["delete", "-k", "config/default", "--ignore-not-found", "--wait"];
    let removed = plane.cluster.kubectl(&delete, None);
    installed.and(types).and(removed).map(drop)
}

fn install_and_check(plane: &Plane) -> Result<String, String> {
    plane.team()?;
    // A namespace that is new, and objects in it: the first try may be too early.
    until("everything was applied", 30, || {
        plane.cluster.kubectl(&["apply", "-k", "config/default"], None)
    })?;
    let status = [
        "-n",
        "warmpool-system",
        "rollout",
        "status",
        "deployment/warmpool",
        "--timeout=60s",
    ];
    plane.cluster.kubectl(&status, None)?;
    let again = plane.cluster.kubectl(&["diff", "-k", "config/default"], None)?;
    ensure(again.is_empty(), || {
        format!("applied twice it would change:\n{again}")
    })?;
    let operator = plane.operator()?;
    plane.create(POOLS, &pool("python", 1, &json!({})))?;
    plane.create(CLAIMS, &claim("run-1", "python", &json!({})))?;
    plane.sandbox_of("run-1")?;
    operator.stop()?;
    plane.nothing_was_forbidden()?;
    plane.api.delete(CLAIMS, TEAM, "run-1")?;
    let said = plane.install(CHART, &[]).err().unwrap_or_default();
    ensure(
        said.contains("did not use Helm (kubectl apply -k config/default?)"),
        || format!("Helm said {said:?}"),
    )?;
    Ok(said)
}
