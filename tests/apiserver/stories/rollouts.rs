//! Checks that rollouts keep the budget and harm no claim.

use super::{all_bound, bound, burst, pool_says};
use crate::check::event::{condition, text};
use crate::check::replay;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{NEW_IMAGE, OLD_IMAGE, pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

/// Name, UID and image of the sandboxes that claims hold.
pub fn identities(scene: &Scene, pool: &str) -> Result<Vec<[String; 3]>, String> {
    let identity = |pod: &&Value| {
        ["/metadata/name", "/metadata/uid", "/spec/containers/0/image"].map(|at| text(pod, at).to_string())
    };
    let mut all: Vec<_> = ClusterState::read(scene)?
        .claimed(pool)
        .iter()
        .map(identity)
        .collect();
    all.sort();
    Ok(all)
}

pub fn everything_unclaimed_runs(scene: &Scene, pool: &str, image: &str) -> Result<(), String> {
    let state = ClusterState::read(scene)?;
    let other = state
        .unclaimed(pool)
        .into_iter()
        .find(|p| text(p, "/spec/containers/0/image") != image);
    other.map_or(Ok(()), |p| {
        Err(format!("{} does not run {image}", text(p, "/metadata/name")))
    })
}

/// The most unclaimed sandboxes of a revision that ever existed at once.
pub fn most_at_once(scene: &Scene, revision: &str) -> usize {
    let (mut most, start) = (0, format!("python-{revision}-"));
    replay(&scene.history(), |world, _| {
        let here = world
            .pods
            .values()
            .filter(|p| p.counts("python") && p.name.starts_with(&start))
            .count();
        most = most.max(here);
    });
    most
}

pub fn a_rollout_keeps_its_budget_while_claims_keep_coming(scene: &Scene) -> Result<(), String> {
    let spec = with(
        sim(&[("ready-after", "400ms")]),
        &json!({"updateStrategy": {"maxUnavailable": "25%"}}),
    );
    scene.create_pool(&pool("python", 12, &spec))?;
    wait_until_at_rest(scene, 60)?;
    all_bound(scene, &burst(scene, "before", 4, "python", &json!({}))?)?;
    wait_until_at_rest(scene, 60)?;
    let before = identities(scene, "python")?;
    scene.roll_to("python", NEW_IMAGE)?;
    let mut during = Vec::new();
    for n in 0..15 {
        let name = format!("during-{n}");
        scene.create_claim(&name, "python", &json!({}))?;
        during.push(name);
        sleep(Duration::from_millis(200));
    }
    all_bound(scene, &during)?;
    wait_until_at_rest(scene, 90)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    let after = identities(scene, "python")?;
    let untouched = before
        .iter()
        .all(|identity_before| after.contains(identity_before) && identity_before[2] == OLD_IMAGE);
    wait::ensure(untouched, || {
        format!("the sandboxes claimed before were {before:?} and are {after:?}")
    })
}

pub fn a_revision_that_never_gets_ready_takes_no_more_than_the_budget(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool(
        "python",
        8,
        &json!({"updateStrategy": {"maxUnavailable": "25%"}}),
    ))?;
    wait_until_at_rest(scene, 60)?;
    let broken = sim(&[("hold", "true")]);
    scene.patch_pool("python", &json!({"spec": broken}))?;
    let revision = wait::until("the broken revision took what it may", 30, || {
        let (state, pool) = (ClusterState::read(scene)?, scene.pool("python")?);
        state.status_is_true(&pool)?;
        let status = &pool["status"];
        wait::ensure(status["updated"] == 2 && status["available"] == 6, || {
            status.to_string()
        })?;
        Ok(text(status, "/updateRevision").to_string())
    })?;
    pool_says(scene, "python", "Available", "MinimumReplicasAvailable")?;
    pool_says(scene, "python", "Progressing", "Progressing")?;
    // Claims are still served, from what is good, and each is replaced by one more of the broken kind at most.
    wait::throughout("the broken rollout goes no further", 4, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["updated"] == 2 && status["available"] == 6, || {
            status.to_string()
        })
    })?;
    let mut most = 0;
    let events = scene.history();
    let of_revision = |name: &str| name.starts_with(&format!("python-{revision}-"));
    replay(&events, |world, _| {
        most = most.max(
            world
                .pods
                .values()
                .filter(|p| p.counts("python") && of_revision(&p.name))
                .count(),
        );
    });
    wait::ensure(most == 2, || {
        format!("{most} pods of the broken revision existed at once where 2 may")
    })?;
    let mend = json!({"spec": {"template": {"metadata": {"annotations": {"sim.warmpool.dev/hold": null}}}}});
    scene.patch_pool("python", &mend)?;
    wait_until_at_rest(scene, 60)
}

