//! Measures 300 claims at once on a pool with enough sandboxes, and the operator's memory after them.

use super::beside_floor;
use super::start::SETTLED;
use crate::Outcome;
use crate::audit::OPERATOR;
use crate::by_hand::Hand;
use crate::figures::{brief, of_burst, writes};
use crate::lab::Lab;
use crate::load;
use crate::operator::Operator;
use crate::plot::BurstOverTime;
use crate::report::Side;
use crate::scene::Scene;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

const WARM: usize = 320;
const CLAIMS: usize = 300;

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    beside_floor::measure(lab, || by_hand(lab), by_operator(lab)).await
}

async fn by_hand(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "burst-floor").await?;
    let hand = Hand::new(&mut scene).await?;
    hand.fill(WARM).await?;
    hand.rest(&scene).await?;
    let burst = load::burst(&scene, CLAIMS, hand.submit(false)).await?;
    // By hand a claim is served before the next is POSTed, so that the time until all are POSTed compares with nothing.
    let times = of_burst(&burst.served, None, None)?;
    println!("  by hand: {}", brief(&times));
    lab.record("burst", Side::Floor, times);
    scene.close().await
}

async fn by_operator(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::at_rest(lab, "burst", WARM).await?;
    let recording = lab.record_stacks(scene.operator()?, "burst").await?;
    // What a start needed would count as the operator's until the allocator returns it.
    tokio::time::sleep(SETTLED).await;
    let before = scene.operator()?.resident_mib()?;
    let (audit, cpu_before) = (lab.audit()?, scene.operator()?.cpu_seconds()?);
    let burst = load::burst(&scene, CLAIMS, load::submit(&scene)).await?;
    scene.until_refilled(WARM).await?;
    let refilled = burst.began.elapsed();
    let times = of_burst(&burst.served, Some(burst.posted), Some(refilled))?;
    println!("  {}", brief(&times));
    let full = scene.operator()?.resident_mib()?;
    lab.record("burst", Side::Ours, times);
    load::claims(&scene)
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    scene.rest().await?;
    drop(recording);
    let written = audit.writes_of(OPERATOR)?;
    let figures = writes(&written, CLAIMS, scene.operator()?.cpu_seconds()? - cpu_before);
    println!("  writes {figures}\n    {written}");
    lab.record("burst_writes", Side::Ours, figures);
    tokio::time::sleep(SETTLED).await;
    let settled = scene.operator()?.resident_mib()?;
    println!("  resident MiB: {before:.1} before, {full:.1} once full again, {settled:.1} at rest");
    lab.record(
        "burst_memory",
        Side::Ours,
        json!({"before": before, "full": full, "settled": settled, "times": settled / before.max(1.0)}),
    );
    scene.close().await
}

/// A burst that `operator` serves, to be drawn. Its figures do not count: the benchmark watches the pods meanwhile.
pub async fn over_time(
    lab: &Lab<'_>,
    operator: Operator,
    name: &str,
    title: &'static str,
) -> Outcome<BurstOverTime> {
    let mut scene = Scene::served_by(operator, lab, name, WARM).await?;
    let pods = scene.watch_pods();
    pods.until(|pods| (pods.available.len() >= WARM).then_some(()))
        .await;
    pods.with(|pods| pods.over_time = Some(Vec::new()));
    let burst = load::burst(&scene, CLAIMS, load::submit(&scene)).await?;
    scene.until_refilled(WARM).await?;
    let drawn = BurstOverTime {
        title,
        refilled: burst.began.elapsed(),
        began: burst.began,
        waited: burst.served.latencies,
        available: pods.with(|pods| pods.over_time.take()).unwrap_or_default(),
    };
    load::claims(&scene)
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    scene.rest().await?;
    scene.close().await?;
    Ok(drawn)
}
