//! Measures writes and CPU of a minute at rest.

use crate::Outcome;
use crate::audit::OPERATOR;
use crate::lab::Lab;
use crate::operator::Operator;
use crate::report::Side;
use crate::scene::Scene;
use serde_json::json;
use std::time::Duration;

const WARM: usize = 1_000;

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let scene = Scene::at_rest(lab, "idle", WARM).await?;
    watch(lab, scene.operator()?, "idle", Duration::from_secs(60)).await?;
    scene.close().await
}

/// Records what an operator at rest writes and uses in that time.
pub async fn watch(lab: &Lab<'_>, operator: &Operator, figure: &str, time: Duration) -> Outcome<()> {
    let (audit, cpu_before) = (lab.audit()?, operator.cpu_seconds()?);
    tokio::time::sleep(time).await;
    let (written, cpu) = (audit.writes_of(OPERATOR)?, operator.cpu_seconds()? - cpu_before);
    let memory = operator.resident_mib()?;
    println!(
        "  {figure}, in {time:?} at rest: {cpu:.2} s of CPU, {memory:.1} MiB resident, writes: {written}"
    );
    let figures = json!({"writes": written.total(), "cpu_s": cpu, "mib": memory});
    lab.record(figure, Side::Ours, figures);
    Ok(())
}
