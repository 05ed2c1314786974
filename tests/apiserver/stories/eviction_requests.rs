//! Checks EvictionRequests (KEP-4563): a sandbox that one names is replaced first, and a tenant's stays and says so.

use super::metrics::served;
use super::{bound, sandbox};
use crate::api::PODS;
use crate::check::event::{condition, text};
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::eviction_requests_api::{EVICTION_REQUESTS, end, request, serve};
use crate::extremes;
use crate::http;
use crate::objects::{pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::json;

pub fn a_sandbox_that_an_eviction_request_names_goes_once_its_replacement_is_available(
    scene: &Scene,
) -> Result<(), String> {
    serve(scene.lab)?;
    let outcome = story(scene);
    end(scene.lab)?;
    outcome
}

fn story(scene: &Scene) -> Result<(), String> {
    let operator = scene
        .lab
        .start_operator_with(&["--leader-elect=false", "--health-probe-bind-address=127.0.0.1:0"])?;
    let health = served(&operator, "health-probe-bind-address")?;
    operator.says("watching EvictionRequests", 30)?;
    let spec = with(
        sim(&[("ready-after", "2s")]),
        &json!({"updateStrategy": {"maxUnavailable": 0}}),
    );
    scene.create_pool(&pool("python", 1, &spec))?;
    wait_until_at_rest(scene, 30)?;
    let pods = ClusterState::read(scene)?
        .unclaimed("python")
        .into_iter()
        .cloned()
        .collect::<Vec<_>>();
    let first = pods.first().ok_or("there is no sandbox")?;
    let name = text(first, "/metadata/name").to_string();

    let mut of_another = request("of-another", first);
    of_another["spec"]["target"]["pod"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    scene.create(EVICTION_REQUESTS, &of_another)?;
    wait::throughout(
        "a request for another pod of this name changes nothing",
        3,
        || {
            let pods = ClusterState::read(scene)?.unclaimed("python").len();
            wait::ensure(pods == 1, || format!("{pods} sandboxes"))
        },
    )?;

    let version = text(&scene.pool("python")?, "/metadata/resourceVersion")
        .parse()
        .unwrap_or(0);
    scene.create(EVICTION_REQUESTS, &request("move", first))?;
    wait::until("the sandbox was gone", 30, || {
        let left = scene.lab.api.get(PODS, &scene.namespace, &name)?;
        wait::ensure(left.is_none(), || format!("{name} is there"))
    })?;
    wait_until_at_rest(scene, 30)?;
    let seen = extremes::since(&scene.history_up_to_now()?, &scene.requests()?, "python", version);
    wait::ensure(seen.least == 1 && seen.most == 2, || seen.to_string())?;

    scene.create_claim("run", "python", &json!({}))?;
    let (tenant, _) = sandbox(&bound(scene, "run")?);
    wait_until_at_rest(scene, 30)?;
    scene.create(EVICTION_REQUESTS, &request("move-tenant", &scene.pod(&tenant)?))?;
    let pending = |expected: bool| {
        let claim = scene.claim("run")?;
        let pending = condition(&claim, "DisruptionPending").filter(|c| c["status"] == "True");
        let is_said = pending.is_some_and(|c| c["reason"] == "EvictionRequest");
        wait::ensure(is_said == expected, || claim["status"].to_string())
    };
    wait::until(
        "the claim said that somebody wants its sandbox evicted",
        20,
        || pending(true),
    )?;
    let withdrawn = json!({"spec": {"intent": "Withdrawn"}});
    scene
        .lab
        .api
        .merge(EVICTION_REQUESTS, &scene.namespace, "move-tenant", &withdrawn)?;
    wait::until(
        "the claim was at rest after the request was withdrawn",
        20,
        || pending(false),
    )?;
    scene.pod(&tenant)?;

    end(scene.lab)?;
    let is_still_served = scene.lab.api.list(EVICTION_REQUESTS, "").is_ok();
    if !is_still_served {
        operator.says("the API server no longer serves EvictionRequests", 60)?;
    }
    let ready = http::get(&health, "/readyz")?;
    wait::ensure(ready == (200, "ok".to_string()), || format!("{ready:?}"))?;
    operator.stop()
}
