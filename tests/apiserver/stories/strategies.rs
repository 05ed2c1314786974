//! Checks surge, partition, pause, Recreate and OnReplenish.

use super::busy::running;
use super::held::{held, let_go, let_go_until_at_rest};
use super::rollouts::everything_unclaimed_runs;
use super::{all_bound, bound, burst, pool_says};
use crate::api::PODS;
use crate::check::event::text;
use crate::check::replay;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{NEW_IMAGE, OLD_IMAGE, pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

fn uids(scene: &Scene) -> Result<Vec<String>, String> {
    let state = ClusterState::read(scene)?;
    let mut all: Vec<_> = state
        .unclaimed("python")
        .iter()
        .map(|p| text(p, "/metadata/uid").to_string())
        .collect();
    all.sort();
    Ok(all)
}

fn no_sandbox_is_replaced(scene: &Scene, before: &[String]) -> Result<(), String> {
    wait::throughout("no sandbox is replaced", 3, || {
        let now = uids(scene)?;
        wait::ensure(now == before, || format!("{before:?} became {now:?}"))
    })
}

fn strategy(value: Value) -> Value {
    json!({"updateStrategy": value})
}

pub fn with_a_surge_none_is_ever_missing(scene: &Scene) -> Result<(), String> {
    let surge = strategy(json!({"maxUnavailable": 0, "maxSurge": 2}));
    scene.create_pool(&pool(
        "python",
        6,
        &with(sim(&[("ready-after", "300ms")]), &surge),
    ))?;
    wait_until_at_rest(scene, 60)?;
    let full = scene.history_up_to_now()?.len();
    scene.roll_to("python", NEW_IMAGE)?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    let (mut fewest, mut most, mut seen) = (usize::MAX, 0, 0);
    replay(&scene.history_up_to_now()?, |world, event| {
        seen += 1;
        if let Some(pool) = world.pools.get("python").filter(|_| seen >= full) {
            fewest = fewest.min(
                world
                    .pods
                    .values()
                    .filter(|p| p.is_available(pool, event.at))
                    .count(),
            );
            most = most.max(world.pods.values().filter(|p| p.counts("python")).count());
        }
    });
    wait::ensure(fewest == 6 && most == 8, || {
        format!("between {fewest} available and {most} in all, where it should be 6 and 8")
    })
}

/// Rolls a new pool out, up to a partition of 4.
fn roll_to_partition_of_four(scene: &Scene, replicas: i64, max_unavailable: i64) -> Result<(), String> {
    let partition = strategy(json!({"maxUnavailable": max_unavailable, "partition": 4}));
    scene.create_pool(&pool("python", replicas, &partition))?;
    wait_until_at_rest(scene, 60)?;
    scene.roll_to("python", NEW_IMAGE)?;
    pool_says(scene, "python", "Progressing", "PartitionComplete").map(drop)
}

pub fn a_partition_keeps_that_many_on_the_old_revision(scene: &Scene) -> Result<(), String> {
    roll_to_partition_of_four(scene, 6, 1)?;
    wait::throughout("two are new and four are old", 3, || {
        let (new, old) = (running(scene, NEW_IMAGE)?, running(scene, OLD_IMAGE)?);
        wait::ensure((new, old) == (2, 4), || format!("{new} new and {old} old"))
    })?;
    let status = scene.pool("python")?["status"].clone();
    let status_is_right =
        status["updated"] == 2 && status["expectedUpdated"] == 2 && status["available"] == 6;
    wait::ensure(status_is_right, || status.to_string())?;
    scene.patch_pool("python", &json!({"spec": strategy(json!({"partition": 0}))}))?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)
}

pub fn a_canary_that_is_undone_leaves_the_others_alone(scene: &Scene) -> Result<(), String> {
    roll_to_partition_of_four(scene, 8, 2)?;
    let state = ClusterState::read(scene)?;
    let old = |p: &&Value| text(p, "/spec/containers/0/image") == OLD_IMAGE;
    let untouched: Vec<_> = state
        .unclaimed("python")
        .into_iter()
        .filter(old)
        .map(|p| text(p, "/metadata/uid").to_string())
        .collect();
    wait::ensure(untouched.len() == 4, || format!("{untouched:?} are old"))?;
    scene.roll_to("python", OLD_IMAGE)?;
    // The partition would now keep the canaries, because their revision is the old one.
    scene.patch_pool("python", &json!({"spec": strategy(json!({"partition": 0}))}))?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", OLD_IMAGE)?;
    let now = uids(scene)?;
    wait::ensure(untouched.iter().all(|uid| now.contains(uid)), || {
        format!("of {untouched:?} some are gone: {now:?}")
    })
}

pub fn another_strategy_takes_over_in_mid_rollout(scene: &Scene) -> Result<(), String> {
    let partition = strategy(json!({"maxUnavailable": 1, "partition": 5}));
    scene.create_pool(&pool(
        "python",
        6,
        &with(sim(&[("ready-after", "300ms")]), &partition),
    ))?;
    wait_until_at_rest(scene, 60)?;
    scene.roll_to("python", NEW_IMAGE)?;
    pool_says(scene, "python", "Progressing", "PartitionComplete")?;
    let surge = json!({"maxUnavailable": 0, "maxSurge": 2, "partition": 2});
    scene.patch_pool("python", &json!({"spec": strategy(surge)}))?;
    wait::until("four were new", 30, || {
        let new = running(scene, NEW_IMAGE)?;
        wait::ensure(new == 4, || format!("{new} are"))
    })?;
    let recreate = json!({"type": "Recreate", "maxUnavailable": null, "maxSurge": null, "partition": null});
    scene.patch_pool("python", &json!({"spec": strategy(recreate)}))?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)
}

