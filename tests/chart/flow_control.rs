//! Checks that with `flowControl` the API server serves the operator from a queue of its own.

use crate::api::{ACCOUNTS, Api, CLAIMS, PODS, POOLS, Resource};
use crate::objects::{claim, pool};
use crate::plane::{CHART, Plane, TEAM};
use crate::wait::ensure;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SCHEMAS: Resource = Resource("/apis/flowcontrol.apiserver.k8s.io/v1", "flowschemas");
/// The schema of all ServiceAccounts, which the flood comes under.
const OTHERS: &str = "service-accounts";
const OURS: &str = "warmpool";
/// Requests that the flood has under way at any time.
const FLOOD: usize = 60;
const CLAIMS_MADE: usize = 8;

/// How many requests the API server has dispatched under a flow schema, at its priority level.
fn dispatched(plane: &Plane, schema: &str) -> Result<f64, String> {
    let metrics = plane.cluster.kubectl(&["get", "--raw", "/metrics"], None)?;
    let of_schema = format!("flow_schema=\"{schema}\"");
    let counts = metrics.lines().filter(|line| {
        line.starts_with("apiserver_flowcontrol_dispatched_requests_total{") && line.contains(&of_schema)
    });
    Ok(counts
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum())
}

/// A client of an account that may read the pods of the team.
fn reader(plane: &Plane) -> Result<Api, String> {
    let name = "flood";
    let account = json!({"metadata": {"name": name}});
    plane.api.create(ACCOUNTS, TEAM, &account)?;
    let subject = format!("--serviceaccount={TEAM}:{name}");
    let bind = [
        "-n",
        TEAM,
        "create",
        "rolebinding",
        name,
        "--clusterrole=view",
        &subject,
    ];
    plane.cluster.kubectl(&bind, None)?;
    let kubeconfig = plane.cluster.dir.join("flood.kubeconfig");
    let written = kubeconfig.to_string_lossy().into_owned();
    plane.cluster.tool(&["token", TEAM, name, "--out", &written])?;
    Api::connect(&kubeconfig, plane.api.runtime())
}

/// How long each of some claims waits for its sandbox.
fn bind(plane: &Plane, prefix: &str) -> Result<Vec<Duration>, String> {
    (0..CLAIMS_MADE)
        .map(|number| {
            let name = format!("{prefix}-{number}");
            let since = Instant::now();
            plane.create(CLAIMS, &claim(&name, "python", &json!({})))?;
            plane.sandbox_of(&name).map(|_| since.elapsed())
        })
        .collect()
}

pub fn the_operator_has_a_queue_of_its_own_while_another_client_floods_the_server(
    plane: &Plane,
) -> Result<(), String> {
    plane.install(
        CHART,
        &["--create-namespace", "--set", "flowControl.enabled=true"],
    )?;
    plane.get(SCHEMAS, "", OURS)?;
    plane.team()?;
    let operator = plane.operator()?;
    let replicas = 2 * CLAIMS_MADE;
    plane.create(
        POOLS,
        &pool("python", replicas.try_into().unwrap_or(0), &json!({})),
    )?;
    plane.available("python", replicas.try_into().unwrap_or(0))?;
    let quiet = bind(plane, "quiet")?;
    let flood = reader(plane)?;
    let (ours, others) = (dispatched(plane, OURS)?, dispatched(plane, OTHERS)?);
    let (over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let flooded = thread::scope(|scope| {
        for _ in 0..FLOOD {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    // A refusal for too many requests is what the flood is there for.
                    _ = flood.list(PODS, TEAM);
                    answers.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let bound = bind(plane, "flooded");
        over.store(true, Ordering::SeqCst);
        bound
    })?;
    let ours = dispatched(plane, OURS)? - ours;
    let others = dispatched(plane, OTHERS)? - others;
    let answers = answers.into_inner();
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times.get(CLAIMS_MADE / 2).copied().unwrap_or_default()
    };
    eprintln!(
        "binding, median: {:.0?} at rest, {:.0?} beside a flood of {answers} requests; dispatched meanwhile: {ours} for the \
         operator, {others} for other accounts",
        median(quiet),
        median(flooded)
    );
    // Two writes bind a claim, and each sandbox is replaced.
    let least = 2.0 * CLAIMS_MADE as f64;
    ensure(ours >= least, || {
        format!("only {ours} requests were dispatched under the operator's flow schema")
    })?;
    // The flood waits in another queue, and the operator sends none of its requests there.
    ensure(others >= FLOOD as f64 && ours < others, || {
        format!("{others} requests were dispatched under {OTHERS}, {ours} under {OURS}")
    })?;
    plane.nothing_was_forbidden()?;
    operator.stop()
}
