//! Whether the API server serves our types as this operator knows them. It is asked through the published OpenAPI
//! schema, which every account may read, so that no right on CustomResourceDefinitions is needed.

use crate::api::crd;
use crate::cache::watch::SharedCache;
use crate::client::call::{CallError, call};
use kube::Client;
use kube::api::ListParams;
use kube::core::Request;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Where the API server publishes the schemas of our group.
const PUBLISHED: &str = "/openapi/v3/apis/warmpool.dev/v1alpha1";
/// How often they are asked for: a type that is new is published some time after it is served.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(2);
/// Fields named in one line of the log.
const NAMED: usize = 5;

/// How a served type differs from the one that this operator knows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Fields that the API server drops from what it is given, as paths like `spec.replicas`.
    pub missing: Vec<String>,
    /// Fields that users can write and this operator does not know.
    pub unknown: Vec<String>,
}

/// Waits until our types are served, and tells the log where they are older or newer than this operator.
pub async fn check(client: Client, shared: SharedCache) {
    shared.until_synced().await;
    for _ in 0..TRIES {
        match published(&client).await {
            Ok(served) => return tell(&served),
            Err(error) => tracing::debug!(
                error = error.message(),
                "the published schemas cannot be read yet"
            ),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn published(client: &Client) -> Result<Value, CallError> {
    let request = Request::new(PUBLISHED)
        .list(&ListParams::default())
        .map_err(kube::Error::BuildRequest)?;
    call(client.request(request)).await
}

fn tell(served: &Value) {
    let Ok(crds) = crd::all() else { return };
    for (_, crd) in crds {
        let name = crd.metadata.name.unwrap_or_default();
        let kind = crd.spec.names.kind;
        let known = crd.spec.versions.into_iter().find_map(|version| version.schema);
        let known =
            serde_json::to_value(known.and_then(|schema| schema.open_api_v3_schema)).unwrap_or_default();
        let Some(served) = of_kind(served, &kind) else {
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

/// Compares the fields of two schemas of one type, below `spec` and `status`. Of a field that is not there at all, those
/// within it are not named.
pub fn compare(known: &Value, served: &Value) -> Difference {
    let (known, served) = (fields(known), fields(served));
    let only = |these: &BTreeSet<String>, those: &BTreeSet<String>| {
        let is_named = |field: &&String| {
            let parent = field.rsplit_once('.').map(|(parent, _)| parent);
            !those.contains(*field) && parent.is_none_or(|parent| those.contains(parent))
        };
        these.iter().filter(is_named).cloned().collect()
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

/// Adds `path` and the paths of what `schema` has within it.
fn collect(schema: Option<&Value>, path: &str, found: &mut BTreeSet<String>) {
    let Some(schema) = schema else { return };
    found.insert(path.to_string());
    for within in ["items", "additionalProperties"] {
        collect(schema.get(within), path, found);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(Some(property), &format!("{path}.{name}"), found);
    }
}

fn listed(fields: &[String]) -> String {
    let named: Vec<&str> = fields.iter().take(NAMED).map(String::as_str).collect();
    match fields.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
