//! Which pool an argument means, and what the verbs read of it. A pool stays JSON here, so that the plugin
//! also works with a server whose pools have fields that it does not know.

use kube::core::DynamicObject;
use serde_json::Value;
use std::str::FromStr;
use thiserror::Error;

/// Words for the kind before the slash of `pool/python`.
const KINDS: [&str; 7] = [
    "pool",
    "pools",
    "wp",
    "pool.warmpool.dev",
    "pools.warmpool.dev",
    "pool.v1alpha1.warmpool.dev",
    "pools.v1alpha1.warmpool.dev",
];

/// The name of a pool, from an argument like `python` or `pool/python`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolName(pub String);

/// Why an argument names no pool.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PoolNameError {
    /// Another kind stands before the slash.
    #[error("{0:?} is not a pool; write the pool's name alone, or pool/NAME")]
    Kind(String),
    /// No object can have this name.
    #[error("{0:?} is no name of a pool; names are made of lower case letters, digits, '-' and '.'")]
    Name(String),
}

impl FromStr for PoolName {
    type Err = PoolNameError;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        let name = match written.split_once('/') {
            None => written,
            Some((kind, name)) if KINDS.contains(&kind.to_lowercase().as_str()) => name,
            Some(_) => return Err(PoolNameError::Kind(written.into())),
        };
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fits) {
            Ok(Self(name.into()))
        } else {
            Err(PoolNameError::Name(name.into()))
        }
    }
}

/// Name of a pool.
pub(super) fn name(pool: &DynamicObject) -> &str {
    pool.metadata.name.as_deref().unwrap_or_default()
}

/// UID of a pool.
pub(super) fn uid(pool: &DynamicObject) -> &str {
    pool.metadata.uid.as_deref().unwrap_or_default()
}

/// The part of a pool at a JSON pointer like `/spec/replicas`.
pub(super) fn at<'a>(pool: &'a DynamicObject, pointer: &str) -> Option<&'a Value> {
    pool.data.pointer(pointer).filter(|v| !v.is_null())
}

/// Whether the rollout of a pool is paused.
pub(super) fn is_paused(pool: &DynamicObject) -> bool {
    at(pool, "/spec/updateStrategy/paused") == Some(&Value::Bool(true))
}

/// Name of the PodTemplate that a pool takes its template from, if it has none of its own.
pub(super) fn template_ref(pool: &DynamicObject) -> Option<&str> {
    at(pool, "/spec/templateRef/name")?.as_str()
}

/// The command that does something about the rollout of a pool, ready to be typed.
pub(super) fn command(verb: &str, pool: &DynamicObject) -> String {
    let namespace = pool.metadata.namespace.as_deref().unwrap_or_default();
    format!("kubectl warmpool rollout {verb} {} -n {namespace}", name(pool))
}
