//! Measures 300 claims at once on a pool with enough sandboxes.

use crate::Outcome;
use crate::audit::OPERATOR;
use crate::lab::Lab;
use crate::load;
use crate::report::{Side, milliseconds, seconds, writes};
use crate::scene::Scene;
use kube::api::{DeleteParams, ListParams};

const WARM: usize = 320;
pub const CLAIMS: usize = 300;

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::at_rest(lab, "burst", WARM).await?;
    let cpu = |scene: &Scene| scene.operator.as_ref().map_or(Ok(0.0), |o| o.cpu_seconds());
    let (audit, cpu_before) = (lab.audit()?, cpu(&scene)?);
    let burst = load::burst(&scene, CLAIMS, load::submit(&scene)).await?;
    scene.until_refilled(WARM).await?;
    let times = seconds(&burst, Some(burst.began.elapsed()));
    println!("  {times}; each claim in ms: {}", milliseconds(&burst.served));
    lab.record("burst", Side::Ours, times);
    load::claims(&scene)
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    scene.rest().await?;
    let written = audit.writes_of(OPERATOR)?;
    let figures = writes(&written, CLAIMS, cpu(&scene)? - cpu_before);
    println!("  writes {figures}\n    {written}");
    lab.record("burst_writes", Side::Ours, figures);
    scene.close().await
}
