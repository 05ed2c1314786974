//! The view: everything the planner may know, as plain data.

use super::Key;
use super::claim::Claim;
use super::pool::Pool;
use super::revision::Revision;
use super::sandbox::Sandbox;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One pool and all that belongs to it, at one moment.
#[derive(Clone, Debug)]
pub struct PoolView {
    /// The moment.
    pub now: Timestamp,
    /// Seed of fresh pod names. Two plans with the same view and seed choose the same names.
    pub seed: u64,
    /// The pool.
    pub pool: Arc<Pool>,
    /// Pods that carry the pool's label, with the writes on them not yet seen.
    pub sandboxes: Vec<Seen>,
    /// Creations on their way, not yet seen.
    pub creating: Vec<Creating>,
    /// Claims on the pool that are neither bound nor ended.
    pub claims: Vec<Waiting>,
    /// The pool's stored revisions.
    pub revisions: Vec<Arc<Revision>>,
    /// Whether pods may be created now.
    pub creation: Creation,
    /// Failures to bring up a sandbox, by revision.
    pub failures: BTreeMap<String, WarmUpFailures>,
    /// When claims took sandboxes lately, oldest first.
    pub takings: Vec<Timestamp>,
}

/// Failures in a row to bring up a sandbox of one revision. Those of one moment count once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUpFailures {
    /// How many.
    pub count: u32,
    /// When the last one was noted.
    pub last: Timestamp,
}

/// A sandbox and what this process has done to it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The sandbox as last seen.
    pub sandbox: Arc<Sandbox>,
    /// Own write not yet seen.
    pub pending: Option<OwnWrite>,
}

/// An own write on a pod that the watch has not shown yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnWrite {
    /// Being bound to a claim.
    Bind,
    /// Being deleted; the answer is outstanding.
    Delete,
    /// Being marked as draining.
    Drain,
    /// Being marked as warm again.
    Restore,
    /// Deleted: the API server has said so.
    Deleted,
    /// The last write was refused because the pod had changed; nothing is tried before the change is seen.
    Refused,
}

/// A creation on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creating {
    /// Pod name.
    pub name: String,
    /// Its revision.
    pub revision: String,
}

/// A claim that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The claim as last seen.
    pub claim: Arc<Claim>,
    /// A sandbox is already bound to it or being bound; only its status is still to follow.
    pub served: bool,
}

/// Whether pods may be created, after refusals by the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Creation {
    /// Nothing was refused lately.
    #[default]
    Open,
    /// A create was refused.
    BackOff {
        /// No create before this moment; at it, one to find out.
        until: Timestamp,
        /// The API server's words.
        message: String,
    },
}

/// One claim and the pods it owns, at one moment.
#[derive(Clone, Debug)]
pub struct ClaimView {
    /// The moment.
    pub now: Timestamp,
    /// The claim.
    pub claim: Arc<Claim>,
    /// Pods whose controller is the claim (told by UID).
    pub sandboxes: Vec<Arc<Sandbox>>,
    /// This process is binding a sandbox to it just now.
    pub binding: bool,
    /// Whether the pool asked for exists.
    pub pool_exists: bool,
    /// Why the pool's last plan left the claim waiting.
    pub verdict: Option<Verdict>,
}

/// Why a claim waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// UID of the claim.
    pub uid: String,
    /// Reason for the condition `Bound`.
    pub reason: &'static str,
    /// Sentence for the condition `Bound`.
    pub message: String,
}

/// Namespace and name of the pool of a view, for messages.
impl PoolView {
    /// Key of the pool.
    pub fn key(&self) -> &Key {
        &self.pool.key
    }
}
