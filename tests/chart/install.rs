//! Checks the chart on a cluster that has never had it.

use crate::api::{CLAIMS, PODS, POOLS};
use crate::cluster::output_of;
use crate::files::{annotation, yaml};
use crate::objects::{claim, pool};
use crate::plane::{CHART, DEPLOYMENTS, Plane, SYSTEM, TEAM};
use crate::wait::{ensure, until};
use serde_json::{Value, json};
use std::process::Command;

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

pub fn the_notes_name_the_deployment_of_each_shard(plane: &Plane) -> Result<(), String> {
    let shards = ["-f", "tests/chart/values/shards.yaml", "--dry-run=client"];
    let notes = plane.install(CHART, &shards)?;
    for name in ["one", "rest"] {
        let command = format!("kubectl -n {SYSTEM} rollout status deployment/warmpool-{name}\n");
        ensure(notes.contains(&command), || {
            format!("the notes lack {command:?}:\n{notes}")
        })?;
    }
    ensure(!notes.contains("deployment/warmpool\n"), || {
        format!("the notes name a Deployment that is not there:\n{notes}")
    })
}

/// No container runs here, so the pod's command is run beside the cluster, with the rights of the pod's account.
pub fn helm_test_plans_with_the_rights_of_the_operator(plane: &Plane) -> Result<(), String> {
    plane.restricted()?;
    plane.install(CHART, &[])?;
    plane.team()?;
    plane.create(POOLS, &pool("planned", 2, &json!({})))?;
    for example in annotation(
        &yaml("charts/warmpool/Chart.yaml")?,
        "artifacthub.io/crdsExamples",
    )? {
        let check = [
            "-n",
            TEAM,
            "create",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            "-",
        ];
        plane.cluster.kubectl(&check, Some(&example.to_string()))?;
    }
    helm_test(plane)?;
    plane.nothing_was_forbidden()
}

pub fn helm_test_plans_in_the_one_namespace_that_the_operator_watches(plane: &Plane) -> Result<(), String> {
    plane.team()?;
    plane.install(
        CHART,
        &["--create-namespace", "--set", &format!("watchNamespace={TEAM}")],
    )?;
    plane.create(POOLS, &pool("planned", 2, &json!({})))?;
    until("the API server listed the new kinds", 30, || {
        for kind in [POOLS, CLAIMS] {
            plane.api.list(kind, TEAM)?;
        }
        Ok(())
    })?;
    helm_test(plane)
}

/// Runs `helm test`, with what its pod would do done here: simulated pods have no containers.
fn helm_test(plane: &Plane) -> Result<(), String> {
    std::thread::scope(|scope| {
        let test = scope.spawn(|| plane.helm(&["test", "warmpool", "-n", SYSTEM, "--timeout", "60s"]));
        let pod = until("helm test created its pod", 30, || {
            plane.get(PODS, SYSTEM, "warmpool-test")
        })?;
        let container = &pod["spec"]["containers"][0];
        let planned = plan_as(plane, &pod["spec"]["serviceAccountName"], &container["args"])?;
        ensure(planned.contains("CreatePod"), || {
            format!("the plan is {planned:?}")
        })?;
        let done = [
            "-n",
            SYSTEM,
            "annotate",
            "pod",
            "warmpool-test",
            "sim.warmpool.dev/finish-after=0s",
        ];
        plane.cluster.kubectl(&done, None)?;
        let said = test.join().map_err(|_| "helm test panicked")??;
        ensure(said.contains("Succeeded"), || format!("helm test says {said}"))
    })?;
    let delete = ["-n", SYSTEM, "delete", "pod", "warmpool-test"];
    plane.cluster.kubectl(&delete, None).map(drop)
}

/// Runs the binary with the arguments of a container and the rights of an account of the operator's namespace.
fn plan_as(plane: &Plane, account: &Value, arguments: &Value) -> Result<String, String> {
    let kubeconfig = plane.cluster.dir.join("helm-test.kubeconfig");
    let account = account.as_str().unwrap_or_default();
    plane
        .cluster
        .tool(&["token", SYSTEM, account, "--out", &kubeconfig.to_string_lossy()])?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmpool"));
    command
        .args(
            arguments
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str),
        )
        .env("KUBECONFIG", kubeconfig);
    output_of(command, None)
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
