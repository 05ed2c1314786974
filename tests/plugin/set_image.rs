//! Checks `kubectl warmpool set image`: the patch, and what is refused.

use crate::command_line::{printed, run_as};
use crate::objects::pool;
use json_patch::Patch;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use warmpool::cli::kubectl::set_image::{Change, patch};

fn two_containers() -> DynamicObject {
    let containers = json!([{"name": "main", "image": "image:1"}, {"name": "side", "image": "side:1"}]);
    let init = json!([{"name": "first", "image": "first:1"}]);
    let spec = json!({"containers": containers, "initContainers": init});
    pool("image:1", &json!({"spec": {"template": {"spec": spec}}}))
}

fn changes(written: &[&str]) -> Vec<Change> {
    written.iter().map(|change| change.parse().unwrap()).collect()
}

/// The images of the pool after the patch: main, side, first.
fn images(pool: &DynamicObject, written: &[&str]) -> Vec<String> {
    let operations = patch(pool, &changes(written)).unwrap();
    let patch: Patch = serde_json::from_value(operations.into()).unwrap();
    let mut now = serde_json::to_value(pool).unwrap();
    json_patch::patch(&mut now, &patch).unwrap();
    let image = |at: &str| {
        now.pointer(&format!("/spec/template/spec/{at}/image"))
            .and_then(Value::as_str)
    };
    ["containers/0", "containers/1", "initContainers/0"]
        .iter()
        .map(|at| image(at).unwrap().to_string())
        .collect()
}

#[test]
fn the_named_containers_get_their_images_and_a_star_names_all() {
    let pool = two_containers();
    assert_eq!(images(&pool, &["side=side:2"]), ["image:1", "side:2", "first:1"]);
    assert_eq!(images(&pool, &["main=a", "first=b"]), ["a", "side:1", "b"]);
    assert_eq!(images(&pool, &["*=a:2"]), ["a:2", "a:2", "a:2"]);
    assert!(
        patch(&pool, &changes(&["main=image:1"])).unwrap().is_empty(),
        "nothing changes"
    );
}

#[test]
fn a_pool_that_was_changed_or_replaced_meanwhile_is_left_alone() {
    let read = two_containers();
    let operations = patch(&read, &changes(&["side=side:2"])).unwrap();
    let patch: Patch = serde_json::from_value(operations.into()).unwrap();
    let mut swapped = serde_json::to_value(&read).unwrap();
    swapped["spec"]["template"]["spec"]["containers"][1]["name"] = json!("other");
    assert!(json_patch::patch(&mut swapped, &patch).is_err());
    let mut another = serde_json::to_value(&read).unwrap();
    another["metadata"]["uid"] = json!("another");
    assert!(json_patch::patch(&mut another, &patch).is_err());
}

#[test]
fn a_container_that_is_not_there_and_a_template_elsewhere_are_errors() {
    let error = patch(&two_containers(), &changes(&["mian=a"]))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "unable to find container named \"mian\"; the template of pool \"python\" has main, side, first"
    );
    let named = pool(
        "image:1",
        &json!({"spec": {"template": null, "templateRef": {"name": "shared"}}}),
    );
    let error = patch(&named, &changes(&["main=a"])).unwrap_err().to_string();
    assert!(
        error.contains("the PodTemplate \"shared\"") && error.ends_with("change the image there"),
        "{error}"
    );
    for wrong in ["main", "=a", "main="] {
        let output = run_as("kubectl-warmpool", &["set", "image", "python", wrong]);
        assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
        assert!(
            printed(&output).contains("write CONTAINER=IMAGE"),
            "{}",
            printed(&output)
        );
    }
}
