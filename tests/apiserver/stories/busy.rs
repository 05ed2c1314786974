//! Checks every rollout strategy on 40 sandboxes under five claims a second.
//!
//! Each rollout also runs without claims. That one shows exactly what the operator takes; under load, the checker and the
//! margin show that only claims took what is missing beyond the budget.

use super::held::let_go;
use super::pool_says;
use super::rollouts::everything_unclaimed_runs;
use crate::claimants::Claimants;
use crate::cluster_state::{ClusterState, label, wait_until_at_rest};
use crate::extremes::{self, Extremes};
use crate::objects::{NEW_IMAGE, pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub const REPLICAS: i64 = 40;
const NEWER_IMAGE: &str = "sandbox:3";

/// A full pool of 40 whose sandboxes take a second to become Ready.
pub fn full_pool(scene: &Scene, strategy: &Value) -> Result<(), String> {
    let spec = with(
        sim(&[("ready-after", "1s")]),
        &json!({"updateStrategy": strategy}),
    );
    scene.create_pool(&pool("python", REPLICAS, &spec))?;
    wait_until_at_rest(scene, 60)
}

/// Changes the pool, and returns its extremes meanwhile. The runner prints them at the end.
pub fn measured(
    scene: &Scene,
    label: &str,
    act: impl FnOnce() -> Result<(), String>,
) -> Result<Extremes, String> {
    let version = scene.pool("python")?["metadata"]["resourceVersion"].clone();
    let from = version.as_str().and_then(|v| v.parse().ok()).unwrap_or(0);
    let began = Instant::now();
    act()?;
    let seconds = began.elapsed().as_secs_f64();
    let seen = extremes::since(&scene.history(), &scene.requests()?, "python", from);
    scene.lab.print_at_end(format!("{label}: {seen}, {seconds:.1} s"));
    Ok(seen)
}

/// Waits until the pool says that its latest template is complete.
pub fn complete(scene: &Scene) -> Result<(), String> {
    wait::until("the rollout was complete", 60, || {
        let pool = scene.pool("python")?;
        let status = &pool["status"];
        let done = status["observedGeneration"] == pool["metadata"]["generation"]
            && status["currentRevision"] == status["updateRevision"];
        wait::ensure(done, || status.to_string())
    })
}

/// What holds of every rollout, however many claims come.
pub fn keeps_its_budget(seen: &Extremes) -> Result<(), String> {
    wait::ensure(seen.margin >= 0 && seen.excess <= 0, || {
        format!("more was taken away, or created, than the strategy allows: {seen:?}")
    })
}

/// The figures of a rollout in quiet are what the strategy comes to, no more and no less.
fn exactly(seen: &Extremes, least: i64, most: i64) -> Result<(), String> {
    keeps_its_budget(seen)?;
    wait::ensure(seen.least == least && seen.most == most, || {
        format!("should be {least} available at least and {most} at most: {seen:?}")
    })
}

fn rolled(scene: &Scene, label: &str, image: &str) -> Result<Extremes, String> {
    measured(scene, label, || {
        scene.roll_to("python", image)?;
        complete(scene)
    })
}

/// Rolls twice, first without claims and then under load, and returns both extremes.
fn quiet_then_busy(scene: &Scene, name: &str, strategy: &Value) -> Result<(Extremes, Extremes), String> {
    full_pool(scene, strategy)?;
    let quiet = rolled(scene, &format!("{name}, no claims"), NEW_IMAGE)?;
    let busy = busy(scene, name, || scene.roll_to("python", NEWER_IMAGE))?;
    Ok((quiet, busy))
}

/// Rolls to the newer image under load.
fn busy(scene: &Scene, name: &str, roll: impl FnOnce() -> Result<(), String>) -> Result<Extremes, String> {
    wait_until_at_rest(scene, 60)?;
    let claimants = Claimants::start(scene, "python");
    let busy = measured(scene, &format!("{name}, 5 claims/s"), || {
        roll()?;
        complete(scene)
    });
    claimants.stop()?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEWER_IMAGE)?;
    busy
}

pub fn a_busy_rollout_misses_no_more_than_its_budget_and_the_claims(scene: &Scene) -> Result<(), String> {
    let (quiet, busy) = quiet_then_busy(scene, "maxUnavailable 25%", &json!({"maxUnavailable": "25%"}))?;
    exactly(&quiet, 30, 40)?;
    keeps_its_budget(&busy)
}

