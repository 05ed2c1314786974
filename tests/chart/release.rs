//! Checks `make release` with the binary of the tests, and the workflow that publishes a release.

use crate::cluster::{binaries, output_of, repository};
use crate::files::{annotation, yaml};
use crate::plane::{documents, helm};
use crate::wait::ensure;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const IMAGE: &str = "registry.example.com/team/warmpool";
const SOURCE: &str = "https://git.example.com/warmpool";

fn release(version: &str, out: &Path) -> Result<String, String> {
    let mut command = Command::new(repository().join("packaging/release.sh"));
    command
        .arg(version)
        .arg(out)
        .env("WARMPOOL_CLUSTER_BIN", binaries())
        .env("BINARY", env!("CARGO_BIN_EXE_warmpool"))
        .env("IMAGE", IMAGE)
        .env("SOURCE", SOURCE);
    output_of(command, None)
}

pub fn a_release_is_whole_and_its_sums_hold() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let out = folder.path().join("out");
    release(VERSION, &out)?;
    let entries = fs::read_dir(&out).map_err(|e| e.to_string())?.flatten();
    let files: BTreeSet<String> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    let machine = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    };
    let plugin = format!("kubectl-warmpool-{VERSION}-linux-{machine}.tar.gz");
    let expected = BTreeSet::from([
        "SHA256SUMS".to_string(),
        plugin.clone(),
        format!("kubectl-warmpool-{VERSION}-krew.yaml"),
        format!("warmpool-{VERSION}.cdx.json"),
        format!("warmpool-{VERSION}.tgz"),
        format!("warmpool-crds-{VERSION}.yaml"),
    ]);
    ensure(files == expected, || format!("the release has {files:?}"))?;
    let mut sums = Command::new("sha256sum");
    sums.current_dir(&out).args(["--check", "--strict", "SHA256SUMS"]);
    let checked = output_of(sums, None)?;
    ensure(checked.lines().count() == expected.len() - 1, || {
        format!("the sums are of {checked}")
    })?;
    the_chart_names_the_image(&out)?;
    krew_accepts_the_manifest(&out, &plugin, machine)?;
    the_plugin_runs(&out, &plugin)?;
    the_bill_lists_the_crates(&out)?;
    let crds =
        fs::read_to_string(out.join(format!("warmpool-crds-{VERSION}.yaml"))).map_err(|e| e.to_string())?;
    let crds = documents(&crds)?;
    ensure(crds.len() == 2, || format!("{} CRDs", crds.len()))
}

fn the_chart_names_the_image(out: &Path) -> Result<(), String> {
    let chart = out.join(format!("warmpool-{VERSION}.tgz"));
    let chart = chart.to_string_lossy();
    let rendered = documents(&helm(&["template", "warmpool", &chart])?)?;
    let runs = |object: &&Value| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] == format!("{IMAGE}:{VERSION}")
    };
    ensure(rendered.iter().filter(runs).count() == 1, || {
        format!("no Deployment of the packaged chart runs {IMAGE}:{VERSION}")
    })?;
    let metadata: Value =
        serde_yaml_ng::from_str(&helm(&["show", "chart", &chart])?).map_err(|e| e.to_string())?;
    let images = annotation(&metadata, "artifacthub.io/images")?;
    let changes = annotation(&metadata, "artifacthub.io/changes")?;
    let told = images[0]["image"] == format!("{IMAGE}:{VERSION}")
        && metadata["sources"][0] == SOURCE
        && changes.len() > 3
        && changes
            .iter()
            .all(|change| change["kind"].is_string() && change["description"].is_string());
    ensure(told, || metadata.to_string())
}

