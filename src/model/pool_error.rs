//! Why a pool is left as it is.

use crate::model::Key;

/// What keeps a pool from being acted on: none of its sandboxes is created or deleted, and those that are warm
/// may still be claimed. Each holds a sentence that says what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// The spec holds a value that is not understood; its targets mean nothing.
    Spec(String),
    /// The PodTemplate that `templateRef` names does not exist.
    TemplateNotFound(String),
    /// The PodTemplate that `templateRef` names cannot be used.
    TemplateInvalid(String),
}

impl PoolError {
    /// There is no PodTemplate `key`.
    pub fn not_found(key: &Key) -> Self {
        Self::TemplateNotFound(format!(
            "PodTemplate {} does not exist in namespace {}; create it, or name another one in spec.templateRef",
            key.name, key.namespace
        ))
    }

    /// The PodTemplate `key` cannot be used; `problem` says what is wrong and what to do.
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
