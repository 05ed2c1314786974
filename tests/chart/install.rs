//! Checks the chart on a cluster that has never had it.

use crate::api::{CLAIMS, PODS, POOLS};
use crate::objects::{claim, pool};
use crate::plane::{CHART, DEPLOYMENTS, Plane, SYSTEM, TEAM};
use crate::wait::{ensure, until};
use serde_json::json;

pub fn the_chart_runs_where_only_restricted_pods_may(plane: &Plane) -> Result<(), String> {
    plane.restricted()?;
    let careless = json!({
        "metadata": {"name": "careless"},
        "spec": {"containers": [{"name": "main", "image": "any"}]},
    });
    let refused = plane.api.try_create(PODS, SYSTEM, &careless);
    let said = refused.err().map(|r| r.message).unwrap_or_default();
    ensure(said.contains("violates PodSecurity"), || {
        format!("a pod of any kind may run in {SYSTEM}: {said:?}")
    })?;

    let notes = plane.install(CHART, &[])?;
    for words in [
        "kubectl -n warmpool-system rollout status deployment/warmpool",
        "kind: Pool",
        "helm uninstall leaves",
    ] {
        ensure(notes.contains(words), || {
            format!("the notes lack {words:?}:\n{notes}")
        })?;
    }
    let deployment = plane.get(DEPLOYMENTS, SYSTEM, "warmpool")?;
    ensure(deployment["status"]["readyReplicas"] == 2, || {
        format!("the Deployment says {}", deployment["status"])
    })?;

    let mut operator = plane.operator()?;
    plane.team()?;
    plane.create(POOLS, &pool("python", 3, &json!({})))?;
    plane.available("python", 3)?;
    plane.create(CLAIMS, &claim("run-1", "python", &json!({})))?;
    plane.sandbox_of("run-1")?;
    plane.available("python", 3)?;
    plane.api.delete(CLAIMS, TEAM, "run-1")?;
    operator.lives()?;
    operator.stop()?;
    plane.nothing_was_forbidden()
}

pub fn without_its_crds_the_chart_says_what_is_missing(plane: &Plane) -> Result<(), String> {
    let notes = plane.install(CHART, &["--create-namespace", "--set", "crds.enabled=false"])?;
    ensure(notes.contains("kubectl apply -k crds"), || {
        format!("the notes do not say that the CRDs are missing:\n{notes}")
    })?;
    plane.cluster.kubectl(&["apply", "-k", "crds"], None)?;
    until("the server told of the new types", 30, || {
        let types = plane
            .cluster
            .kubectl(&["api-resources", "--api-group=warmpool.dev", "-o", "name"], None)?;
        ensure(types.lines().count() == 2, || types.clone())
    })?;
    let notes = plane.upgrade(CHART, &["--set", "crds.enabled=false"])?;
    ensure(!notes.contains("kubectl apply -k crds"), || {
        format!("the notes say that CRDs are missing which are there:\n{notes}")
    })
}
