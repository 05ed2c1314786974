//! Checks that the commonest failure, sandboxes that do not come up, is visible where people look, and written once.

use super::{bound, pool_says, says};
use crate::api::EVENTS;
use crate::check::event::text;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::pool;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

/// A pod that asks for more than any node has.
fn with_cpu(cpu: &str) -> Value {
    let container = json!({"name": "main", "image": "sandbox:1", "resources": {"requests": {"cpu": cpu}}});
    json!({"template": {"spec": {"containers": [container]}}})
}

fn contains(what: &str, text: &str, part: &str) -> Result<(), String> {
    wait::ensure(text.contains(part), || {
        format!("{what} should say {part:?} and says {text:?}")
    })
}

pub fn a_pool_that_no_node_can_take_says_so_wherever_people_look(scene: &Scene) -> Result<(), String> {
    const WHY: &str = "3 of 3 warming sandboxes: Unschedulable";
    scene.create_pool(&pool("python", 3, &with_cpu("100k")))?;
    wait::until("the pool said why its sandboxes do not come", 30, || {
        let available = pool_says(scene, "python", "Available", "MinimumReplicasUnavailable")?;
        contains("Available", &available, WHY)?;
        contains("Available", &available, "Insufficient cpu")?;
        let progressing = scene.kubectl(&["get", "pool", "python", "-o", PROGRESSING], None)?;
        contains("Progressing", &progressing, WHY)
    })?;
    let waited = scene.kubectl(
        &["wait", "--for=condition=Available", "pool/python", "--timeout=1s"],
        None,
    );
    wait::ensure(waited.is_err(), || "an empty pool is available".to_string())?;
    wait::until("an event said it", 30, || {
        let all = scene.lab.api.list(EVENTS, &scene.namespace)?;
        let told = all
            .iter()
            .find(|event| event["reason"] == "SandboxesNotAvailable");
        let note = told.map_or("", |event| text(event, "/note"));
        contains("the event", note, "warming sandboxes: Unschedulable (0/")
    })?;
    scene.create_claim("run", "python", &json!({"onEmpty": "Wait"}))?;
    let message = says(scene, "run", "Bound", "NoneAvailable")?;
    contains(
        "the claim",
        &message,
        &format!("no sandbox is available yet; {WHY}; the claim was first"),
    )?;
    let shown = scene.kubectl(&["get", "sbc", "-o", "wide"], None)?;
    contains("kubectl get sbc", &shown, "NoneAvailable")?;
    contains("kubectl get sbc -o wide", &shown, WHY)?;
    let versions = || {
        let of = |object: Value| text(&object, "/metadata/resourceVersion").to_string();
        Ok::<_, String>((of(scene.pool("python")?), of(scene.claim("run")?)))
    };
    wait::until("the statuses were at rest", 30, || {
        let before = versions()?;
        wait::throughout("nothing more is written", 6, || {
            let now = versions()?;
            wait::ensure(now == before, || format!("{before:?} became {now:?}"))
        })
    })?;
    scene.patch_pool("python", &json!({"spec": with_cpu("1")}))?;
    bound(scene, "run")?;
    wait_until_at_rest(scene, 60)?;
    let available = pool_says(scene, "python", "Available", "MinimumReplicasAvailable")?;
    wait::ensure(!available.contains("warming"), || available)
}

const PROGRESSING: &str = "jsonpath={.status.conditions[?(@.type==\"Progressing\")].message}";
