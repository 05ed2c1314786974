//! Checks that the operator writes nothing at rest.

use super::{all_bound, burst};
use crate::cluster_state::wait_until_at_rest;
use crate::objects;
use crate::scene::Scene;
use crate::wait;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Longer than any period of the operator's resync, and than three of its watches.
const WATCHED_SECONDS: u64 = 60;

pub fn at_rest_nothing_is_written(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 6, &json!({})))?;
    scene.create_pool(&objects::pool("empty", 0, &json!({"minReadySeconds": 1})))?;
    let claims = burst(scene, "run", 3, "python", &json!({}))?;
    all_bound(scene, &claims)?;
    scene.create_claim("waiting", "nowhere", &json!({}))?;
    super::says(scene, "waiting", "Bound", "PoolNotFound")?;
    let ids = |all: Vec<Value>| -> Vec<String> {
        all.iter()
            .map(|o| format!("{} {}", o["metadata"]["name"], o["metadata"]["resourceVersion"]))
            .collect()
    };
    let versions = || Ok::<_, String>([ids(scene.pools()?), ids(scene.claims()?), ids(scene.pods()?)]);
    // A status may still be on its way: rest begins when nothing has changed for a while.
    let before = wait::until("nothing changed for three seconds", 60, || {
        let before = versions()?;
        wait::throughout("nothing changes", 3, || {
            let now = versions()?;
            wait::ensure(now == before, || format!("{now:?}"))
        })?;
        Ok(before)
    })?;
    let since = Timestamp::now();
    wait::throughout("no resourceVersion moves", WATCHED_SECONDS, || {
        let now = versions()?;
        wait::ensure(now == before, || format!("{before:?} became {now:?}"))
    })?;
    let writes = scene.writes(|w| w.at > since)?;
    wait::ensure(writes.is_empty(), || {
        format!("at rest the operator wrote {writes:?}")
    })?;
    scene.delete_claim("waiting")?;
    wait_until_at_rest(scene, 10)
}
