//! Measures one claim for many sandboxes.
//!
//! The floor is the same binding by hand.

use super::beside_floor;
use crate::Outcome;
use crate::by_hand::Hand;
use crate::figures::{brief, milliseconds};
use crate::lab::Lab;
use crate::load::{claim, claims};
use crate::report::Side;
use crate::scene::Scene;
use crate::served::Served;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use std::time::Instant;

const WARM: usize = 120;
const WANTED: usize = 100;
/// An odd number, so that a median is the time of one round.
const ROUNDS: usize = 7;

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    beside_floor::measure(lab, || by_hand(lab), by_operator(lab)).await
}

async fn by_operator(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::at_rest(lab, "batch", WARM).await?;
    let mut served = Served::default();
    for round in 0..ROUNDS {
        let (name, began) = (format!("batch-{round}"), Instant::now());
        let batch = claim(&name, json!({"replicas": WANTED}))?;
        claims(&scene).create(&PostParams::default(), &batch).await?;
        took(&scene, &mut served, &name, began).await;
        claims(&scene).delete(&name, &DeleteParams::default()).await?;
        scene.rest().await?;
    }
    record(lab, Side::Ours, served)?;
    scene.close().await
}

async fn by_hand(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "batch-floor").await?;
    let hand = Hand::new(&mut scene).await?;
    let mut served = Served::default();
    for round in 0..ROUNDS {
        hand.fill(WARM).await?;
        hand.rest(&scene).await?;
        let (name, began) = (format!("batch-{round}"), Instant::now());
        hand.serve(&name, WANTED).await?;
        took(&scene, &mut served, &name, began).await;
    }
    record(lab, Side::Floor, served)?;
    scene.close().await
}

async fn took(scene: &Scene, served: &mut Served, name: &str, began: Instant) {
    let state = &scene.claims.state;
    let seen = state.until(|claims| claims.ready.get(name).copied()).await;
    served.latencies.push(seen.duration_since(began));
}

fn record(lab: &Lab<'_>, side: Side, mut served: Served) -> Outcome<()> {
    served.latencies.sort_unstable();
    let times = milliseconds(&served)?;
    println!("  {WANTED} at once in ms: {}", brief(&times));
    lab.record("batch", side, times);
    Ok(())
}