/// What krew checks before it installs a plugin: the kind, the version, and of each platform the selector, the address, the sum of
/// the archive, and the files.
fn krew_accepts_the_manifest(out: &Path, plugin: &str, machine: &str) -> Result<(), String> {
    let path = out.join(format!("kubectl-warmpool-{VERSION}-krew.yaml"));
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let manifest: Value = serde_yaml_ng::from_str(&text).map_err(|e| e.to_string())?;
    let mut sum = Command::new("sha256sum");
    sum.current_dir(out).arg(plugin);
    let sum = output_of(sum, None)?;
    let platform = json!({
        "selector": {"matchLabels": {"os": "linux", "arch": machine}},
        "uri": format!("{SOURCE}/releases/download/v{VERSION}/{plugin}"),
        "sha256": sum.split_whitespace().next(),
        "bin": "kubectl-warmpool",
        "files": [{"from": "kubectl-warmpool", "to": "."}, {"from": "LICENSE", "to": "."}],
    });
    let spec = &manifest["spec"];
    let short = spec["shortDescription"].as_str().unwrap_or_default();
    let right = manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
        && manifest["kind"] == "Plugin"
        && manifest["metadata"] == json!({"name": "warmpool"})
        && spec["version"] == format!("v{VERSION}")
        && spec["homepage"] == SOURCE
        && (1..=80).contains(&short.len())
        && !short.contains('\n')
        && spec["platforms"] == json!([platform]);
    ensure(right, || text)
}

fn the_plugin_runs(out: &Path, plugin: &str) -> Result<(), String> {
    let mut unpack = Command::new("tar");
    unpack.current_dir(out).args(["-xzf", plugin]);
    output_of(unpack, None)?;
    let mut command = Command::new(out.join("kubectl-warmpool"));
    command.arg("--help");
    let help = output_of(command, None)?;
    ensure(help.contains("kubectl warmpool"), || {
        format!("the plugin says {help}")
    })?;
    ensure(out.join("LICENSE").exists(), || {
        "the plugin comes without its license".into()
    })
}

fn the_bill_lists_the_crates(out: &Path) -> Result<(), String> {
    let text =
        fs::read_to_string(out.join(format!("warmpool-{VERSION}.cdx.json"))).map_err(|e| e.to_string())?;
    let bill: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let components = bill["components"].as_array().map_or(&[][..], Vec::as_slice);
    let has = |name: &str| components.iter().any(|c| c["name"] == name);
    let right = components.len() > 100
        && has("kube")
        && !has("proptest")
        && components
            .iter()
            .all(|c| c["hashes"][0]["content"].is_string() && c["licenses"].is_array());
    ensure(right, || format!("the bill lists {} crates", components.len()))
}

pub fn a_release_of_another_version_is_refused() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let said = release("9.9.9", &folder.path().join("out"))
        .err()
        .unwrap_or_default();
    ensure(
        said.contains("Cargo.toml does not say version = \"9.9.9\""),
        || said.clone(),
    )
}

/// The workflow runs on machines that no test has, so what it calls here is checked by name.
pub fn the_workflow_calls_what_is_there() -> Result<(), String> {
    let workflow = yaml(".github/workflows/release.yml")?;
    let jobs = workflow["jobs"].as_object().cloned().unwrap_or_default();
    let mut called = 0;
    for (name, job) in &jobs {
        for needed in job["needs"]
            .as_array()
            .into_iter()
            .flatten()
            .chain(Some(&job["needs"]))
        {
            let known = needed.as_str().is_none_or(|needed| jobs.contains_key(needed));
            ensure(known, || format!("job {name} needs {needed}"))?;
        }
        let steps = job["steps"].as_array().cloned().unwrap_or_default();
        for run in steps.iter().filter_map(|step| step["run"].as_str()) {
            for word in run
                .split_whitespace()
                .filter(|word| word.starts_with("packaging/"))
            {
                ensure(repository().join(word).exists(), || {
                    format!("job {name} calls {word}")
                })?;
                called += 1;
            }
        }
    }
    ensure(jobs.len() == 4 && called == 2, || {
        format!("{} jobs, {called} calls", jobs.len())
    })
}
