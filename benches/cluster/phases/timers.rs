//! Measures 10,000 waiting claims, each with a timer.
//!
//! Half wait for a pool that keeps no sandbox warm, half for a pool that does not exist.

use super::idle;
use crate::Outcome;
use crate::at_once::at_once;
use crate::lab::Lab;
use crate::load::{claim, claims};
use crate::scene::{Scene, template};
use kube::api::PostParams;
use serde_json::json;
use std::time::Duration;

const CLAIMS: usize = 10_000;
const WATCHED: Duration = Duration::from_secs(30);

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "timers").await?;
    scene.operator = Some(lab.start_operator("timers")?);
    scene.create_pool(0, template("image:1")).await?;
    let api = claims(&scene);
    let posts = (0..CLAIMS).map(|number| {
        let mut spec = json!({"onEmpty": "Wait", "waitTimeoutSeconds": 3600 + number});
        if number % 2 == 1
            && let Some(spec) = spec.as_object_mut()
        {
            spec.insert("poolRef".into(), json!({"name": "none"}));
        }
        let api = api.clone();
        async move {
            let claim = claim(&format!("waits-{number}"), spec)?;
            api.create(&PostParams::default(), &claim).await?;
            Ok(())
        }
    });
    at_once(posts).await?;
    let operator = scene.operator()?;
    lab.until_idle(operator).await?;
    idle::watch(lab, operator, "timers", WATCHED).await?;
    scene.close().await
}
