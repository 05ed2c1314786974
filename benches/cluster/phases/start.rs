//! Measures the first binding after a start with many warm sandboxes, and the operator's memory before and after it.
//!
//! A claim waits while no operator runs. The time counts from the start of the process until the watch shows the claim
//! Ready: connecting, all lists, the lease, the first plan, the binding and the status.

use crate::Outcome;
use crate::lab::{Lab, REST};
use crate::load::{claim, claims};
use crate::median::median;
use crate::report::Side;
use crate::scene::{Scene, template};
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use std::time::{Duration, Instant};

/// How long after its last work the operator's memory is read. The allocator returns what a start needed within some
/// ten seconds.
pub const SETTLED: Duration = Duration::from_secs(15);

/// How many sandboxes, how many starts, and the names of the figures.
pub struct Size {
    pub phase: &'static str,
    pub warm: usize,
    pub starts: usize,
    pub fill: &'static str,
    pub memory: &'static str,
    pub first: &'static str,
}

const TEN_THOUSAND: Size = Size {
    phase: "start",
    warm: 10_000,
    starts: 5,
    fill: "fill10k",
    memory: "memory10k",
    first: "start10k",
};

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let scene = filled(lab, &TEN_THOUSAND).await?;
    close(restarted(lab, scene, &TEN_THOUSAND).await?).await
}

/// Stops the operator before the scene is closed. It releases its lease, for which the next try of the phase would wait.
pub async fn close(mut scene: Scene) -> Outcome<()> {
    scene.operator.take().ok_or("no operator")?.stop().await?;
    scene.close().await
}

/// A pool that its operator has filled.
pub async fn filled(lab: &Lab<'_>, size: &Size) -> Outcome<Scene> {
    let mut scene = Scene::open(lab, size.phase).await?;
    let operator = lab.start_elected(size.phase)?;
    let cpu_before = operator.cpu_seconds()?;
    scene.operator = Some(operator);
    let began = Instant::now();
    scene.create_pool(size.warm, template("image:1")).await?;
    scene.rest().await?;
    let (took, cpu) = (
        began.elapsed() - REST,
        scene.operator()?.cpu_seconds()? - cpu_before,
    );
    let each = cpu * 1e3 / size.warm as f64;
    println!(
        "  filled in {:.0} s, with {each:.2} ms of CPU for each sandbox",
        took.as_secs_f64()
    );
    lab.record(
        size.fill,
        Side::Ours,
        json!({"seconds": took.as_secs_f64(), "cpu_ms_each": each}),
    );
    Ok(scene)
}

/// Stops and starts the operator while a claim waits. Returns the scene with an operator at rest.
pub async fn restarted(lab: &Lab<'_>, mut scene: Scene, size: &Size) -> Outcome<Scene> {
    tokio::time::sleep(SETTLED).await;
    let steady = scene.operator()?.resident_mib()?;
    let (mut times, mut cpus) = (Vec::new(), Vec::new());
    for start in 0..size.starts {
        scene.operator.take().ok_or("no operator")?.stop().await?;
        let name = format!("first-{start}");
        claims(&scene)
            .create(&PostParams::default(), &claim(&name, json!({}))?)
            .await?;
        // The control plane is at rest, as it is when an operator is replaced.
        tokio::time::sleep(REST).await;
        let (operator, recording, began) = lab.start_recorded(size.phase).await?;
        scene.operator = Some(operator);
        let state = &scene.claims.state;
        let seen = state.until(|claims| claims.ready.get(&name).copied()).await;
        times.push(seen.duration_since(began).as_secs_f64());
        cpus.push(scene.operator()?.cpu_seconds()?);
        drop(recording);
        claims(&scene).delete(&name, &DeleteParams::default()).await?;
        scene.rest().await?;
    }
    tokio::time::sleep(SETTLED).await;
    let operator = scene.operator()?;
    let (after, peak) = (operator.resident_mib()?, operator.peak_mib()?);
    println!("  first binding after a start, s: {times:.2?}, with {cpus:.2?} s of CPU");
    println!("  {steady:.1} MiB after the fill, {after:.1} after a start, {peak:.1} at most");
    lab.record(
        size.first,
        Side::Ours,
        json!({"p50": median(&times), "max": times.iter().copied().reduce(f64::max), "all": times}),
    );
    lab.record(
        size.memory,
        Side::Ours,
        json!({"mib": steady, "after_start": after, "peak": peak}),
    );
    Ok(scene)
}
