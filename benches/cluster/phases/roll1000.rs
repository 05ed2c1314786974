//! Measures a rollout of 1,000 sandboxes, a quarter at a time.
//!
//! Its floor is one quarter replaced by hand in a pool of the same size, times the number of quarters. That is no lower
//! bound: the budget lets the operator start the next quarter before the last sandbox of a quarter is Ready.

use super::beside_floor;
use super::fill::WARM;
use crate::Outcome;
use crate::audit::OPERATOR;
use crate::by_hand::Hand;
use crate::figures::replaced;
use crate::lab::Lab;
use crate::report::Side;
use crate::scene::{Scene, template};
use serde_json::json;
use std::time::Instant;

/// Sandboxes that `maxUnavailable` 25 % replaces at once, and the number of such rounds.
const QUARTER: usize = WARM / 4;
const QUARTERS: f64 = 4.0;

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    beside_floor::measure(lab, || by_hand(lab), by_operator(lab)).await
}

async fn by_operator(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "roll1000").await?;
    let pods = scene.watch_pods();
    scene.operator = Some(lab.start_operator("roll1000")?);
    scene.create_pool(WARM, template("image:1")).await?;
    scene.rest().await?;
    let old = pods
        .with(|pods| pods.unclaimed.values().next().cloned())
        .ok_or("the pool is empty")?;
    pods.with(|pods| pods.least = pods.available.len());
    let cpu = |scene: &Scene| scene.operator.as_ref().map_or(Ok(0.0), |o| o.cpu_seconds());
    let (audit, cpu_before, began) = (lab.audit()?, cpu(&scene)?, Instant::now());
    scene
        .change_pool(json!({"template": template("image:2")}))
        .await?;
    let least = pods
        .until(|pods| {
            let rolled = pods.available.len() == WARM
                && pods.available.values().all(|sandbox| sandbox.revision != old);
            rolled.then_some(pods.least)
        })
        .await;
    let seconds = began.elapsed().as_secs_f64();
    // The last status is also part of the rollout.
    scene.rest().await?;
    let (written, cpu) = (audit.writes_of(OPERATOR)?, cpu(&scene)? - cpu_before);
    let mut figures = replaced(&written, WARM);
    if let Some(fields) = figures.as_object_mut() {
        let more = json!({"seconds": seconds, "least": least, "cpu_s": cpu});
        fields.extend(more.as_object().cloned().unwrap_or_default());
    }
    println!("  {seconds:.1} s, at least {least} of {WARM} available throughout");
    println!("  writes per replaced sandbox {figures}\n    {written}");
    lab.record("roll1000", Side::Ours, figures);
    scene.close().await
}

/// Has a quarter deleted, created and warmed by hand, and counts that for each.
async fn by_hand(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "roll1000-floor").await?;
    let hand = Hand::new(&mut scene).await?;
    hand.fill(WARM).await?;
    hand.rest(&scene).await?;
    let began = Instant::now();
    hand.replace(QUARTER).await?;
    let sent = began.elapsed().as_secs_f64();
    hand.available(WARM).await;
    let round = began.elapsed().as_secs_f64();
    let all = QUARTERS * round;
    println!(
        "  by hand {QUARTER} are replaced in {round:.1} s ({sent:.1} s until all was sent), {WARM} would be in {all:.1} s"
    );
    lab.record("roll1000", Side::Floor, json!({"seconds": all}));
    scene.close().await
}
