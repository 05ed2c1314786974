//! Sandboxes that do not become Ready until a story lets them go.

use crate::api::PODS;
use crate::check::event::text;
use crate::cluster_state::ClusterState;
use crate::objects::{sim, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

/// A part of a pool's spec: the template with another image, whose sandboxes are held.
pub fn held(image: &str) -> Value {
    let of_image = json!({"template": {"spec": {"containers": [{"name": "main", "image": image}]}}});
    with(sim(&[("hold", "true")]), &of_image)
}

/// Lets the sandboxes that are held become Ready.
pub fn let_go(scene: &Scene) -> Result<(), String> {
    let not_held = json!({"metadata": {"annotations": {"sim.warmpool.dev/hold": null}}});
    let is_held = |pod: &&Value| pod["metadata"]["annotations"]["sim.warmpool.dev/hold"] == "true";
    for pod in scene.pods()?.iter().filter(is_held) {
        let name = text(pod, "/metadata/name");
        scene.lab.api.merge(PODS, &scene.namespace, name, &not_held)?;
    }
    Ok(())
}

/// The same, those that are made meanwhile too, until everything is at rest.
pub fn let_go_until_at_rest(scene: &Scene) -> Result<(), String> {
    wait::until("everything was at rest", 60, || {
        let_go(scene)?;
        ClusterState::read(scene)?.at_rest()
    })
}
