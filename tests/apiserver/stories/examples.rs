//! The examples for programs that claim, in each language. No container runs here: `make e2e-node` runs commands in sandboxes.

use crate::cluster::{output_of, repository};
use crate::cluster_state::wait_until_at_rest;
use crate::objects::pool;
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
    let mut command = Command::new(made("claim-go"));
    command.args(["-namespace", &scene.namespace]);
    claims_times_out_and_releases(scene, command)
}

pub fn the_python_example_claims_times_out_and_releases(scene: &Scene) -> Result<(), String> {
    let mut command = Command::new(made("python/bin/python"));
    command.arg(repository().join("examples/python/claim.py"));
    command.args(["--namespace", &scene.namespace]);
    claims_times_out_and_releases(scene, command)
}

pub fn the_rust_example_claims_times_out_and_releases(scene: &Scene) -> Result<(), String> {
    // Cargo builds it beside the tests: target/debug/examples beside target/debug/deps.
    let tests = std::env::current_exe().map_err(|e| e.to_string())?;
    let profile = tests
        .ancestors()
        .nth(2)
        .ok_or("the tests are in no folder of cargo")?;
    let mut command = Command::new(profile.join("examples/claim"));
    command.args(["--namespace", &scene.namespace]);
    claims_times_out_and_releases(scene, command)
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
