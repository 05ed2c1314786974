//! Compares the served CRDs with the types that this operator knows.
//!
//! It reads the published OpenAPI schema. Every account may read it, so the operator needs no right on
//! CustomResourceDefinitions.

use crate::api::crd;
use crate::cache::synced_cache::SharedCache;
use crate::client::call::call;
use crate::client::request_errors::CallError;
use kube::Client;
use kube::api::ListParams;
use kube::core::Request;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Path of the published schemas of the group warmpool.dev.
const PUBLISHED: &str = "/openapi/v3/apis/warmpool.dev/v1alpha1";
/// Number of tries: a new type is published some time after it is served.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(2);
/// Most fields in one log line.
const MAX_LISTED: usize = 5;

/// How a served type differs from the type that this operator knows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Fields that the API server drops, as paths like `spec.replicas`.
    pub missing: Vec<String>,
    /// Fields that users can write but this operator does not know.
    pub unknown: Vec<String>,
}

/// Waits until the types are served, and logs where they are older or newer than this operator.
pub async fn check(client: Client, shared: SharedCache) {
    shared.until_synced().await;
    for _ in 0..TRIES {
        match published(&client).await {
            Ok(served) => {
                // On its own thread, whose memory the allocator returns afterwards. On this thread, objects that the
                // cache allocates meanwhile would keep that memory in use.
                _ = tokio::task::spawn_blocking(move || log_differences(&served)).await;
                return;
            }
            Err(error) => tracing::debug!(
                error = error.message(),
                "the published schemas cannot be read yet"
            ),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn published(client: &Client) -> Result<String, CallError> {
    let request = Request::new(PUBLISHED)
        .list(&ListParams::default())
        .map_err(kube::Error::BuildRequest)?;
    call(client.request_text(request)).await
}

fn log_differences(served: &str) {
    let (Ok(served), Ok(crds)) = (serde_json::from_str::<Value>(served), crd::all()) else {
        tracing::debug!("the published schemas are not understood");
        return;
    };
    for (_, crd) in crds {
        let name = crd.metadata.name.unwrap_or_default();
        let kind = crd.spec.names.kind;
        let known = crd.spec.versions.into_iter().find_map(|version| version.schema);
        let known =
            serde_json::to_value(known.and_then(|schema| schema.open_api_v3_schema)).unwrap_or_default();
        let Some(served) = of_kind(&served, &kind) else {
            continue;
        };
        let Difference { missing, unknown } = compare(&known, served);
        if !missing.is_empty() {
            tracing::error!(
                fields = listed(&missing),
                "the CRD {name} is older than this operator and drops fields; replace it: \
                 warmpool crds | kubectl apply -f -"
            );
        }
        if !unknown.is_empty() {
            tracing::error!(
                fields = listed(&unknown),
                "the CRD {name} is newer than this operator, which ignores fields; upgrade the operator"
            );
        }
    }
}

/// The schema of a kind in a published document.
fn of_kind<'a>(document: &'a Value, kind: &str) -> Option<&'a Value> {
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    schemas.values().find(|schema| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.into_iter().flatten().any(|named| named["kind"] == kind)
    })
}

/// Compares the fields of two schemas of a type, below `spec` and `status`. Of a missing field, nested fields are not
/// listed.
pub fn compare(known: &Value, served: &Value) -> Difference {
    let (known, served) = (fields(known), fields(served));
    let only = |fields: &BTreeSet<String>, others: &BTreeSet<String>| {
        let is_listed = |field: &&String| {
            let parent = field.rsplit_once('.').map(|(parent, _)| parent);
            !others.contains(*field) && parent.is_none_or(|parent| others.contains(parent))
        };
        fields.iter().filter(is_listed).cloned().collect()
    };
    Difference {
        missing: only(&known, &served),
        unknown: only(&served, &known),
    }
}

/// Paths of all fields of a type.
fn fields(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for part in ["spec", "status"] {
        collect(schema["properties"].get(part), part, &mut found);
    }
    found
}

/// Adds `path` and the paths of all fields within `schema`.
fn collect(schema: Option<&Value>, path: &str, found: &mut BTreeSet<String>) {
    let Some(schema) = schema else { return };
    found.insert(path.to_string());
    for nested in ["items", "additionalProperties"] {
        collect(schema.get(nested), path, found);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(Some(property), &format!("{path}.{name}"), found);
    }
}

fn listed(fields: &[String]) -> String {
    let named: Vec<&str> = fields.iter().take(MAX_LISTED).map(String::as_str).collect();
    match fields.len().saturating_sub(MAX_LISTED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
