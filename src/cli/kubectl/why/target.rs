//! Parses the argument of `why`: a name with or without a kind.

use crate::cli::kubectl::pool_name::{PoolName, PoolNameError};
use std::str::FromStr;
use thiserror::Error;

/// A kind that `why` explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A SandboxClaim.
    Claim,
    /// A Pool.
    Pool,
    /// A pod.
    Pod,
}

/// The order in which a name without a kind is looked up.
pub(super) const KINDS: [Kind; 3] = [Kind::Claim, Kind::Pool, Kind::Pod];

impl Kind {
    /// The word before the slash, as in `claim/run-42`.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Pool => "pool",
            Self::Pod => "pod",
        }
    }

    /// The resource, as in the errors of the API server.
    pub(super) fn resource(self) -> &'static str {
        match self {
            Self::Claim => "sandboxclaims.warmpool.dev",
            Self::Pool => "pools.warmpool.dev",
            Self::Pod => "pods",
        }
    }

    fn parse(written: &str) -> Option<Self> {
        match written.to_lowercase().as_str() {
            "claim"
            | "claims"
            | "sbc"
            | "sandboxclaim"
            | "sandboxclaims"
            | "sandboxclaim.warmpool.dev"
            | "sandboxclaims.warmpool.dev" => Some(Self::Claim),
            "pod" | "pods" | "po" | "sandbox" => Some(Self::Pod),
            _ => None,
        }
    }
}

/// The object to explain, parsed from `run-42` or `claim/run-42`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind; `None` when the argument is a name alone.
    pub kind: Option<Kind>,
    /// The name.
    pub name: String,
}

/// The argument does not name an object.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TargetError {
    /// The kind before the slash is unknown. Holds the whole argument.
    #[error("{0:?} is not a claim, a pool or a pod; write NAME alone, claim/NAME, pool/NAME or pod/NAME")]
    Kind(String),
    /// The kind before the slash is not a claim. Holds the whole argument.
    #[error("{0:?} is not a claim; write the claim's name alone, or claim/NAME")]
    NotAClaim(String),
    /// No object can have this name.
    #[error("{0:?} is not a valid name; use lower case letters, digits, '-' and '.'")]
    Name(String),
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        let (kind, name) = match written.split_once('/') {
            None => (None, written),
            Some((kind, name)) => match Kind::parse(kind) {
                Some(kind) => (Some(kind), name),
                // PoolName decides whether the word means a pool.
                None => (Some(Kind::Pool), written),
            },
        };
        let PoolName(name) = name.parse().map_err(|error| match error {
            PoolNameError::Kind(kind) => TargetError::Kind(kind),
            PoolNameError::Name(name) => TargetError::Name(name),
        })?;
        Ok(Self { kind, name })
    }
}
