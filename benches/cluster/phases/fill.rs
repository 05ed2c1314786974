//! Measures filling a pool with 1,000 sandboxes, and the operator's memory.

use super::beside_floor;
use super::start::SETTLED;
use crate::Outcome;
use crate::audit::OPERATOR;
use crate::by_hand::Hand;
use crate::lab::Lab;
use crate::report::Side;
use crate::scene::{Scene, template};
use serde_json::json;
use std::time::Instant;

pub const WARM: usize = 1_000;

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    beside_floor::measure(lab, || by_hand(lab), by_operator(lab)).await
}

async fn by_hand(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "fill-floor").await?;
    let hand = Hand::new(&mut scene).await?;
    let began = Instant::now();
    hand.fill(WARM).await?;
    let seconds = began.elapsed().as_secs_f64();
    println!("  by hand: {seconds:.1} s");
    lab.record("fill", Side::Floor, json!({"seconds": seconds}));
    scene.close().await
}

async fn by_operator(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "fill").await?;
    let pods = scene.watch_pods();
    scene.operator = Some(lab.start_operator("fill")?);
    tokio::time::sleep(SETTLED).await;
    let operator = scene.operator()?;
    let (empty, cpu_before) = (operator.resident_mib()?, operator.cpu_seconds()?);
    let recording = lab.record_stacks(operator, "fill").await?;
    let (audit, began) = (lab.audit()?, Instant::now());
    scene.create_pool(WARM, template("image:1")).await?;
    pods.until(|pods| (pods.available.len() >= WARM).then_some(()))
        .await;
    let seconds = began.elapsed().as_secs_f64();
    scene.rest().await?;
    drop(recording);
    let operator = scene.operator()?;
    let (memory, cpu) = (operator.resident_mib()?, operator.cpu_seconds()? - cpu_before);
    let written = audit.writes_of(OPERATOR)?;
    println!(
        "  {seconds:.1} s, {cpu:.2} s of CPU, {memory:.1} MiB resident after {empty:.1} without pods\n    {written}"
    );
    let created = pods.with(|pods| pods.unclaimed.len());
    if created != WARM {
        println!("  but {created} pods exist");
    }
    lab.record(
        "fill",
        Side::Ours,
        json!({"seconds": seconds, "cpu_s": cpu, "cpu_ms_each": cpu * 1e3 / WARM as f64}),
    );
    lab.record("memory", Side::Ours, json!({"mib": memory}));
    lab.record("memory0", Side::Ours, json!({"mib": empty}));
    scene.close().await
}
