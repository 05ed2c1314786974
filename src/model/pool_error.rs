//! Why a pool creates and deletes nothing.

use crate::model::Key;

/// Why a pool creates and deletes nothing. Its available sandboxes may still be claimed. Each variant holds a sentence
/// that says what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// The spec holds an invalid value, so its numbers mean nothing.
    Spec(String),
    /// The PodTemplate that `templateRef` names does not exist.
    TemplateNotFound(String),
    /// The PodTemplate that `templateRef` names cannot be used.
    TemplateInvalid(String),
}

impl PoolError {
    /// PodTemplate `key` does not exist.
    pub fn not_found(key: &Key) -> Self {
        Self::TemplateNotFound(format!(
            "PodTemplate {} does not exist in namespace {}; create it, or name another one in spec.templateRef",
            key.name, key.namespace
        ))
    }

    /// PodTemplate `key` cannot be used; `problem` says what is wrong and what to do.
    pub fn invalid(key: &Key, problem: &str) -> Self {
        Self::TemplateInvalid(format!("PodTemplate {} cannot be used: {problem}", key.name))
    }

    /// The sentence, without a full stop.
    pub fn message(&self) -> &str {
        match self {
            Self::Spec(message) | Self::TemplateNotFound(message) | Self::TemplateInvalid(message) => message,
        }
    }
}
