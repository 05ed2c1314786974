//! Measures writes and CPU of a minute at rest.

use crate::Outcome;
use crate::audit::OPERATOR;
use crate::lab::Lab;
use crate::report::Side;
use crate::scene::Scene;
use serde_json::json;
use std::time::Duration;

const WARM: usize = 1_000;

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let scene = Scene::at_rest(lab, "idle", WARM).await?;
    let operator = scene.operator()?;
    let (audit, cpu_before) = (lab.audit()?, operator.cpu_seconds()?);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (written, cpu) = (audit.writes_of(OPERATOR)?, operator.cpu_seconds()? - cpu_before);
    println!("  in a minute: {cpu:.2} s of CPU, writes: {written}");
    lab.record(
        "idle",
        Side::Ours,
        json!({"writes": written.total(), "cpu_s": cpu}),
    );
    scene.close().await
}