pub fn claims_are_served_in_the_middle_of_a_broken_rollout(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool(
        "python",
        6,
        &json!({"updateStrategy": {"maxUnavailable": 1}}),
    ))?;
    wait_until_at_rest(scene, 60)?;
    scene.patch_pool("python", &json!({"spec": sim(&[("hold", "true")])}))?;
    wait::until("the rollout had begun", 30, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["updated"] == 1 && status["available"] == 5, || {
            status.to_string()
        })
    })?;
    // What the claims take is refilled from the revision that works, since the new one has not shown itself.
    for round in ["a", "b"] {
        all_bound(scene, &burst(scene, round, 5, "python", &json!({}))?)?;
    }
    let broken = text(&scene.pool("python")?, "/status/updateRevision").to_string();
    wait::ensure(most_at_once(scene, &broken) == 1, || {
        "more than one of the broken revision existed".into()
    })?;
    let mend = json!({"spec": {"template": {"metadata": {"annotations": {"sim.warmpool.dev/hold": null}}}}});
    scene.patch_pool("python", &mend)?;
    wait_until_at_rest(scene, 60)
}

pub fn a_template_changed_again_in_mid_rollout_ends_at_the_latest(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 8, &sim(&[("ready-after", "300ms")])))?;
    wait_until_at_rest(scene, 60)?;
    let first = text(&scene.pool("python")?, "/status/updateRevision").to_string();
    for image in [NEW_IMAGE, "sandbox:3", OLD_IMAGE, "sandbox:4"] {
        scene.roll_to("python", image)?;
        sleep(Duration::from_millis(700));
    }
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", "sandbox:4")?;
    // Going back is a rollout like any other, to the revision that was there before.
    scene.roll_to("python", OLD_IMAGE)?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", OLD_IMAGE)?;
    let again = text(&scene.pool("python")?, "/status/updateRevision").to_string();
    wait::ensure(again == first, || {
        format!("the same template was revision {first} and is now {again}")
    })
}

pub fn a_change_outside_the_template_rolls_nothing(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 4, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let before: Vec<Value> = scene
        .pods()?
        .iter()
        .map(|p| p["metadata"]["uid"].clone())
        .collect();
    let change =
        json!({"minReadySeconds": 1, "revisionHistoryLimit": 2, "updateStrategy": {"maxUnavailable": 1}});
    scene.patch_pool(
        "python",
        &json!({"metadata": {"labels": {"team": "red"}}, "spec": change}),
    )?;
    wait_until_at_rest(scene, 60)?;
    let after: Vec<Value> = scene
        .pods()?
        .iter()
        .map(|p| p["metadata"]["uid"].clone())
        .collect();
    wait::ensure(before == after, || {
        format!("the pods were {before:?} and are {after:?}")
    })
}

pub fn old_revisions_are_kept_up_to_the_limit(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({"revisionHistoryLimit": 2})))?;
    wait_until_at_rest(scene, 60)?;
    for n in 2..7 {
        scene.roll_to("python", &format!("sandbox:{n}"))?;
        wait_until_at_rest(scene, 60)?;
    }
    wait::until("two old revisions and the present one were left", 30, || {
        let all = scene.lab.api.list(crate::api::REVISIONS, &scene.namespace)?;
        let mut numbers: Vec<i64> = all.iter().filter_map(|r| r["revision"].as_i64()).collect();
        numbers.sort_unstable();
        wait::ensure(numbers == [4, 5, 6], || format!("revisions {numbers:?}"))?;
        let owned = all
            .iter()
            .all(|r| crate::cluster_state::controller(r) == ("Pool", "python"));
        wait::ensure(owned, || "each should be owned by the pool".into())
    })
}

pub fn a_claim_for_the_latest_revision_waits_rather_than_take_an_old_one(
    scene: &Scene,
) -> Result<(), String> {
    scene.create_pool(&pool("python", 3, &json!({"updateStrategy": {"paused": true}})))?;
    wait_until_at_rest(scene, 60)?;
    scene.roll_to("python", NEW_IMAGE)?;
    pool_says(scene, "python", "Progressing", "Paused")?;
    scene.create_claim("latest", "python", &json!({"revisionPolicy": "Latest"}))?;
    wait::until("the claim said why it waits", 30, || {
        let claim = scene.claim("latest")?;
        let said = condition(&claim, "Bound").is_some_and(|c| c["reason"] == "PoolPaused");
        wait::ensure(said, || claim["status"].to_string())
    })?;
    scene.create_claim("any", "python", &json!({"revisionPolicy": "Any"}))?;
    bound(scene, "any")?;
    scene.patch_pool("python", &json!({"spec": {"updateStrategy": {"paused": false}}}))?;
    bound(scene, "latest")?;
    wait_until_at_rest(scene, 60)?;
    let update = scene.pool("python")?["status"]["updateRevision"].clone();
    let of = |claim: &str| Ok::<_, String>(scene.claim(claim)?["status"]["sandboxes"][0]["revision"].clone());
    let (latest, any) = (of("latest")?, of("any")?);
    wait::ensure(latest == update && any != update, || {
        format!("latest has {latest}, any has {any}, the update revision is {update}")
    })
}
