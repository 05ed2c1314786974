//! The tests' own eyes: a breach made by hand, on real objects, is seen and accused.

use super::{bound, sandbox};
use crate::api::{CLAIMS, NAMESPACES, PODS, POOLS};
use crate::check::{Rules, judge};
use crate::history::Watcher;
use crate::objects::{claim, pool};
use crate::rest::settle;
use crate::scene::{Scene, make_namespace};
use crate::wait;
use serde_json::json;

pub fn a_breach_made_by_hand_is_accused(scene: &Scene) -> Result<(), String> {
    let (api, elsewhere) = (&scene.lab.api, "breached");
    make_namespace(scene.lab, elsewhere)?;
    let path = scene.lab.cluster.dir.join("history").join("breached.jsonl");
    let watcher = Watcher::start(api, elsewhere, &path)?;
    api.create(
        POOLS,
        elsewhere,
        &pool("python", 4, &json!({"updateStrategy": {"maxUnavailable": 1}})),
    )?;
    api.create(CLAIMS, elsewhere, &claim("victim", "python", &json!({})))?;
    let held = wait::until("the claim was bound and the pool full", 30, || {
        let claim = api.get(CLAIMS, elsewhere, "victim")?.unwrap_or_default();
        let pool = api.get(POOLS, elsewhere, "python")?.unwrap_or_default();
        let full = pool["status"]["available"] == 4 && claim["status"]["phase"] == "Bound";
        wait::ensure(full, || format!("{} {}", pool["status"], claim["status"]))?;
        Ok(sandbox(&claim).0)
    })?;
    // The pod is given to somebody else, and then deleted under its claim; the pool is robbed of two at once.
    let label = json!({"metadata": {"labels": {"warmpool.dev/claim-uid": "somebody-else"}}});
    api.merge(PODS, elsewhere, &held, &label)?;
    let warm: Vec<String> = api
        .list(PODS, elsewhere)?
        .iter()
        .filter(|p| p["metadata"]["labels"]["warmpool.dev/state"] == "warm")
        .filter_map(|p| p["metadata"]["name"].as_str().map(String::from))
        .collect();
    api.delete(PODS, elsewhere, &held)?;
    api.delete_all(PODS, elsewhere, &warm)?;
    // Nobody is excused here, so the deletions count as the operator's.
    let verdict = judge(&watcher.finish()?, &Rules::default());
    api.delete(NAMESPACES, "", elsewhere)?;
    for rule in ["I1", "I2", "I4"] {
        let accused = verdict.accusations.iter().any(|a| a.rule == rule);
        wait::ensure(accused, || {
            format!(
                "{rule} was broken by hand and not accused: {:?}",
                verdict.accusations
            )
        })?;
    }
    // While all is well in the next namespace.
    scene.create_pool(&pool("python", 1, &json!({})))?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    settle(scene, 30)
}
