//! From watches to plain data: what is stored in the cluster, what this process has written and not yet
//! seen come back, and the view of one pool or claim that the planner reads.

pub mod answers;
pub mod census;
mod choice;
pub mod claim;
pub mod failures;
pub mod fault;
pub mod feed;
mod grouped;
pub mod hooks;
pub mod index;
mod lookup;
pub mod obstacle;
pub mod pending;
pub mod pool;
mod queue;
pub mod refusers;
pub mod revision;
pub mod sandbox;
pub mod stored;
pub mod takings;
pub mod targets;
mod templates;
pub mod terms;
pub mod text;
pub mod trouble;
pub mod turns;
pub mod view;
pub mod watches;

use std::fmt;

/// Namespace and name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// The key of `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
