//! The claim that `kubectl warmpool claim` creates.

use crate::api;
use crate::cli::duration;
use crate::cli::kubectl::pool_name::PoolName;
use crate::model::revision::letter;
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Length limit of a claim's name in characters, because it becomes the value of a pod label.
const MAX_NAME_LENGTH: usize = 63;
/// Number of random letters at the end of a generated name, as in Kubernetes' generateName.
const SUFFIX_LENGTH: usize = 5;
/// Beginning of the generated name of a claim that names no pool.
const NAMELESS: &str = "claim";

/// What the claim asks for.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Name of the pool: NAME, pool/NAME or pool.warmpool.dev/NAME
    #[arg(
        value_name = "POOL",
        required_unless_present = "selector",
        conflicts_with = "selector"
    )]
    pub(super) pool: Option<PoolName>,
    /// Claim from any pool with these labels, as in lang=python,size=small
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = labels)]
    pub(super) selector: Option<Labels>,
    /// Name of the claim [default: the name of the pool and a random suffix]
    #[arg(long)]
    name: Option<String>,
    /// Number of sandboxes, bound all together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=1000))]
    replicas: i32,
    /// How long the claim lives after it is bound, as in 30m or 8h [default: as the pool says]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    lifetime: Option<Duration>,
}

/// Labels and their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Labels(BTreeMap<String, String>);

/// Parses `key=value,key=value`.
fn labels(written: &str) -> Result<Labels, String> {
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        let key = key.trim_end_matches('=').trim();
        (!key.is_empty()).then(|| (key.to_string(), value.trim_start_matches('=').trim().to_string()))
    };
    let pairs: Option<BTreeMap<_, _>> = written.split(',').map(pair).collect();
    pairs
        .map(Labels)
        .ok_or_else(|| "write labels and values, as in lang=python,size=small".into())
}

impl Arguments {
    /// The claim to create. Its name is chosen here and not with generateName, so that it is known even if no answer
    /// comes.
    pub(super) fn claim(&self) -> DynamicObject {
        let pool = self.pool.as_ref().map(|pool| pool.0.as_str());
        let name = || generated_name(pool.unwrap_or(NAMELESS));
        let (field, value) = match (&self.selector, pool) {
            (Some(Labels(labels)), _) => ("poolSelector", json!({"matchLabels": labels})),
            (None, pool) => ("poolRef", json!({"name": pool})),
        };
        let mut spec = Map::from_iter([(field.to_string(), value)]);
        if self.replicas > 1 {
            spec.insert("replicas".into(), self.replicas.into());
        }
        if let Some(lifetime) = self.lifetime {
            spec.insert("lifetimeSeconds".into(), lifetime.as_secs().max(1).into());
        }
        let kind = ApiResource::erase::<api::SandboxClaim>(&());
        DynamicObject::new(&self.name.clone().unwrap_or_else(name), &kind).data(json!({"spec": spec}))
    }
}

/// The name of the pool, shortened if it is too long, and a random suffix, as generateName builds it.
fn generated_name(pool: &str) -> String {
    let base: String = pool.chars().take(MAX_NAME_LENGTH - SUFFIX_LENGTH - 1).collect();
    let suffix: String = (0..SUFFIX_LENGTH).map(|_| letter(rand::random())).collect();
    format!("{base}-{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::Value;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn spec(arguments: &[&str]) -> Result<Value, clap::error::ErrorKind> {
        let all = ["claim"].iter().chain(arguments);
        let cli = Cli::try_parse_from(all).map_err(|error| error.kind())?;
        Ok(cli.arguments.claim().data["spec"].clone())
    }

    #[test]
    fn the_flags_become_the_spec_of_the_claim() {
        let rows = [
            (vec!["python"], json!({"poolRef": {"name": "python"}})),
            (
                vec!["pool/python", "--replicas=3", "--lifetime=90m"],
                json!({"poolRef": {"name": "python"}, "replicas": 3, "lifetimeSeconds": 5400}),
            ),
            (
                vec!["-l", "lang=python,size==small"],
                json!({"poolSelector": {"matchLabels": {"lang": "python", "size": "small"}}}),
            ),
        ];
        for (arguments, expected) in rows {
            assert_eq!(spec(&arguments), Ok(expected), "{arguments:?}");
        }
    }

    #[test]
    fn a_claim_needs_a_pool_or_labels_and_not_both() {
        for wrong in [
            vec![],
            vec!["python", "-l", "a=b"],
            vec!["-l", "python"],
            vec!["-l", "=b"],
            vec!["python", "--replicas=0"],
            vec!["python", "--lifetime=30"],
        ] {
            assert!(spec(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_generated_name_fits_into_a_label() {
        let name = generated_name(&"p".repeat(80));
        assert_eq!(name.len(), MAX_NAME_LENGTH);
        assert_ne!(generated_name("python"), generated_name("python"));
    }
}
