//! Reads objects from a YAML or JSON stream, as `kubectl get` prints them.

use crate::api::{API_VERSION, labels};
use crate::cache::index::Index;
use crate::cache::watch::take_over_list;
use crate::cli::unknown_fields;
use crate::model::pool_error::PoolError;
use crate::model::stored::eviction_request::{self, StoredEvictionRequest};
use crate::model::stored::{
    StoredClaim, StoredNode, StoredPod, StoredPodTemplate, StoredPool, StoredRevision,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// The stream cannot be planned from.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// The document is not YAML or JSON.
    #[error("document {number}: not valid YAML or JSON: {source}")]
    Syntax {
        /// Number of the document in the stream, from 1.
        number: usize,
        /// Position and cause.
        source: serde_yaml_ng::Error,
    },
    /// The stream holds no object at all.
    #[error("the input holds no object; write pools, claims and pods as 'kubectl get -o yaml' prints them")]
    Empty,
    /// The document is not an object, or a field of it is invalid.
    #[error("{object}: {problem}")]
    Object {
        /// Document number, kind and name.
        object: String,
        /// The field and what is wrong with it.
        problem: String,
    },
}

/// The objects of one stream, by kind.
#[derive(Default)]
pub struct Documents {
    pools: Vec<StoredPool>,
    claims: Vec<StoredClaim>,
    pods: Vec<StoredPod>,
    templates: Vec<StoredPodTemplate>,
    revisions: Vec<StoredRevision>,
    nodes: Vec<StoredNode>,
    eviction_requests: Vec<StoredEvictionRequest>,
    /// Objects of any kind, and lists.
    count: usize,
    /// Objects of kinds that no plan depends on, for a warning.
    pub ignored: Vec<String>,
}

impl Documents {
    /// Reads a stream of YAML documents or a JSON document. Reads the items of lists, too.
    ///
    /// # Errors
    /// The first document that cannot be read.
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
        if documents.count == 0 {
            return Err(DocumentError::Empty);
        }
        Ok(documents)
    }

    /// Sets the creation time of claims and pods without one to `now`, because a person who writes such an object means
    /// a new one.
    #[must_use]
    pub fn made_at(mut self, now: Timestamp) -> Self {
        let claims = self.claims.iter_mut().map(|claim| &mut claim.metadata);
        let pods = self.pods.iter_mut().map(|pod| &mut pod.metadata);
        for metadata in claims.chain(pods) {
            metadata.creation_timestamp.get_or_insert(Time(now));
        }
        self
    }

    /// The index of a cluster that has exactly these objects at `now`. Nodes are the exception: a node that the stream
    /// lacks may exist.
    pub fn into_index(self, now: Timestamp) -> Index {
        let mut index = Index::default();
        take_over_list(&mut index, self.revisions);
        take_over_list(&mut index, self.pods);
        take_over_list(&mut index, self.templates);
        take_over_list(&mut index, self.pools);
        take_over_list(&mut index, self.claims);
        for node in &self.nodes {
            index.apply_node(node, now);
            index.nodes_are_partial();
        }
        for request in &self.eviction_requests {
            index.apply_eviction_request(request, now);
        }
        index
    }

    fn add(&mut self, position: &str, mut value: Value) -> Result<(), DocumentError> {
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_string);
        let invalid = |object: &str, problem: &str| DocumentError::Object {
            object: object.into(),
            problem: problem.into(),
        };
        let kind = text(&value, "kind")
            .ok_or_else(|| invalid(position, "kind: missing; every object needs apiVersion and kind"))?;
        let api = text(&value, "apiVersion").ok_or_else(|| {
            invalid(
                position,
                "apiVersion: missing; every object needs apiVersion and kind",
            )
        })?;
        self.count += 1;
        if let Some(items) = value.get_mut("items").map(Value::take) {
            let Value::Array(items) = items else {
                return Err(invalid(position, "items: must be a list"));
            };
            for (index, mut item) in items.into_iter().enumerate() {
                // The items of a typed list, such as PodList, have no kind and apiVersion.
                if let (Some(object), Some(of)) = (
                    item.as_object_mut(),
                    kind.strip_suffix("List").filter(|k| !k.is_empty()),
                ) {
                    object.entry("kind").or_insert_with(|| of.into());
                    object.entry("apiVersion").or_insert_with(|| api.clone().into());
                }
                self.add(&format!("{position}, item {}", index + 1), item)?;
            }
            return Ok(());
        }
        let name = value
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let position = format!("{position} ({kind} {name})");
        if name.is_empty() {
            return Err(invalid(
                &position,
                "metadata.name: missing; every object needs a name",
            ));
        }
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.entry("namespace").or_insert_with(|| "default".into());
        }
        if api == API_VERSION
            && let Some(field) = unknown_fields::first_unknown(&kind, &value)
        {
            let problem = format!("{field}: unknown field; 'kubectl explain' lists the fields of a {kind}");
            return Err(invalid(&position, &problem));
        }
        match (api.as_str(), kind.as_str()) {
            (API_VERSION, "Pool") => self.pools.push(decode(&position, value)?),
            (API_VERSION, "SandboxClaim") => self.claims.push(decode(&position, value)?),
            ("v1", "Pod") => {
                let pod: StoredPod = decode(&position, value)?;
                if pod
                    .metadata
                    .labels
                    .as_ref()
                    .is_some_and(|l| l.contains_key(labels::POOL))
                {
                    self.pods.push(pod);
                }
            }
            ("v1", "PodTemplate") => self.templates.push(decode(&position, value)?),
            ("apps/v1", "ControllerRevision") => self.revisions.push(decode(&position, value)?),
            ("v1", "Node") => self.nodes.push(decode(&position, value)?),
            (eviction_request::API_VERSION, eviction_request::KIND) => {
                self.eviction_requests.push(decode(&position, value)?);
            }
            _ => self.ignored.push(position),
        }
        Ok(())
    }

    /// Checks the spec of every pool and claim in `index`.
    ///
    /// # Errors
    /// The first pool or claim with an invalid spec.
    pub fn check(index: &Index) -> Result<(), DocumentError> {
        for key in index.pool_keys() {
            if let Some(PoolError::Spec(error)) = index.pool(&key).and_then(|p| p.error.clone()) {
                return Err(DocumentError::Object {
                    object: format!("Pool {key}"),
                    problem: error,
                });
            }
        }
        for key in index.claim_keys() {
            if let Some(Err(error)) = index.claim(&key).map(|c| c.spec.clone()) {
                return Err(DocumentError::Object {
                    object: format!("SandboxClaim {key}"),
                    problem: error,
                });
            }
        }
        Ok(())
    }
}

fn decode<T: DeserializeOwned>(object: &str, value: Value) -> Result<T, DocumentError> {
    serde_path_to_error::deserialize(value).map_err(|error| DocumentError::Object {
        object: object.to_string(),
        problem: format!("{}: {}", error.path(), error.inner()),
    })
}
