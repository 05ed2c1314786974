//! A type that is served in an older or newer form is known by its fields.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use serde_json::{Value, json};
use warmpool::api::crd;
use warmpool::controllers::schema_check::{Difference, compare};

/// The schema of pools as this operator knows it.
fn pools() -> Value {
    let (_, crd) = crd::all().unwrap().into_iter().next().unwrap();
    let version = crd.spec.versions.into_iter().next().unwrap();
    serde_json::to_value(version.schema.unwrap().open_api_v3_schema).unwrap()
}

fn properties<'a>(schema: &'a mut Value, at: &str) -> &'a mut serde_json::Map<String, Value> {
    schema.pointer_mut(at).unwrap().as_object_mut().unwrap()
}

#[test]
fn a_schema_does_not_differ_from_itself() {
    assert_eq!(compare(&pools(), &pools()), Difference::default());
}

#[test]
fn missing_and_unknown_fields_are_named() {
    let mut served = pools();
    properties(&mut served, "/properties/spec/properties").remove("capacity");
    properties(&mut served, "/properties/status/properties")
        .insert("novel".into(), json!({"type": "string"}));
    let container =
        "/properties/spec/properties/template/properties/spec/properties/containers/items/properties";
    properties(&mut served, container).remove("image");
    let known = compare(&pools(), &served);
    // Of capacity's own fields nothing is said.
    assert_eq!(
        known.missing,
        ["spec.capacity", "spec.template.spec.containers.image"]
    );
    assert_eq!(known.unknown, ["status.novel"]);
}

#[test]
fn a_change_of_words_or_limits_is_no_difference_of_fields() {
    let mut served = pools();
    let replicas = properties(&mut served, "/properties/spec/properties/replicas");
    replicas.insert("description".into(), json!("Other words."));
    replicas.insert("maximum".into(), json!(7));
    assert_eq!(compare(&pools(), &served), Difference::default());
}
