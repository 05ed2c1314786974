//! Checks rollouts under load that are paused, broken or interrupted by a kill.

use super::busy::{REPLICAS, complete, full_pool, keeps_its_budget, measured, running};
use super::pool_says;
use super::rollouts::{everything_unclaimed_runs, most_at_once};
use crate::api::PODS;
use crate::check::event::{Event, Kind, text};
use crate::claimants::Claimants;
use crate::cluster_state::{ClusterState, label, wait_until_at_rest};
use crate::objects::{NEW_IMAGE, OLD_IMAGE, sim};
use crate::operator::Operator;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

fn quarter() -> Value {
    json!({"maxUnavailable": "25%"})
}

fn pause(scene: &Scene, paused: bool) -> Result<(), String> {
    scene.patch_pool("python", &json!({"spec": {"updateStrategy": {"paused": paused}}}))
}

/// Marks an unclaimed sandbox for eviction, and returns its name. If a claim takes it first, marks another.
fn evict_one(scene: &Scene) -> Result<String, String> {
    wait::until("an unclaimed sandbox was marked for eviction", 10, || {
        let state = ClusterState::read(scene)?;
        let name = state
            .unclaimed("python")
            .first()
            .map(|p| text(p, "/metadata/name").to_string())
            .ok_or("there is none")?;
        let marked = json!({"metadata": {"labels": {"warmpool.dev/evict": "true"}}});
        let pod = scene.lab.api.merge(PODS, &scene.namespace, &name, &marked)?;
        wait::ensure(label(&pod, "state") == "warm", || {
            format!("{name} was claimed first")
        })?;
        Ok(name)
    })
}

fn made_of(events: &[Event], image: &str) -> usize {
    events
        .iter()
        .filter(|e| e.kind == Kind::Pod && e.change.name() == "ADDED")
        .filter(|e| e.object["spec"]["containers"][0]["image"] == image)
        .count()
}

pub fn a_busy_rollout_is_paused_and_the_pool_scaled_and_drained_meanwhile(
    scene: &Scene,
) -> Result<(), String> {
    full_pool(scene, &quarter())?;
    let claimants = Claimants::start(scene, "python");
    pause(scene, true)?;
    let held = measured(scene, "paused, scaled to 44, one evicted, 5 claims/s", || {
        scene.roll_to("python", NEW_IMAGE)?;
        pool_says(scene, "python", "Progressing", "Paused")?;
        scene.patch_pool("python", &json!({"spec": {"replicas": REPLICAS + 4}}))?;
        wait::until("the paused pool had grown", 30, || {
            let old = running(scene, OLD_IMAGE)?;
            wait::ensure(old == 44, || format!("{old} unclaimed"))
        })?;
        let evicted = evict_one(scene)?;
        wait::until("the evicted sandbox was gone", 30, || {
            let left = scene.lab.api.get(PODS, &scene.namespace, &evicted)?;
            left.map_or(Ok(()), |p| Err(p["metadata"].to_string()))
        })
    })?;
    keeps_its_budget(&held)?;
    let early = made_of(&scene.history(), NEW_IMAGE);
    wait::ensure(early == 0, || {
        format!("{early} sandboxes of the new template were made while paused")
    })?;
    let resumed = measured(scene, "resumed, 5 claims/s", || {
        pause(scene, false)?;
        complete(scene)
    });
    claimants.stop()?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    keeps_its_budget(&resumed?)
}

pub fn a_busy_rollout_that_never_gets_ready_is_taken_back(scene: &Scene) -> Result<(), String> {
    full_pool(scene, &quarter())?;
    let claimants = Claimants::start(scene, "python");
    let mut revision = String::new();
    let broken = measured(scene, "a template that never gets ready, 5 claims/s", || {
        scene.patch_pool("python", &json!({"spec": sim(&[("hold", "true")])}))?;
        revision = wait::until("the broken revision took what it may", 60, || {
            let pool = scene.pool("python")?;
            let (status, generation) = (&pool["status"], &pool["metadata"]["generation"]);
            let revision = text(status, "/updateRevision").to_string();
            let is_told = status["observedGeneration"] == *generation;
            wait::ensure(is_told && most_at_once(scene, &revision) >= 10, || {
                status.to_string()
            })?;
            Ok(revision)
        })?;
        std::thread::sleep(std::time::Duration::from_secs(6));
        Ok(())
    })?;
    let undone = measured(scene, "taken back, 5 claims/s", || {
        let back = json!({"template": {"metadata": {"annotations": {"sim.warmpool.dev/hold": null}}}});
        scene.patch_pool("python", &json!({"spec": back}))?;
        complete(scene)
    });
    claimants.stop()?;
    wait_until_at_rest(scene, 60)?;
    keeps_its_budget(&broken)?;
    keeps_its_budget(&undone?)?;
    let most = most_at_once(scene, &revision);
    wait::ensure(most == 10, || {
        format!("{most} sandboxes that never get ready existed at once where 10 may and should")
    })
}

pub fn killed_in_the_middle_of_a_busy_rollout(scene: &Scene) -> Result<(), String> {
    let mut operator = Some(scene.lab.start_operator()?);
    full_pool(scene, &quarter())?;
    let claimants = Claimants::start(scene, "python");
    let seen = measured(scene, "operator killed three times, 5 claims/s", || {
        scene.roll_to("python", NEW_IMAGE)?;
        for updated in [5, 15, 30] {
            wait::until(&format!("{updated} sandboxes were new"), 30, || {
                let new = running(scene, NEW_IMAGE)?;
                wait::ensure(new >= updated, || format!("{new} are"))
            })?;
            operator = Some(scene.while_operator_is_down(|| {
                operator.take().map_or(Ok(()), Operator::kill)?;
                scene.lab.start_operator()
            })?);
        }
        complete(scene)
    });
    claimants.stop()?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    operator.map_or(Ok(()), Operator::stop)?;
    keeps_its_budget(&seen?)
}
