//! Checks that the operator writes nothing at rest.

use super::{all_bound, burst};
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects;
use crate::scene::Scene;
use crate::wait;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Longer than any period of the operator's resync, and than three of its watches.
const WATCHED_SECONDS: u64 = 60;
/// A write this shortly after the machine stood still may have been held back by that.
const HELD_BACK: SignedDuration = SignedDuration::from_secs(10);
/// Less than this holds nothing back for as long as rest is waited for.
const STALL: SignedDuration = SignedDuration::from_secs(2);

/// Names and versions of all pools, claims and pods.
fn versions(scene: &Scene) -> Result<[Vec<String>; 3], String> {
    let ids = |all: Vec<Value>| -> Vec<String> {
        all.iter()
            .map(|o| format!("{} {}", o["metadata"]["name"], o["metadata"]["resourceVersion"]))
            .collect()
    };
    Ok([ids(scene.pools()?), ids(scene.claims()?), ids(scene.pods()?)])
}

/// Waits until rest begins, and returns when that was and what there is: a status may still be on its way, so nothing has
/// changed for a while.
fn rest(scene: &Scene) -> Result<(Timestamp, [Vec<String>; 3]), String> {
    let before = wait::until("nothing changed for three seconds", 60, || {
        let state = ClusterState::read(scene)?;
        state
            .pools
            .iter()
            .try_for_each(|pool| state.status_is_true(pool))?;
        let before = versions(scene)?;
        wait::throughout("nothing changes", 3, || {
            let now = versions(scene)?;
            wait::ensure(now == before, || format!("{now:?}"))
        })?;
        Ok(before)
    })?;
    Ok((Timestamp::now(), before))
}

fn nothing_is_written(scene: &Scene, since: Timestamp, before: &[Vec<String>; 3]) -> Result<(), String> {
    wait::throughout("no resourceVersion moves", WATCHED_SECONDS, || {
        let now = versions(scene)?;
        wait::ensure(now == *before, || format!("{before:?} became {now:?}"))
    })?;
    let writes = scene.writes(|w| w.at > since)?;
    wait::ensure(writes.is_empty(), || {
        format!("at rest the operator wrote {writes:?}")
    })
}

/// Whether each write since then came shortly after the machine stood still.
fn was_held_back(scene: &Scene, since: Timestamp) -> Result<bool, String> {
    let writes = scene.writes(|w| w.at > since)?;
    let waits = scene.lab.processor_waits();
    let is_late = |at: Timestamp| waits.within(at - HELD_BACK, at) > STALL;
    Ok(!writes.is_empty() && writes.iter().all(|w| is_late(w.at)))
}

pub fn at_rest_nothing_is_written(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 6, &json!({})))?;
    scene.create_pool(&objects::pool("empty", 0, &json!({"minReadySeconds": 1})))?;
    let claims = burst(scene, "run", 3, "python", &json!({}))?;
    all_bound(scene, &claims)?;
    scene.create_claim("waiting", "nowhere", &json!({}))?;
    super::says(scene, "waiting", "Bound", "PoolNotFound")?;
    let (since, before) = rest(scene)?;
    let mut outcome = nothing_is_written(scene, since, &before);
    // Who writes at rest does so again.
    if outcome.is_err() && was_held_back(scene, since)? {
        let (since, before) = rest(scene)?;
        outcome = nothing_is_written(scene, since, &before);
    }
    outcome?;
    scene.delete_claim("waiting")?;
    wait_until_at_rest(scene, 10)
}
