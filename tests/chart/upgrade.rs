//! Checks that claims survive upgrade, rollback and uninstall.

use crate::api::{CLAIMS, CRDS, PODS, POOLS};
use crate::check::{self, Rules};
use crate::cluster::repository;
use crate::history::Watcher;
use crate::objects::{claim, pool};
use crate::plane::{CHART, DEPLOYMENTS, OUR_CRDS, Plane, SYSTEM, TEAM};
use crate::wait::{ensure, until};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A field of the pools' CRD that the earlier revision of the chart does not have.
const NEW_FIELD: &str = "revisionHistoryLimit";

/// An earlier revision of the chart: of a lower version, without a field in the CRD and without a network policy.
fn earlier(folder: &Path) -> Result<String, String> {
    let at = folder.join("warmpool");
    copy(&repository().join(CHART), &at)?;
    let edit = |name: &str, change: &dyn Fn(&mut Value)| {
        let path = at.join(name);
        let text = fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
        let mut object: Value = serde_yaml_ng::from_str(&text).map_err(|e| format!("{name}: {e}"))?;
        change(&mut object);
        let text = serde_yaml_ng::to_string(&object).map_err(|e| e.to_string())?;
        fs::write(&path, text).map_err(|e| format!("{name}: {e}"))
    };
    edit("Chart.yaml", &|chart| {
        chart["version"] = json!("0.0.9");
        chart["appVersion"] = json!("0.0.9");
    })?;
    edit("files/crds/warmpool.dev_pools.yaml", &|crd| {
        let fields = &mut fields_of(crd)["spec"]["properties"];
        _ = fields.as_object_mut().map(|f| f.remove(NEW_FIELD));
    })?;
    fs::remove_file(at.join("templates/networkpolicy.yaml")).map_err(|e| e.to_string())?;
    Ok(at.to_string_lossy().into_owned())
}

