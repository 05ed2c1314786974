//! Measures a rollout of 20 sandboxes that become Ready after 2 s.

use crate::Outcome;
use crate::lab::Lab;
use crate::report::Side;
use crate::scene::{Scene, template};
use serde_json::{Value, json};
use std::time::Instant;

const WARM: usize = 20;

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "roll").await?;
    let pods = scene.watch_pods();
    scene.operator = Some(lab.start_operator("roll")?);
    scene.create_pool(WARM, slow("image:1")).await?;
    scene.rest().await?;
    let old = pods
        .with(|pods| pods.unclaimed.values().next().cloned())
        .ok_or("the pool is empty")?;
    pods.with(|pods| pods.least = pods.available.len());
    let began = Instant::now();
    scene.change_pool(json!({"template": slow("image:2")})).await?;
    let least = pods
        .until(|pods| {
            let rolled = pods.available.len() == WARM
                && pods.unclaimed.len() == WARM
                && pods.unclaimed.values().all(|revision| *revision != old);
            rolled.then_some(pods.least)
        })
        .await;
    let seconds = began.elapsed().as_secs_f64();
    println!("  {seconds:.1} s, at least {least} of {WARM} available throughout");
    lab.record("roll", Side::Ours, json!({"least": least, "seconds": seconds}));
    scene.close().await
}

/// Pods that take a while to become Ready.
fn slow(image: &str) -> Value {
    let mut template = template(image);
    if let Some(fields) = template.as_object_mut() {
        let annotations = json!({"sim.warmpool.dev/ready-after": "2s"});
        fields.insert("metadata".into(), json!({"annotations": annotations}));
    }
    template
}
