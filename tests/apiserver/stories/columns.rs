//! Checks what `kubectl get` prints of pools and claims.

use super::{bound, in_phase, pool_says, sandbox, says};
use crate::api::PODS;
use crate::check::event::text;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{NEW_IMAGE, pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

const CHECKED: &str = "example.com/checked";

/// A table as kubectl prints it: its header, and the cells of the row that begins with `name`. A cell may be empty.
fn row(printed: &str, name: &str) -> Result<(Vec<String>, Vec<String>), String> {
    let mut lines = printed.lines();
    let header = lines.next().unwrap_or_default();
    let row = lines
        .find(|line| line.split_whitespace().next() == Some(name))
        .ok_or_else(|| format!("no row {name} in\n{printed}"))?;
    let names: Vec<String> = header.split_whitespace().map(String::from).collect();
    // Each column begins where its title does.
    let mut starts: Vec<usize> = Vec::new();
    for name in &names {
        let from = starts.last().map_or(0, |start| start + 1);
        let at = header.get(from..).and_then(|rest| rest.find(name.as_str()));
        starts.push(from + at.unwrap_or(0));
    }
    let ends = starts.iter().skip(1).copied().chain([row.len()]);
    let cell = |(start, end): (&usize, usize)| {
        row.get(*start..end.min(row.len()))
            .unwrap_or_default()
            .trim()
            .to_string()
    };
    Ok((names, starts.iter().zip(ends).map(cell).collect()))
}

fn prints(scene: &Scene, arguments: &[&str], header: &[&str], cells: &[&str]) -> Result<(), String> {
    let printed = scene.kubectl(arguments, None)?;
    let name = cells.first().copied().unwrap_or_default();
    let (titles, mut row) = row(&printed, name)?;
    // The age changes with every second.
    if let Some(age) = titles.iter().position(|title| title == "AGE") {
        let seconds = row.get_mut(age).map(std::mem::take).unwrap_or_default();
        wait::ensure(seconds.ends_with('s'), || {
            format!("age {seconds:?} in\n{printed}")
        })?;
    }
    wait::ensure(titles == header && row == cells, || {
        format!("{header:?} and {cells:?} are expected, and kubectl prints\n{printed}")
    })
}

/// No two columns of the pool have the same value, so that none can stand for another.
pub fn every_column_of_a_pool_has_its_own_value(scene: &Scene) -> Result<(), String> {
    let hook = json!({"labelsHandler": {CHECKED: "yes"}});
    let more = json!({
        "lifecycle": {"preNormal": hook},
        "updateStrategy": {"partition": 5},
        "template": {"metadata": {"labels": {CHECKED: "yes"}}},
    });
    scene.create_pool(&pool("python", 9, &with(sim(&[("ready-after", "100ms")]), &more)))?;
    wait_until_at_rest(scene, 60)?;
    scene.roll_to("python", NEW_IMAGE)?;
    pool_says(scene, "python", "Progressing", "PartitionComplete")?;
    for name in ["run-0", "run-1"] {
        scene.create_claim(name, "python", &json!({}))?;
        bound(scene, name)?;
    }
    counts(scene, &[("available", 9), ("claimed", 2)])?;
    scene.create_claim("waits", "python", &json!({"replicas": 50, "onEmpty": "Wait"}))?;
    says(scene, "waits", "Bound", "Exhausted")?;
    let state = ClusterState::read(scene)?;
    let names: Vec<&str> = state
        .unclaimed("python")
        .iter()
        .map(|p| text(p, "/metadata/name"))
        .collect();
    let [unready, unchecked, ..] = names[..] else {
        return Err(format!("{names:?}"));
    };
    let patch = |pod: &str, metadata: Value| {
        let patched = scene
            .lab
            .api
            .merge(PODS, &scene.namespace, pod, &json!({"metadata": metadata}));
        patched.map(drop).map_err(String::from)
    };
    patch(
        unready,
        json!({"annotations": {"sim.warmpool.dev/unready": "true"}}),
    )?;
    patch(unchecked, json!({"labels": {CHECKED: null}}))?;
    counts(
        scene,
        &[
            ("total", 11),
            ("claimed", 2),
            ("available", 7),
            ("updated", 4),
            ("ready", 8),
            ("pendingClaims", 1),
        ],
    )?;
    let narrow = [
        "NAME",
        "DESIRED",
        "TOTAL",
        "CLAIMED",
        "AVAILABLE",
        "UPDATED",
        "AGE",
    ];
    prints(
        scene,
        &["get", "pools"],
        &narrow,
        &["python", "9", "11", "2", "7", "4", ""],
    )?;
    let revision = text(&scene.pool("python")?, "/status/updateRevision").to_string();
    let titles = [
        "NAME",
        "DESIRED",
        "TOTAL",
        "CLAIMED",
        "AVAILABLE",
        "UPDATED",
        "READY",
        "PENDING",
        "REVISION",
        "STRATEGY",
        "PAUSED",
        "REASON",
        "AGE",
    ];
    let cells = [
        "python",
        "9",
        "11",
        "2",
        "7",
        "4",
        "8",
        "1",
        &revision,
        "RollingUpdate",
        "false",
        "PartitionComplete",
        "",
    ];
    prints(scene, &["get", "wp", "-o", "wide"], &titles, &cells)?;
    desired_is_the_chosen_size(scene, &narrow)
}

/// A pool that wants more than `replicas` and may have fewer: DESIRED is what it wants.
fn desired_is_the_chosen_size(scene: &Scene, titles: &[&str]) -> Result<(), String> {
    let always =
        json!({"name": "always", "schedule": "0 0 * * *", "durationSeconds": 86400, "minReplicas": 6});
    let more = json!({
        "autoscaling": {"maxReplicas": 6, "schedules": [always]},
        "capacity": {"maxTotal": 7},
    });
    scene.create_pool(&pool("scaled", 1, &with(sim(&[("ready-after", "100ms")]), &more)))?;
    scene.create_claim("two", "scaled", &json!({"replicas": 2}))?;
    bound(scene, "two")?;
    wait::until("DESIRED was the chosen size", 30, || {
        let cells = ["scaled", "6", "7", "2", "5", "5", ""];
        prints(scene, &["get", "pools"], titles, &cells)
    })
}

pub fn every_column_of_a_claim_has_its_own_value(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 1, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("run", "python", &json!({}))?;
    let status = bound(scene, "run")?["status"].clone();
    scene.create_claim("waits", "nowhere", &json!({}))?;
    says(scene, "waits", "Bound", "PoolNotFound")?;
    let [sandbox, ip, wait] = ["/sandboxes/0/name", "/sandboxes/0/ip", "/wait"].map(|at| text(&status, at));
    let header = [
        "NAME", "POOL", "PHASE", "READY", "SANDBOX", "IP", "WAIT", "REASON", "AGE",
    ];
    wait::ensure([sandbox, ip, wait].iter().all(|cell| !cell.is_empty()), || {
        status.to_string()
    })?;
    prints(
        scene,
        &["get", "sbc"],
        &header,
        &["run", "python", "Bound", "1/1", sandbox, ip, wait, "", ""],
    )?;
    prints(
        scene,
        &["get", "sbc"],
        &header,
        &[
            "waits",
            "nowhere",
            "Pending",
            "0/1",
            "",
            "",
            "",
            "PoolNotFound",
            "",
        ],
    )?;
    let node = text(&status, "/sandboxes/0/node");
    let wide: Vec<&str> = header
        .into_iter()
        .chain(["NODE", "SANDBOXES", "MESSAGE"])
        .collect();
    let message = format!("sandbox {sandbox} is ready");
    prints(
        scene,
        &["get", "sbc", "-o", "wide"],
        &wide,
        &[
            "run", "python", "Bound", "1/1", sandbox, ip, wait, "", "", node, "", &message,
        ],
    )
}

pub fn the_wide_table_names_all_sandboxes_of_a_claim(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("batch", "python", &json!({"replicas": 3}))?;
    let status = bound(scene, "batch")?["status"].clone();
    let names: Vec<&str> = (0..3)
        .map(|number| text(&status["sandboxes"][number], "/name"))
        .collect();
    let table = scene.kubectl(&["get", "sbc", "batch", "-o", "wide", "--no-headers"], None)?;
    let shown = table.split_whitespace().any(|cell| cell == names.join(","));
    wait::ensure(shown, || format!("{names:?} are not in {table}"))
}

pub fn a_claim_that_has_ended_shows_no_address_that_answers_no_more(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let address =
        |claim: &str| Ok::<_, String>(text(&scene.claim(claim)?, "/status/sandboxes/0/ip").to_string());
    for (name, policy) in [("gone", "Delete"), ("kept", "Retain")] {
        scene.create_claim(
            name,
            "python",
            &json!({"lifetimeSeconds": 1, "releasePolicy": policy}),
        )?;
        in_phase(scene, name, "Expired", 30)?;
    }
    scene.create_claim("lost", "python", &json!({}))?;
    let (pod, _) = sandbox(&bound(scene, "lost")?);
    wait::ensure(!address("lost")?.is_empty(), || {
        "a bound claim has no address".to_string()
    })?;
    scene.lab.api.delete(PODS, &scene.namespace, &pod)?;
    in_phase(scene, "lost", "Failed", 30)?;
    for (name, has) in [("gone", false), ("kept", true), ("lost", false)] {
        let shown = address(name)?;
        wait::ensure(shown.is_empty() != has, || {
            format!("{name} shows the address {shown:?}")
        })?;
    }
    let (pod, _) = sandbox(&scene.claim("kept")?);
    scene.lab.api.delete(PODS, &scene.namespace, &pod)?;
    wait::until("the address of the retained sandbox went with it", 30, || {
        let shown = address("kept")?;
        wait::ensure(shown.is_empty(), || shown)
    })?;
    ["gone", "kept", "lost"]
        .iter()
        .try_for_each(|claim| scene.delete_claim(claim))?;
    wait_until_at_rest(scene, 60)
}

fn counts(scene: &Scene, wanted: &[(&str, i64)]) -> Result<(), String> {
    wait::until(&format!("the status counted {wanted:?}"), 30, || {
        let status = scene.pool("python")?["status"].clone();
        let right = wanted.iter().all(|(field, n)| status[field].as_i64() == Some(*n));
        wait::ensure(right, || status.to_string())
    })
}
