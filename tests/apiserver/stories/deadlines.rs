//! Checks sandboxes that never become ready, and rollouts that make no progress.

use super::pool_says;
use super::rollouts::everything_unclaimed_runs;
use crate::check::event::{condition, text};
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{NEW_IMAGE, OLD_IMAGE, pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

fn made(scene: &Scene) -> BTreeMap<i64, usize> {
    let mut per_second = BTreeMap::new();
    let history = scene.history();
    let made = history
        .iter()
        .filter(|e| e.kind.name() == "Pod" && e.change.name() == "ADDED");
    for event in made {
        *per_second.entry(event.at.as_second()).or_default() += 1;
    }
    per_second
}

fn message(scene: &Scene) -> Result<String, String> {
    let pool = scene.pool("python")?;
    let progressing = condition(&pool, "Progressing").map(|c| text(c, "/message").to_string());
    Ok(progressing.unwrap_or_default())
}

/// How many attempts the message of the pool says have failed.
fn failed_in_a_row(message: &str) -> usize {
    let before = message
        .split_once(" times in a row")
        .and_then(|(before, _)| before.rsplit(' ').next());
    before.and_then(|times| times.parse().ok()).unwrap_or(0)
}

fn brought_up_slowly(scene: &Scene, dying: (&str, &str), deadline: u32) -> Result<(), String> {
    let fields = json!({"warmUpDeadlineSeconds": deadline, "updateStrategy": {"maxUnavailable": 2}});
    scene.create_pool(&pool("python", 8, &with(sim(&[dying]), &fields)))?;
    let (attempts, made) = wait::until("three attempts in a row failed", 60, || {
        let (made, message) = (made(scene), message(scene)?);
        let attempts = failed_in_a_row(&message);
        wait::ensure(attempts >= 3, || message.clone())?;
        Ok((attempts, made))
    })?;
    // Three attempts take three pods at least. The pool of 8 may be filled first, unless its first pod dies before the others
    // are made. A further attempt makes no more than may warm up at once.
    let count = made.values().sum::<usize>();
    let most = 16 + 2 * (attempts - 3);
    wait::ensure((3..=most).contains(&count), || {
        format!("{count} pods were made in {attempts} attempts: {made:?}")
    })?;
    // A fixed template is tried at once, however long the backoff is by now.
    scene.patch_pool(
        "python",
        &json!({"spec": {"template": {"metadata": {"annotations": null}}}}),
    )?;
    wait_until_at_rest(scene, 60)
}

pub fn sandboxes_that_do_not_come_up_are_replaced_ever_more_slowly(scene: &Scene) -> Result<(), String> {
    brought_up_slowly(scene, ("hold", "true"), 2)
}

pub fn sandboxes_that_die_at_once_are_replaced_ever_more_slowly(scene: &Scene) -> Result<(), String> {
    brought_up_slowly(scene, ("fail-after", "10ms"), 300)
}

pub fn a_rollout_that_gets_nowhere_says_so_and_ends_when_it_is_undone(scene: &Scene) -> Result<(), String> {
    let fields = json!({"progressDeadlineSeconds": 3, "updateStrategy": {"maxUnavailable": 1}});
    scene.create_pool(&pool("python", 4, &fields))?;
    wait_until_at_rest(scene, 60)?;
    let template = |image: &str, hold: Value| {
        json!({"spec": {"template": {
            "metadata": {"annotations": {"sim.warmpool.dev/hold": hold}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        }}})
    };
    scene.patch_pool("python", &template(NEW_IMAGE, json!("true")))?;
    let waits = ["wait", "pool/python", "--timeout=30s"];
    scene.kubectl(
        &[&waits[..], &["--for=condition=Progressing=false"]].concat(),
        None,
    )?;
    pool_says(scene, "python", "Progressing", "ProgressDeadlineExceeded")?;
    pool_says(scene, "python", "Available", "MinimumReplicasAvailable")?;
    std::thread::sleep(Duration::from_secs(1));
    scene.patch_pool("python", &template(OLD_IMAGE, Value::Null))?;
    scene.kubectl(
        &[&waits[..], &["--for=condition=Progressing=true"]].concat(),
        None,
    )?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", OLD_IMAGE)
}
