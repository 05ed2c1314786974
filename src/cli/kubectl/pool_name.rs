//! Parses the argument that names a pool.

use std::str::FromStr;
use thiserror::Error;

/// Names of the kind before the slash of `pool/python`, in lower case.
const KINDS: [&str; 7] = [
    "pool",
    "pools",
    "wp",
    "pool.warmpool.dev",
    "pools.warmpool.dev",
    "pool.v1alpha1.warmpool.dev",
    "pools.v1alpha1.warmpool.dev",
];

/// The name of a pool, parsed from `python` or `pool/python`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolName(pub String);

/// The argument does not name a pool.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PoolNameError {
    /// The kind before the slash is not Pool. Holds the whole argument.
    #[error("{0:?} is not a pool; write the pool's name alone, or pool/NAME")]
    Kind(String),
    /// No object can have this name.
    #[error("{0:?} is not a valid pool name; use lower case letters, digits, '-' and '.'")]
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
