//! A Pool, decoded and validated once.

use crate::api::{ClaimDefaults, PoolSpec, PoolStatus, labels};
use crate::model::Key;
use crate::model::availability::AvailabilityRule;
use crate::model::pool_error::PoolError;
use crate::model::resolved_pool_spec::ResolvedPoolSpec;
use crate::model::revision::Template;
use crate::model::stored::{self, StoredPool};
use jiff::Timestamp;
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A Pool as decisions need it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pool {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: SmolStr,
    /// Resource version of the state these facts were read from.
    pub resource_version: SmolStr,
    /// `metadata.generation`.
    pub generation: i64,
    /// Labels, by which claims select pools.
    pub labels: BTreeMap<String, String>,
    /// Defaults of claims that leave a field out.
    pub claim_defaults: ClaimDefaults,
    /// Creation time.
    pub created: Timestamp,
    /// Has a deletion timestamp.
    pub terminating: bool,
    /// The PodTemplate that `spec.templateRef` names.
    pub template_ref: Option<Key>,
    /// The template of the spec or of the PodTemplate; empty with an [`error`](Self::error).
    pub template: Arc<Template>,
    /// The user's change-cause annotation.
    pub change_cause: Option<String>,
    /// The spec in whole numbers. With a [`PoolError::Spec`] only its availability rule is valid.
    pub spec: ResolvedPoolSpec,
    /// Why the pool creates and deletes nothing. Available sandboxes may still be claimed.
    pub error: Option<PoolError>,
    /// The stored status.
    pub status: PoolStatus,
}

impl Pool {
    /// Decodes a stored pool. The PodTemplate that it names counts as missing until
    /// [`with_template`](Self::with_template) adds it.
    pub fn read(pool: &StoredPool) -> Self {
        let key = stored::key(&pool.metadata);
        let understood = stored::decode("spec", &pool.spec).and_then(|spec: PoolSpec| {
            Ok((
                Source::of(&spec)?,
                ResolvedPoolSpec::resolve(&spec)?,
                spec.claim_defaults,
            ))
        });
        let claim_defaults = match &understood {
            Ok((_, _, defaults)) => defaults.clone(),
            // An error elsewhere in the spec changes nothing for claims.
            Err(_) => pool
                .spec
                .get("claimDefaults")
                .and_then(|d| stored::decode("spec.claimDefaults", d).ok()),
        };
        let (template_ref, template, spec, error) = match understood {
            Ok((Source::Inline(template), spec, _)) => (None, Arc::new(template), spec, None),
            Ok((Source::Named(name), spec, _)) => {
                let named = Key::new(key.namespace.clone(), name);
                let error = PoolError::not_found(&named);
                (Some(named), Arc::default(), spec, Some(error))
            }
            Err(error) => {
                let spec = ResolvedPoolSpec {
                    availability_rule: AvailabilityRule::salvage(&pool.spec),
                    ..ResolvedPoolSpec::default()
                };
                (None, Arc::default(), spec, Some(PoolError::Spec(error)))
            }
        };
        Self {
            key,
            uid: stored::uid(&pool.metadata),
            resource_version: stored::resource_version(&pool.metadata),
            generation: pool.metadata.generation.unwrap_or_default(),
            labels: pool.metadata.labels.clone().unwrap_or_default(),
            claim_defaults: claim_defaults.unwrap_or_default(),
            created: stored::created(&pool.metadata),
            terminating: pool.metadata.deletion_timestamp.is_some(),
            template_ref,
            template,
            change_cause: stored::annotation(&pool.metadata, labels::CHANGE_CAUSE),
            spec,
            error,
            status: stored::decode("status", &pool.status).unwrap_or_default(),
        }
    }

    /// Adds the template of the PodTemplate that the pool names, or the error that it has.
    #[must_use]
    pub fn with_template(self, found: Result<Arc<Template>, PoolError>) -> Self {
        let (template, error) = match found {
            Ok(template) => (template, None),
            Err(error) => (Arc::default(), Some(error)),
        };
        Self {
            template,
            error,
            ..self
        }
    }

    /// Logs the error, if there is one.
    pub(crate) fn log_error(&self) {
        if let Some(error) = &self.error {
            tracing::warn!(pool = %self.key, "the pool is left as it is: {}", error.message());
        }
    }
}

/// Where the template of a pool stands.
enum Source {
    /// In the pool.
    Inline(Template),
    /// In the PodTemplate of this name.
    Named(String),
}

impl Source {
    /// Checks what an object stored under an older, looser schema may lack.
    fn of(spec: &PoolSpec) -> Result<Self, String> {
        match (&spec.template, &spec.template_ref) {
            (Some(template), None) => Ok(Self::Inline(Template::new(template.0.clone()))),
            (None, Some(named)) if named.name.is_empty() => {
                Err("spec.templateRef.name: must name a PodTemplate".into())
            }
            (None, Some(named)) => Ok(Self::Named(named.name.clone())),
            (Some(_), Some(_)) => Err("spec.templateRef: must not be there beside spec.template".into()),
            (None, None) => {
                Err("spec.template: missing; write it, or name a PodTemplate in spec.templateRef".into())
            }
        }
    }
}
