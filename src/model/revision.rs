//! Template revisions: how a template is hashed and compared, and stored ControllerRevisions.

use crate::api::labels;
use crate::model::Key;
use crate::model::stored::{self, StoredRevision};
use serde_json::Value;
use sha2::{Digest, Sha256};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Version of [`hash`], stored on every ControllerRevision. Stored revisions are found by equal content, so a new
/// version of the function renames no stored revision and replaces no sandbox.
pub const HASH_VERSION: &str = "1";

/// Letters and digits without vowels and look-alikes, as in `k8s.io/apimachinery/pkg/util/rand`.
pub const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Length of a short hash, with 27^10 values: any two of 10,000 revisions collide with a chance of 1 in 4 million.
const HASH_LENGTH: usize = 10;

/// A pod template with its canonical form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// The template as written.
    pub value: Value,
    /// Canonical JSON of its labels, annotations and spec: equal if and only if the templates mean the same pod.
    pub canonical: String,
}

impl Template {
    /// A template as a user wrote it or a ControllerRevision stores it.
    pub fn new(value: Value) -> Self {
        let metadata = |name: &str| {
            value
                .pointer(&format!("/metadata/{name}"))
                .cloned()
                .unwrap_or_default()
        };
        let content = serde_json::json!({
            "metadata": {"labels": metadata("labels"), "annotations": metadata("annotations")},
            "spec": value.get("spec").cloned().unwrap_or_default(),
        });
        let canonical = canonical(&content).unwrap_or_default().to_string();
        Self { value, canonical }
    }
}

/// `value` with sorted keys and without nulls and empty maps, because those are other ways to write an absent field.
fn canonical(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map
                .iter()
                .filter_map(|(k, v)| canonical(v).map(|v| (k.clone(), v)))
                .collect();
            (!sorted.is_empty()).then(|| Value::Object(sorted.into_iter().collect()))
        }
        // An element of a list keeps its position.
        Value::Array(list) => Some(Value::Array(
            list.iter()
                .map(|v| canonical(v).unwrap_or_else(|| v.clone()))
                .collect(),
        )),
        other => Some(other.clone()),
    }
}

/// Short hash of a canonical template: SHA-256 over it and the collision count, written in [`ALPHABET`].
pub fn hash(canonical: &str, collision_count: i32) -> String {
    let mut hasher = Sha256::new();
    hasher.update(canonical.as_bytes());
    if collision_count > 0 {
        hasher.update(collision_count.to_be_bytes());
    }
    hasher
        .finalize()
        .iter()
        .take(HASH_LENGTH)
        .map(|byte| letter(u64::from(*byte)))
        .collect()
}

/// One letter of [`ALPHABET`].
pub fn letter(n: u64) -> char {
    let index = usize::try_from(n % ALPHABET.len() as u64).unwrap_or_default();
    ALPHABET.get(index).map_or('b', |b| char::from(*b))
}

/// A stored ControllerRevision of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Namespace and name of the ControllerRevision.
    pub key: Key,
    /// UID of the ControllerRevision.
    pub uid: SmolStr,
    /// UID of the controlling pool; empty without one. The revision occupies its name in either case.
    pub owner: String,
    /// Name of the pool, from the label.
    pub pool: SmolStr,
    /// Short hash, from the label.
    pub hash: String,
    /// Increasing number; the highest is the newest.
    pub number: i64,
    /// The stored template.
    pub template: Arc<Template>,
    /// The user's change-cause annotation.
    pub change_cause: Option<String>,
}

impl Revision {
    /// Decodes a stored ControllerRevision; `None` when it belongs to no pool.
    pub fn read(stored: &StoredRevision) -> Option<Self> {
        let metadata = &stored.metadata;
        let label = |name: &str| metadata.labels.as_ref().and_then(|l| l.get(name)).cloned();
        let owner = metadata
            .owner_references
            .iter()
            .flatten()
            .find(|r| r.controller == Some(true));
        let template = stored.template.clone()?;
        Some(Self {
            key: stored::key(metadata),
            uid: stored::uid(metadata),
            owner: owner.map(|o| o.uid.clone()).unwrap_or_default(),
            pool: label(labels::POOL)?.into(),
            hash: label(labels::REVISION)?,
            number: stored.revision,
            template: Arc::new(Template::new(template)),
            change_cause: stored::annotation(metadata, labels::CHANGE_CAUSE),
        })
    }
}
