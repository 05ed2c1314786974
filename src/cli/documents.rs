//! Objects from a YAML or JSON stream, as `kubectl get -o yaml` or `-o json` prints them.

use crate::api::{API_VERSION, labels};
use crate::cache::index::Index;
use crate::cache::watch::take_over_list;
use crate::model::pool_error::PoolError;
use crate::model::stored::{StoredClaim, StoredPod, StoredPodTemplate, StoredPool, StoredRevision};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// Why a stream of documents cannot be planned from.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// Not YAML or JSON at all.
    #[error("document {number}: not valid YAML or JSON: {source}")]
    Syntax {
        /// Which document of the stream, from 1.
        number: usize,
        /// Where and why.
        source: serde_yaml_ng::Error,
    },
    /// Not an object with apiVersion, kind and a name.
    #[error("{place}: {problem}")]
    Object {
        /// Document, kind and name.
        place: String,
        /// Field and what is wrong with it.
        problem: String,
    },
}

/// The documents of one stream, sorted by kind.
#[derive(Default)]
pub struct Documents {
    pools: Vec<StoredPool>,
    claims: Vec<StoredClaim>,
    pods: Vec<StoredPod>,
    templates: Vec<StoredPodTemplate>,
    revisions: Vec<StoredRevision>,
    /// Kinds that were passed over, for a warning.
    pub ignored: Vec<String>,
}

impl Documents {
    /// Reads a stream of YAML documents or of a JSON document, lists included.
    ///
    /// # Errors
    /// A sentence naming the document and the field that is wrong.
    pub fn read(text: &str) -> Result<Self, DocumentError> {
        let mut documents = Self::default();
        for (index, document) in serde_yaml_ng::Deserializer::from_str(text).enumerate() {
            let number = index + 1;
            let value =
                Value::deserialize(document).map_err(|source| DocumentError::Syntax { number, source })?;
            if !value.is_null() {
                documents.add(&format!("document {number}"), value)?;
            }
        }
        Ok(documents)
    }

    /// The index that a cluster holding just these objects would give.
    pub fn into_index(self) -> Index {
        let mut index = Index::default();
        take_over_list(&mut index, self.revisions);
        take_over_list(&mut index, self.pods);
        take_over_list(&mut index, self.templates);
        take_over_list(&mut index, self.pools);
        take_over_list(&mut index, self.claims);
        index
    }

    fn add(&mut self, place: &str, mut value: Value) -> Result<(), DocumentError> {
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_string);
        let wrong = |place: &str, problem: &str| DocumentError::Object {
            place: place.into(),
            problem: problem.into(),
        };
        let kind = text(&value, "kind")
            .ok_or_else(|| wrong(place, "kind: missing; every object needs apiVersion and kind"))?;
        let api = text(&value, "apiVersion").ok_or_else(|| {
            wrong(
                place,
                "apiVersion: missing; every object needs apiVersion and kind",
            )
        })?;
        if let Some(items) = value.get_mut("items").map(Value::take) {
            let Value::Array(items) = items else {
                return Err(wrong(place, "items: must be a list"));
            };
            for (index, mut item) in items.into_iter().enumerate() {
                // The items of a typed list, as the API server prints it, carry no kind of their own.
                if let (Some(object), Some(of)) = (
                    item.as_object_mut(),
                    kind.strip_suffix("List").filter(|k| !k.is_empty()),
                ) {
                    object.entry("kind").or_insert_with(|| of.into());
                    object.entry("apiVersion").or_insert_with(|| api.clone().into());
                }
                self.add(&format!("{place}, item {}", index + 1), item)?;
            }
            return Ok(());
        }
        let name = value
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let place = format!("{place} ({kind} {name})");
        if name.is_empty() {
            return Err(wrong(&place, "metadata.name: missing"));
        }
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.entry("namespace").or_insert_with(|| "default".into());
        }
        match (api.as_str(), kind.as_str()) {
            (API_VERSION, "Pool") => self.pools.push(object(&place, value)?),
            (API_VERSION, "SandboxClaim") => self.claims.push(object(&place, value)?),
            ("v1", "Pod") => {
                let pod: StoredPod = object(&place, value)?;
                if pod
                    .metadata
                    .labels
                    .as_ref()
                    .is_some_and(|l| l.contains_key(labels::POOL))
                {
                    self.pods.push(pod);
                }
            }
            ("v1", "PodTemplate") => self.templates.push(object(&place, value)?),
            ("apps/v1", "ControllerRevision") => self.revisions.push(object(&place, value)?),
            // Dumps of a cluster hold them; all that a plan needs of a node is in the pods.
            ("v1", "Node") => {}
            _ => self.ignored.push(place),
        }
        Ok(())
    }

    /// The first pool or claim whose spec is not understood.
    ///
    /// # Errors
    /// A sentence naming the document and the field.
    pub fn check(index: &Index) -> Result<(), DocumentError> {
        for key in index.pool_keys() {
            if let Some(PoolError::Spec(error)) = index.pool(&key).and_then(|p| p.error.clone()) {
                return Err(DocumentError::Object {
                    place: format!("Pool {key}"),
                    problem: error,
                });
            }
        }
        for key in index.claim_keys() {
            if let Some(Err(error)) = index.claim(&key).map(|c| c.spec.clone()) {
                return Err(DocumentError::Object {
                    place: format!("SandboxClaim {key}"),
                    problem: error,
                });
            }
        }
        Ok(())
    }
}

fn object<T: DeserializeOwned>(place: &str, value: Value) -> Result<T, DocumentError> {
    serde_path_to_error::deserialize(value).map_err(|error| DocumentError::Object {
        place: place.to_string(),
        problem: format!("{}: {}", error.path(), error.inner()),
    })
}
