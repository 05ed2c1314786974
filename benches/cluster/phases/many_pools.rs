//! Measures what 1,000 other pools, each with a waiting claim, cost one pool, and how fast their claims are served.
//!
//! One operator serves the same load before the other pools are created and beside them. The pools keep no sandbox warm until
//! all are scaled to one at once.

use super::idle;
use super::steady::by_process;
use crate::Outcome;
use crate::at_once::at_once;
use crate::audit::OPERATOR;
use crate::figures::{brief, of_burst, writes};
use crate::lab::Lab;
use crate::load::{all_ready, claim, claims};
use crate::parts::Meter;
use crate::rate::{Rate, rate};
use crate::report::Side;
use crate::scene::{Scene, template};
use crate::watches::Claims;
use kube::api::PostParams;
use serde_json::json;
use std::collections::HashMap;
use std::time::{Duration, Instant};

const POOLS: usize = 1_000;
const WATCHED: Duration = Duration::from_secs(30);

const ALONE: Rate = rate("alone20", "alone20_writes", 20, 20);
const BESIDE: Rate = rate("beside20", "beside20_writes", 20, 20);

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::at_rest(lab, "many-pools", ALONE.warm).await?;
    serve_load(lab, &mut scene, &ALONE).await?;
    create_others(&mut scene).await?;
    lab.until_idle(scene.operator()?).await?;
    idle::watch(lab, scene.operator()?, "others", WATCHED).await?;
    serve_load(lab, &mut scene, &BESIDE).await?;
    serve_waiting(lab, &scene).await?;
    scene.close().await
}

/// Serves a load on the pool of the scene, and prints what each part of the control plane uses meanwhile.
async fn serve_load(lab: &Lab<'_>, scene: &mut Scene, rate: &Rate) -> Outcome<()> {
    let meter = Meter::start(lab.dir())?;
    by_process(lab, scene, rate, Side::Ours).await?;
    println!("  {}, processors used: {}", rate.times, meter.shares(lab.dir())?);
    Ok(())
}

fn name(number: usize) -> String {
    format!("other-{number}")
}

/// Creates the other pools, and a claim on each that waits until the pool is scaled up.
async fn create_others(scene: &mut Scene) -> Outcome<()> {
    let created = (0..POOLS).map(|number| {
        let scene = &*scene;
        async move {
            let name = name(number);
            scene.create_pool_named(&name, 0, template("image:1")).await?;
            let claim = claim(&name, json!({"poolRef": {"name": name}, "onEmpty": "Wait"}))?;
            claims(scene).create(&PostParams::default(), &claim).await?;
            Ok(())
        }
    });
    at_once(created).await?;
    scene.waiting = POOLS;
    Ok(())
}

/// Scales every other pool to one, so that its claim is served and the sandbox replaced.
async fn serve_waiting(lab: &Lab<'_>, scene: &Scene) -> Outcome<()> {
    let operator = scene.operator()?;
    scene.claims.state.with(Claims::forget);
    let (audit, cpu_before, began) = (lab.audit()?, operator.cpu_seconds()?, Instant::now());
    let scaled = (0..POOLS).map(|number| async move {
        let to_one = json!({"replicas": 1});
        scene.change_pool_named(&name(number), to_one).await
    });
    at_once(scaled).await?;
    let due: HashMap<_, _> = (0..POOLS).map(|number| (name(number), began)).collect();
    let served = all_ready(&scene.claims.state, &due).await?;
    scene.until_refilled(ALONE.warm + POOLS).await?;
    let times = of_burst(&served, None, Some(began.elapsed()))?;
    println!("  {POOLS} pools are scaled to one: {}", brief(&times));
    lab.record("others_served", Side::Ours, times);
    lab.until_idle(operator).await?;
    let written = audit.writes_of(OPERATOR)?;
    let figures = writes(&written, POOLS, operator.cpu_seconds()? - cpu_before);
    println!("  writes {figures}\n    {written}");
    lab.record("others_writes", Side::Ours, figures);
    Ok(())
}
