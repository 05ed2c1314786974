//! Which object an argument of `why` means.

use crate::cli::kubectl::pool::{PoolName, PoolNameError};
use std::str::FromStr;
use thiserror::Error;

/// A kind that can be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A SandboxClaim.
    Claim,
    /// A Pool.
    Pool,
    /// A pod.
    Pod,
}

/// In the order in which a bare name is looked for.
pub(super) const KINDS: [Kind; 3] = [Kind::Claim, Kind::Pool, Kind::Pod];

impl Kind {
    /// As in `claim/run-42`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Pool => "pool",
            Self::Pod => "pod",
        }
    }

    /// The resource, as the API server names it in its answers.
    pub(super) fn resource(self) -> &'static str {
        match self {
            Self::Claim => "sandboxclaims.warmpool.dev",
            Self::Pool => "pools.warmpool.dev",
            Self::Pod => "pods",
        }
    }

    fn read(written: &str) -> Option<Self> {
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

/// What is asked about, from an argument like `run-42` or `claim/run-42`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its kind, if it is given.
    pub kind: Option<Kind>,
    /// Its name.
    pub name: String,
}

/// Why an argument names nothing.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TargetError {
    /// Another kind stands before the slash.
    #[error(
        "{0:?} is neither a claim nor a pool nor a pod; write NAME alone, claim/NAME, pool/NAME or pod/NAME"
    )]
    Kind(String),
    /// No object can have this name.
    #[error("{0:?} is no name; names are made of lower case letters, digits, '-' and '.'")]
    Name(String),
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        let (kind, name) = match written.split_once('/') {
            None => (None, written),
            Some((kind, name)) => match Kind::read(kind) {
                Some(kind) => (Some(kind), name),
                // Which words mean a pool is known there.
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