fn fields_of(crd: &mut Value) -> &mut Value {
    &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| e.to_string())?;
    for entry in fs::read_dir(from)
        .map_err(|e| format!("{}: {e}", from.display()))?
        .flatten()
    {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// Which chart the objects of the release are from, by their labels; and whether the CRD has the new field.
fn installed(plane: &Plane) -> Result<(Vec<String>, bool), String> {
    let mut crd = plane.get(CRDS, "", OUR_CRDS[0])?;
    let deployment = plane.get(DEPLOYMENTS, SYSTEM, "warmpool")?;
    let charts = [&crd, &deployment].map(|object| object["metadata"]["labels"]["helm.sh/chart"].to_string());
    let has = fields_of(&mut crd)["spec"]["properties"][NEW_FIELD].is_object();
    Ok((charts.to_vec(), has))
}

fn expect_installed(plane: &Plane, version: &str, has: bool) -> Result<(), String> {
    let found = installed(plane)?;
    let chart = json!(format!("warmpool-{version}")).to_string();
    ensure(found == (vec![chart.clone(), chart], has), || {
        format!("{version} should be installed, but there are the charts and {NEW_FIELD}: {found:?}")
    })
}

/// The claim still has the sandbox that it was bound to, and its pod lives.
fn keeps(plane: &Plane, claim: &str, sandbox: &Value) -> Result<(), String> {
    let now = plane.sandbox_of(claim)?;
    ensure(now["uid"] == sandbox["uid"], || {
        format!("claim {claim} had {sandbox} and now has {now}")
    })?;
    let pod = plane.get(PODS, TEAM, sandbox["name"].as_str().unwrap_or_default())?;
    let lives = pod["metadata"]["uid"] == sandbox["uid"] && pod["metadata"]["deletionTimestamp"].is_null();
    ensure(lives, || format!("the pod of claim {claim} is {pod}"))
}

pub fn claims_live_through_upgrade_rollback_and_uninstall(plane: &Plane) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let before = earlier(folder.path())?;
    plane.restricted()?;
    plane.team()?;

    plane.install(&before, &[])?;
    expect_installed(plane, "0.0.9", false)?;
    let operator = plane.operator()?;
    let with_field = pool("python", 3, &json!({NEW_FIELD: 2}));
    let unknown = until("pools were known, but not the new field", 30, || {
        match plane.api.try_create(POOLS, TEAM, &with_field) {
            Err(error) if error.message.contains(NEW_FIELD) => Ok(error.message),
            answer => Err(format!("{answer:?}")),
        }
    })?;
    ensure(unknown.contains("unknown field"), || unknown.clone())?;
    let path = plane.cluster.dir.join("upgrade.jsonl");
    // A new type is known before the server has its cache, and until then it answers 429.
    let watcher = until("the new types could be watched", 30, || {
        Watcher::start(&plane.api, TEAM, &path)
    })?;
    plane.create(POOLS, &pool("python", 3, &json!({})))?;
    plane.create(CLAIMS, &claim("first", "python", &json!({})))?;
    let first = plane.sandbox_of("first")?;
    plane.available("python", 3)?;

    plane.upgrade(CHART, &[])?;
    expect_installed(plane, env!("CARGO_PKG_VERSION"), true)?;
    until("the new field could be written", 30, || {
        let limit = json!({"spec": {NEW_FIELD: 2}});
        let changed = plane.api.merge(POOLS, TEAM, "python", &limit)?;
        ensure(changed["spec"][NEW_FIELD] == 2, || changed["spec"].to_string())
    })?;
    operator.stop()?;
    let operator = plane.operator()?;
    keeps(plane, "first", &first)?;
    plane.create(CLAIMS, &claim("second", "python", &json!({})))?;
    let second = plane.sandbox_of("second")?;

    plane.helm_and_wait(&["rollback", "warmpool", "1"], &[])?;
    expect_installed(plane, "0.0.9", false)?;
    operator.stop()?;
    let operator = plane.operator()?;
    plane.create(CLAIMS, &claim("third", "python", &json!({})))?;
    plane.sandbox_of("third")?;
    keeps(plane, "first", &first)?;
    keeps(plane, "second", &second)?;

    // Helm takes the roles away first, and an operator that is still there would say that it misses them.
    operator.stop()?;
    plane.helm_and_wait(&["uninstall", "warmpool"], &[])?;
    let gone = plane.cluster.kubectl(
        &[
            "get",
            "deployment,serviceaccount,clusterrole,validatingadmissionpolicy,priorityclass",
            "-n",
            SYSTEM,
            "-l",
            "app.kubernetes.io/part-of=warmpool",
            "-o",
            "name",
        ],
        None,
    )?;
    ensure(gone.is_empty(), || format!("helm uninstall left {gone}"))?;
    keeps(plane, "first", &first)?;
    keeps(plane, "second", &second)?;

    plane.install(CHART, &[])?;
    expect_installed(plane, env!("CARGO_PKG_VERSION"), true)?;
    let operator = plane.operator()?;
    plane.create(CLAIMS, &claim("fourth", "python", &json!({})))?;
    plane.sandbox_of("fourth")?;
    plane.available("python", 3)?;
    keeps(plane, "first", &first)?;
    keeps(plane, "second", &second)?;
    operator.stop()?;
    plane.nothing_was_forbidden()?;

    let events = watcher.finish()?;
    // The CRDs changed under the watcher, and at times no operator ran.
    let rules = Rules {
        gaps: true,
        idle: None,
        ..Rules::default()
    };
    let verdict = check::judge(&events, &rules);
    ensure(verdict.accusations.is_empty(), || {
        let all: Vec<String> = verdict.accusations.iter().map(ToString::to_string).collect();
        all.join("\n")
    })
}

pub fn crds_that_are_not_kept_go_with_the_release(plane: &Plane) -> Result<(), String> {
    plane.team()?;
    plane.install(CHART, &["--create-namespace", "--set", "crds.keep=false"])?;
    plane.create(POOLS, &pool("python", 1, &json!({})))?;
    plane.helm(&["uninstall", "warmpool", "-n", SYSTEM])?;
    for name in OUR_CRDS {
        let crd = plane.api.get(CRDS, "", name)?;
        let stays = crd.is_some_and(|crd| crd["metadata"]["deletionTimestamp"].is_null());
        ensure(!stays, || format!("{name} is still there"))?;
    }
    plane.cluster.delete_types(&[&["crd"][..], &OUR_CRDS].concat())
}
