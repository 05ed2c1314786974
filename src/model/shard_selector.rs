//! A selector of pools by their labels, in kubectl's syntax: the shard of one of several operators.

use kube::core::{Expression, Selector, SelectorExt};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest name or value of a label.
const LONGEST_NAME: usize = 63;
/// Longest prefix of a label's key.
const LONGEST_PREFIX: usize = 253;
/// Bytes of the hash that tells selectors apart.
const HASH_BYTES: usize = 5;

/// Selects the pools that an operator serves by their labels. The default selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardSelector(Arc<Selector>);

impl ShardSelector {
    /// Whether it selects every pool, whatever labels the pool has.
    pub fn selects_all(&self) -> bool {
        self.0.selects_all()
    }

    /// Whether it selects a pool with these labels.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.matches(labels)
    }

    /// A hash that is equal for selectors with the same requirements, whatever their order.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.to_string());
        let bytes = digest.iter().take(HASH_BYTES);
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ShardSelector {
    type Err = String;

    /// Parses the syntax of `kubectl get -l`.
    fn from_str(written: &str) -> Result<Self, String> {
        let requirements: Result<BTreeSet<Expression>, String> = split(written)
            .map(|part| {
                requirement(part).ok_or_else(|| {
                    format!(
                        "{part:?} is no requirement on labels; write KEY=VALUE, KEY!=VALUE, KEY, !KEY, KEY in (A,B) or KEY notin (A,B), \
                         with commas between them"
                    )
                })
            })
            .collect();
        Ok(Self(Arc::new(requirements?.into_iter().collect())))
    }
}

/// The parts between the commas that are not in parentheses.
fn split(written: &str) -> impl Iterator<Item = &str> {
    let mut is_set = false;
    let separates = move |character| {
        match character {
            '(' => is_set = true,
            ')' => is_set = false,
            _ => {}
        }
        character == ',' && !is_set
    };
    written.split(separates).map(str::trim)
}

fn requirement(part: &str) -> Option<Expression> {
    if let Some(absent) = part.strip_prefix('!') {
        return Some(Expression::DoesNotExist(key(absent)?));
    }
    if let Some((left, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
        let (name, operator) = left.trim().rsplit_once(char::is_whitespace)?;
        let (name, values) = (key(name)?, values.split(',').map(value).collect::<Option<_>>()?);
        return match operator {
            "in" => Some(Expression::In(name, values)),
            "notin" => Some(Expression::NotIn(name, values)),
            _ => None,
        };
    }
    if let Some((name, other)) = part.split_once("!=") {
        return Some(Expression::NotEqual(key(name)?, value(other)?));
    }
    match part.split_once("==").or_else(|| part.split_once('=')) {
        Some((name, wanted)) => Some(Expression::Equal(key(name)?, value(wanted)?)),
        None => Some(Expression::Exists(key(part)?)),
    }
}

/// The key of a label: a name, after a prefix and a slash where there is one.
fn key(written: &str) -> Option<String> {
    let written = written.trim();
    let (prefix, name) = match written.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, written),
    };
    let is_prefix = |prefix: &str| prefix.split('.').all(is_name) && prefix.len() <= LONGEST_PREFIX;
    (is_name(name) && prefix.is_none_or(is_prefix)).then(|| written.to_string())
}

/// The value of a label, which may be empty.
fn value(written: &str) -> Option<String> {
    let written = written.trim();
    (written.is_empty() || is_name(written)).then(|| written.to_string())
}

fn is_name(written: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let is_outer = |c: char| c.is_ascii_alphanumeric();
    written.len() <= LONGEST_NAME
        && written.starts_with(is_outer)
        && written.ends_with(is_outer)
        && written.chars().all(is_inner)
}
