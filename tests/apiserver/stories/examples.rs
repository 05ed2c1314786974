//! The examples for programs that claim, in each language. No container runs here: `make e2e-node` runs commands in sandboxes.

use crate::check::event::text;
use crate::cluster::{output_of, repository};
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{pool, sim};
use crate::program::Running;
use crate::scene::Scene;
use crate::wait;
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

const BATCH: usize = 3;

/// A program that `e2e/examples.sh` has made.
fn made(name: &str) -> PathBuf {
    repository().join(".cluster/examples").join(name)
}

pub fn the_go_example_claims_times_out_and_releases(scene: &Scene) -> Result<(), String> {
    claims_times_out_and_releases(scene, go(scene))
}

pub fn the_python_example_claims_times_out_and_releases(scene: &Scene) -> Result<(), String> {
    claims_times_out_and_releases(scene, python(scene))
}

pub fn the_rust_example_claims_times_out_and_releases(scene: &Scene) -> Result<(), String> {
    claims_times_out_and_releases(scene, rust(scene)?)
}

pub fn the_go_example_leaves_no_claim_when_it_is_interrupted(scene: &Scene) -> Result<(), String> {
    leaves_no_claim_when_it_is_interrupted(scene, go(scene))
}

pub fn the_python_example_leaves_no_claim_when_it_is_interrupted(scene: &Scene) -> Result<(), String> {
    leaves_no_claim_when_it_is_interrupted(scene, python(scene))
}

pub fn the_rust_example_leaves_no_claim_when_it_is_interrupted(scene: &Scene) -> Result<(), String> {
    leaves_no_claim_when_it_is_interrupted(scene, rust(scene)?)
}

fn go(scene: &Scene) -> Command {
    let mut command = Command::new(made("claim-go"));
    command.args(["-namespace", &scene.namespace]);
    command
}

fn python(scene: &Scene) -> Command {
    let mut command = Command::new(made("python/bin/python"));
    command.arg(repository().join("examples/python/claim.py"));
    command.args(["--namespace", &scene.namespace]);
    command
}

fn rust(scene: &Scene) -> Result<Command, String> {
    // Cargo builds it beside the tests: target/debug/examples beside target/debug/deps.
    let tests = std::env::current_exe().map_err(|e| e.to_string())?;
    let profile = tests
        .ancestors()
        .nth(2)
        .ok_or("the tests are in no folder of cargo")?;
    let mut command = Command::new(profile.join("examples/claim"));
    command.args(["--namespace", &scene.namespace]);
    Ok(command)
}

fn claims_times_out_and_releases(scene: &Scene, mut command: Command) -> Result<(), String> {
    scene.create_pool(&pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    command.env("KUBECONFIG", scene.lab.cluster.kubeconfig());
    let said = output_of(command, None)
        .map_err(|error| format!("{error}; e2e/examples.sh makes the examples in Go and Python"))?;
    let count = |start: &str| said.lines().filter(|line| line.starts_with(start)).count();
    let counts = [count("one: "), count("timeout: "), count("batch: ")];
    wait::ensure(counts == [1, 1, BATCH], || format!("the example printed {said}"))?;
    // Each claim had a sandbox, or sandboxes, of its own.
    let sandboxes: std::collections::BTreeSet<&str> = said
        .lines()
        .filter(|line| !line.starts_with("timeout: "))
        .filter_map(|line| line.split_once(" has ")?.1.split(' ').next())
        .collect();
    wait::ensure(sandboxes.len() == BATCH + 1, || {
        format!("the sandboxes are {sandboxes:?}")
    })?;
    wait::until("every claim was released", 30, || {
        let left = scene.claims()?;
        wait::ensure(left.is_empty(), || format!("{left:?}"))
    })?;
    wait_until_at_rest(scene, 60)
}

/// No sandbox of the pool becomes ready, so the first claim waits until the program is interrupted.
fn leaves_no_claim_when_it_is_interrupted(scene: &Scene, mut command: Command) -> Result<(), String> {
    scene.create_pool(&pool("python", 0, &sim(&[("hold", "true")])))?;
    command.env("KUBECONFIG", scene.lab.cluster.kubeconfig());
    let waiting = Running::start(command)?;
    wait::until("the claim waits", 60, || match scene.claims()?.as_slice() {
        [claim] if text(claim, "/status/phase") == "Pending" => Ok(()),
        claims => Err(format!("{claims:?}")),
    })?;
    waiting.signal("INT")?;
    let said = waiting.end()?;
    wait::ensure(said.code != Some(0), || format!("{said:?}"))?;
    let left = scene.claims()?;
    wait::ensure(left.is_empty(), || format!("{said:?}, and left are {left:?}"))
}
