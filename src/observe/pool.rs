//! A pool, decoded and validated once.

use super::Key;
use super::hooks::Gate;
use super::revision::Template;
use super::stored::{self, StoredPool};
use super::targets::Targets;
use crate::api::{PoolSpec, PoolStatus, labels};
use jiff::Timestamp;
use std::sync::Arc;

/// A Pool as decisions need it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pool {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: String,
    /// Resource version of the state these facts were read from.
    pub resource_version: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Creation time.
    pub created: Timestamp,
    /// Has a deletion timestamp.
    pub terminating: bool,
    /// The template of the spec.
    pub template: Arc<Template>,
    /// Why the template is what it is, in the user's words.
    pub change_cause: Option<String>,
    /// What the spec comes to. With a [`fault`](Self::fault) only its gate means anything.
    pub targets: Targets,
    /// A sentence saying what in the spec is not understood. Such a pool creates and deletes nothing; what is
    /// warm may still be claimed.
    pub fault: Option<String>,
    /// The stored status.
    pub status: PoolStatus,
}

impl Pool {
    /// Facts of a stored pool.
    pub fn read(pool: &StoredPool) -> Self {
        let spec: Result<PoolSpec, String> = stored::decode("spec", &pool.spec);
        let (template, targets) = match &spec {
            Ok(spec) => (
                Arc::new(Template::new(spec.template.0.clone())),
                Targets::resolve(spec),
            ),
            Err(fault) => (Arc::default(), Err(fault.clone())),
        };
        let (targets, fault) = match targets {
            Ok(targets) => (targets, None),
            Err(fault) => (
                Targets {
                    gate: Gate::salvage(&pool.spec),
                    ..Targets::default()
                },
                Some(fault),
            ),
        };
        Self {
            key: stored::key(&pool.metadata),
            uid: stored::uid(&pool.metadata),
            resource_version: stored::resource_version(&pool.metadata),
            generation: pool.metadata.generation.unwrap_or_default(),
            created: stored::created(&pool.metadata),
            terminating: pool.metadata.deletion_timestamp.is_some(),
            template,
            change_cause: stored::annotation(&pool.metadata, labels::CHANGE_CAUSE),
            targets,
            fault,
            status: stored::decode("status", &pool.status).unwrap_or_default(),
        }
    }
}
