//! Measures claims by hand one after the other: what the writes for a claim take when nothing else is on its way.

use crate::Outcome;
use crate::by_hand::Hand;
use crate::figures::{brief, milliseconds};
use crate::lab::Lab;
use crate::report::Side;
use crate::scene::Scene;
use crate::served::Served;
use std::time::Instant;

const CLAIMS: usize = 200;

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "in-a-row").await?;
    let hand = Hand::new(&mut scene).await?;
    hand.fill(CLAIMS).await?;
    hand.rest(&scene).await?;
    let mut served = Served::default();
    for number in 0..CLAIMS {
        let (name, from) = (format!("row-{number}"), Instant::now());
        hand.serve(&name, 1).await?;
        let seen = scene
            .claims
            .state
            .until(|claims| claims.ready.get(&name).copied())
            .await;
        served.latencies.push(seen.duration_since(from));
    }
    served.latencies.sort_unstable();
    let times = milliseconds(&served)?;
    println!("  {CLAIMS} claims over one connection, in ms: {}", brief(&times));
    lab.record("in_a_row", Side::Floor, times);
    scene.close().await
}