pub fn a_busy_rollout_with_a_surge_misses_only_what_claims_took(scene: &Scene) -> Result<(), String> {
    let budget = json!({"maxUnavailable": 0, "maxSurge": "25%"});
    let (quiet, busy) = quiet_then_busy(scene, "maxSurge 25%", &budget)?;
    exactly(&quiet, 40, 50)?;
    keeps_its_budget(&busy)
}

pub fn a_busy_pool_is_recreated_all_at_once_and_no_claim_is_lost(scene: &Scene) -> Result<(), String> {
    full_pool(scene, &json!({"type": "Recreate"}))?;
    let template = |image: &str, hold: Value| {
        json!({"spec": {"template": {
            "metadata": {"annotations": {"sim.warmpool.dev/hold": hold}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        }}})
    };
    // The new ones are held until the last old one is gone.
    let quiet = measured(scene, "Recreate, no claims", || {
        scene.patch_pool("python", &template(NEW_IMAGE, json!("true")))?;
        wait::until("all were recreated", 60, || {
            let (all, new) = (scene.pods()?.len(), running(scene, NEW_IMAGE)?);
            wait::ensure(all == new && i64::try_from(new) == Ok(REPLICAS), || {
                format!("{new} of {all} pods are new")
            })
        })?;
        let_go(scene)?;
        complete(scene)
    })?;
    exactly(&quiet, 0, 40)?;
    let busy = busy(scene, "Recreate", || {
        scene.patch_pool("python", &template(NEWER_IMAGE, Value::Null))
    })?;
    keeps_its_budget(&busy)
}

/// Pods of the pool, unclaimed when last seen, that were deleted.
fn deleted_unclaimed(scene: &Scene) -> usize {
    scene
        .history()
        .iter()
        .filter(|e| e.kind.name() == "Pod" && e.change.name() == "DELETED")
        .filter(|e| label(&e.object, "state") == "warm")
        .count()
}

pub fn a_busy_pool_on_replenish_changes_only_by_what_claims_take(scene: &Scene) -> Result<(), String> {
    full_pool(scene, &json!({"type": "OnReplenish"}))?;
    let quiet = measured(scene, "OnReplenish, no claims", || {
        scene.roll_to("python", NEW_IMAGE)?;
        std::thread::sleep(Duration::from_secs(3));
        Ok(())
    })?;
    exactly(&quiet, 40, 40)?;
    let busy = measured(scene, "OnReplenish, 5 claims/s", || {
        let claimants = Claimants::start(scene, "python");
        std::thread::sleep(Duration::from_secs(6));
        claimants.stop().map(drop)
    })?;
    keeps_its_budget(&busy)?;
    let gone = deleted_unclaimed(scene);
    wait::ensure(gone == 0, || format!("{gone} unclaimed sandboxes were deleted"))?;
    // Replacements have the new template, and the sandbox that became available first is claimed first.
    wait::until("the pool was full again", 30, || {
        let status = scene.pool("python")?["status"].clone();
        let some = status["updated"]
            .as_i64()
            .is_some_and(|n| (1..REPLICAS).contains(&n));
        wait::ensure(status["available"] == REPLICAS && some, || status.to_string())
    })
}

pub fn a_busy_partition_keeps_its_share_and_then_lets_go(scene: &Scene) -> Result<(), String> {
    full_pool(scene, &json!({"maxUnavailable": "25%", "partition": "50%"}))?;
    let quiet = measured(scene, "partition 50%, no claims", || {
        scene.roll_to("python", NEW_IMAGE)?;
        pool_says(scene, "python", "Progressing", "PartitionComplete").map(drop)
    })?;
    exactly(&quiet, 30, 40)?;
    let claimants = Claimants::start(scene, "python");
    let kept = measured(scene, "partition 50% kept, 5 claims/s", || {
        std::thread::sleep(Duration::from_secs(4));
        Ok(())
    })?;
    keeps_its_budget(&kept)?;
    let released = measured(scene, "partition 50% to 0, 5 claims/s", || {
        scene.patch_pool("python", &json!({"spec": {"updateStrategy": {"partition": 0}}}))?;
        complete(scene)
    });
    claimants.stop()?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    keeps_its_budget(&released?)
}

/// How many unclaimed sandboxes run that image.
pub fn running(scene: &Scene, image: &str) -> Result<usize, String> {
    let state = ClusterState::read(scene)?;
    let here = state.unclaimed("python").into_iter();
    Ok(here
        .filter(|p| p["spec"]["containers"][0]["image"] == image)
        .count())
}
