//! Describes every field of a CRD in one line, with its default and a line for each value that it may have.
//!
//! The derived schemas lose the description of a field whose type is another type, and the meaning of each enum value.

use schemars::Schema;
use serde_json::{Map, Value};

/// The pod template. With the descriptions of all its fields, the CRD would be too large for `kubectl apply`.
const TEMPLATE: &str = "template";

/// Writes the descriptions of `types`, the schema of the Rust type, into `schema`, the schema of the CRD.
pub(super) fn describe(schema: &mut Value, types: &Schema) {
    let types = types.as_value();
    let definitions = types.get("$defs").and_then(Value::as_object);
    let none = Map::new();
    describe_field(schema, types, definitions.unwrap_or(&none));
}

fn describe_field(schema: &mut Value, field: &Value, definitions: &Map<String, Value>) {
    let type_ = resolved(field, definitions);
    describe_alone(schema, field, type_);
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        match type_.pointer("/properties").and_then(|all| all.get(name)) {
            Some(field) if name == TEMPLATE => describe_alone(property, field, &Value::Null),
            Some(field) => describe_field(property, field, definitions),
            None => {}
        }
    }
    for nested in ["items", "additionalProperties"] {
        if let (Some(schema), Some(field)) = (schema.get_mut(nested), type_.get(nested)) {
            describe_field(schema, field, definitions);
        }
    }
}

/// Describes one field of the type `type_`, and nothing inside it.
fn describe_alone(schema: &mut Value, field: &Value, type_: &Value) {
    let said = [field, type_]
        .into_iter()
        .find_map(|of| of.get("description")?.as_str());
    let (Some(said), Some(object)) = (said, schema.as_object_mut()) else {
        return;
    };
    let mut text = one_line(said);
    let default = object.get("default").filter(|default| !default.is_object());
    if let Some(default) = default.filter(|_| !text.contains("Default: ")) {
        text = format!("{text} Default: {}.", default.to_string().trim_matches('"'));
    }
    text.extend(values(type_));
    object.insert("description".into(), text.into());
}

/// The type that `field` refers to, or is.
fn resolved<'a>(field: &'a Value, definitions: &'a Map<String, Value>) -> &'a Value {
    let alternatives = field
        .get("anyOf")
        .or_else(|| field.get("allOf"))
        .and_then(Value::as_array);
    let of_option = alternatives.and_then(|all| all.iter().find(|one| one.get("$ref").is_some()));
    let reference = of_option.unwrap_or(field).get("$ref").and_then(Value::as_str);
    reference
        .and_then(|path| path.strip_prefix("#/$defs/"))
        .and_then(|name| definitions.get(name))
        .unwrap_or(field)
}

/// A line for each value of an enum, as the API of Kubernetes has them.
fn values(type_: &Value) -> Option<String> {
    let variants = type_.get("oneOf")?.as_array()?;
    let line = |variant: &Value| {
        let (value, means) = (
            variant.get("const")?.as_str()?,
            variant.get("description")?.as_str()?,
        );
        Some(format!("\n - `{value}`: {}", one_line(means)))
    };
    let lines: String = variants.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| format!("\nPossible values:{lines}"))
}

/// A comment without the line breaks of its source.
fn one_line(comment: &str) -> String {
    comment.split_whitespace().collect::<Vec<_>>().join(" ")
}