pub fn a_paused_rollout_stands_still_and_claims_go_on(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 4, &strategy(json!({"paused": true}))))?;
    wait::until("the paused pool was full", 60, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["available"] == 4, || status.to_string())
    })?;
    let before = uids(scene)?;
    scene.roll_to("python", NEW_IMAGE)?;
    pool_says(scene, "python", "Progressing", "Paused")?;
    no_sandbox_is_replaced(scene, &before)?;
    all_bound(scene, &burst(scene, "run", 3, "python", &json!({}))?)?;
    wait::until(
        "what the claims took was refilled with the old revision",
        30,
        || {
            let old = running(scene, OLD_IMAGE)?;
            wait::ensure(old == 4, || format!("{old} run it"))
        },
    )?;
    scene.patch_pool("python", &json!({"spec": strategy(json!({"paused": false}))}))?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)
}

pub fn a_rollout_paused_half_way_keeps_its_split_under_claims(scene: &Scene) -> Result<(), String> {
    const REPLICAS: usize = 8;
    let two = with(
        sim(&[("ready-after", "1s")]),
        &strategy(json!({"maxUnavailable": 2})),
    );
    scene.create_pool(&pool("python", 8, &two))?;
    wait_until_at_rest(scene, 60)?;
    scene.patch_pool("python", &json!({"spec": held(NEW_IMAGE)}))?;
    wait::until("two were new", 30, || {
        let new = running(scene, NEW_IMAGE)?;
        wait::ensure(new == 2, || format!("{new} are"))
    })?;
    scene.patch_pool("python", &json!({"spec": strategy(json!({"paused": true}))}))?;
    let split = || Ok::<_, String>((running(scene, OLD_IMAGE)?, running(scene, NEW_IMAGE)?));
    let is_full = || {
        let_go(scene)?;
        let pool = scene.pool("python")?;
        // The status from before the claims also says that the pool is full.
        ClusterState::read(scene)?.status_is_true(&pool)?;
        let status = &pool["status"];
        let is_told = status["available"] == REPLICAS && status["replicas"] == REPLICAS;
        wait::ensure(is_told, || status.to_string())
    };
    pool_says(scene, "python", "Progressing", "Paused")?;
    wait::until("the paused pool was full", 30, is_full)?;
    let paused = split()?;
    wait::ensure(paused == (REPLICAS - 2, 2), || format!("{paused:?}"))?;
    let is_as_paused = || {
        is_full()?;
        let now = split()?;
        wait::ensure(now == paused, || {
            format!("{now:?} old and new, and {paused:?} when paused")
        })
    };
    let serve = |prefix: &str, count: usize| {
        burst(scene, prefix, count, "python", &json!({}))?;
        wait::until("every claim was served", 60, || {
            let_go(scene)?;
            ClusterState::read(scene)?.every_claim_is_decided()
        })
    };
    for round in 0..4 {
        serve(&format!("run-{round}"), REPLICAS / 2)?;
        wait::until("the split was as before", 30, is_as_paused)?;
    }
    // Four of these claims wait, and may take new sandboxes while old ones are made for them.
    for round in 0..3 {
        serve(&format!("wait-{round}"), REPLICAS + 4)?;
        wait::until("the paused pool was full again", 30, is_full)?;
        let remembered = scene.pool("python")?["status"]["expectedUpdated"].clone();
        wait::ensure(remembered == paused.1, || {
            format!("{remembered} new sandboxes are remembered of {paused:?}")
        })?;
    }
    serve("all", REPLICAS)?;
    wait::until("the split was as before all were taken", 30, is_as_paused)?;
    scene.patch_pool("python", &json!({"spec": strategy(json!({"paused": false}))}))?;
    let_go_until_at_rest(scene)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)
}

pub fn recreate_replaces_all_at_once(scene: &Scene) -> Result<(), String> {
    let all = strategy(json!({"type": "Recreate"}));
    scene.create_pool(&pool("python", 6, &all))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("kept", "python", &json!({}))?;
    bound(scene, "kept")?;
    wait_until_at_rest(scene, 60)?;
    scene.patch_pool("python", &json!({"spec": held(NEW_IMAGE)}))?;
    wait::until("all were new and none was available", 30, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["updated"] == 6 && status["available"] == 0, || {
            status.to_string()
        })
    })?;
    let_go_until_at_rest(scene)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)
}

pub fn on_replenish_replaces_only_what_claims_take(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 5, &strategy(json!({"type": "OnReplenish"}))))?;
    wait_until_at_rest(scene, 60)?;
    let before = uids(scene)?;
    scene.roll_to("python", NEW_IMAGE)?;
    no_sandbox_is_replaced(scene, &before)?;
    // One is claimed, another deleted: each comes back new, and the rest stay.
    let are_new = |count: usize| {
        wait::until(&format!("{count} were new and the others old"), 30, || {
            let (new, old) = (running(scene, NEW_IMAGE)?, running(scene, OLD_IMAGE)?);
            wait::ensure((new, old) == (count, 5 - count), || {
                format!("{new} new and {old} old")
            })?;
            let status = scene.pool("python")?["status"].clone();
            wait::ensure(status["available"] == 5 && status["updated"] == count, || {
                status.to_string()
            })
        })
    };
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    are_new(1)?;
    let state = ClusterState::read(scene)?;
    let old = state
        .unclaimed("python")
        .into_iter()
        .find(|p| text(p, "/spec/containers/0/image") == OLD_IMAGE);
    let old = old
        .map(|p| text(p, "/metadata/name").to_string())
        .ok_or("four should be old")?;
    scene.lab.api.delete(PODS, &scene.namespace, &old)?;
    are_new(2)?;
    scene.patch_pool(
        "python",
        &json!({"spec": strategy(json!({"type": "RollingUpdate"}))}),
    )?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)
}
