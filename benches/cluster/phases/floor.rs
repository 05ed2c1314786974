//! Measures the same writes by hand, without an operator.
//!
//! Each load begins as the operator's does: with at least as many sandboxes, at rest, and without the remains of the load before it.

use super::burst::{self, CLAIMS};
use super::fill::WARM;
use super::steady::{self, Rate};
use crate::Outcome;
use crate::audit::LOAD;
use crate::by_hand::Hand;
use crate::figures::{brief, milliseconds, of_burst};
use crate::lab::Lab;
use crate::load;
use crate::report::Side;
use crate::scene::Scene;
use crate::served::Served;
use serde_json::json;
use std::time::Instant;

/// Claims served one after the other.
const IN_A_ROW: usize = 200;

/// Measures a fill, claims one after the other, each of `rates` and a burst.
pub async fn run(lab: &Lab<'_>, rates: &[&Rate]) -> Outcome<()> {
    let mut scene = Scene::open(lab, "floor").await?;
    let hand = Hand::new(&mut scene).await?;
    let began = Instant::now();
    hand.fill(WARM).await?;
    let filled = began.elapsed().as_secs_f64();
    println!("  {WARM} pods created and Ready in {filled:.1} s");
    lab.record("fill", Side::Floor, json!({"seconds": filled}));

    hand.rest(&scene).await?;
    let served = in_a_row(&scene, &hand).await?;
    let times = milliseconds(&served)?;
    println!(
        "  {IN_A_ROW} claims one after the other, over one connection, in ms: {}",
        brief(&times)
    );
    lab.record("in_a_row", Side::Floor, times);

    for rate in rates {
        hand.fill(rate.warm).await?;
        hand.rest(&scene).await?;
        let audit = lab.audit()?;
        let served = load::steady(&scene, rate, hand.submit(rate.refilled)).await?;
        let times = milliseconds(&served)?;
        println!(
            "  {}, {} claims a second, in ms: {}",
            rate.times,
            rate.claims_a_second,
            brief(&times)
        );
        lab.record(rate.times, Side::Floor, times);
        steady::record_spans(lab, &scene, &audit, rate, Side::Floor, LOAD)?;
    }

    hand.fill(burst::WARM).await?;
    hand.rest(&scene).await?;
    let burst = load::burst(&scene, CLAIMS, hand.submit(false)).await?;
    // By hand a claim is served before the next is POSTed, so that the time until all are POSTed compares with nothing.
    let times = of_burst(&burst.served, None, None)?;
    println!("  a burst of {CLAIMS}: {}", brief(&times));
    lab.record("burst", Side::Floor, times);
    scene.close().await
}

async fn in_a_row(scene: &Scene, hand: &Hand) -> Outcome<Served> {
    let mut latencies = Vec::new();
    for number in 0..IN_A_ROW {
        let (name, from) = (format!("row-{number}"), Instant::now());
        hand.serve(&name, 1).await?;
        let seen = scene
            .claims
            .state
            .until(|claims| claims.ready.get(&name).copied())
            .await;
        latencies.push(seen.duration_since(from));
    }
    latencies.sort_unstable();
    Ok(Served {
        latencies,
        ..Served::default()
    })
}
