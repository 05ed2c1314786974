//! The state of the cluster, indexed as the planner needs it. The files `apply_*.rs` and `outcomes.rs` change it;
//! `lookup.rs` and `build_snapshot.rs` read it.

use crate::cache::claim_queues::WaitingClaims;
use crate::cache::claim_status_limit::ReportsOverLimit;
use crate::cache::eviction_requests::EvictionRequests;
use crate::cache::expectations::Expectations;
use crate::cache::memory::Memory;
use crate::cache::pod_disruption_budgets::DisruptionBudgets;
use crate::cache::pod_templates::Templates;
use crate::cache::pools_by_node::Nodes;
use crate::cache::request_limits::RequestQueue;
use crate::cache::stale_answers::WatchProgress;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::revision::Revision;
use crate::model::sandbox::Sandbox;
use crate::model::shard_selector::ShardSelector;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Everything that this process knows of the cluster. A clone is a copy of the operator's whole state.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// The pools that this operator serves.
    pub shard: ShardSelector,
    pub(crate) pools: HashMap<Key, Arc<Pool>>,
    pub(crate) claims: HashMap<Key, Arc<Claim>>,
    /// Which claims wait, by queue.
    pub(crate) waiting_claims: WaitingClaims,
    /// Pods by pool, then by name.
    pub(crate) sandboxes: HashMap<Key, BTreeMap<SmolStr, Arc<Sandbox>>>,
    /// The pool under which a pod is kept.
    pub(crate) pool_of: HashMap<Key, Key>,
    /// Keys of pods by the UID of the claim that owns them.
    pub(crate) owned: HashMap<SmolStr, BTreeSet<Key>>,
    /// Revisions by pool, then by name.
    pub(crate) revisions: HashMap<Key, BTreeMap<SmolStr, Arc<Revision>>>,
    /// PodTemplates and the pools that use them.
    pub(crate) templates: Templates,
    /// PodDisruptionBudgets of pools and users.
    pub(crate) disruption_budgets: DisruptionBudgets,
    /// EvictionRequests, where the API server has them.
    pub(crate) eviction_requests: EvictionRequests,
    /// Nodes and the pools with pods there.
    pub(crate) nodes: Nodes,
    /// How far the watches have got.
    pub(crate) watch_progress: WatchProgress,
    /// The claims were listed once, so a claim that no event has shown is new.
    pub(crate) claims_listed: bool,
    /// Sequence number of the last claim that arrived.
    pub(crate) sequence: u64,
    /// Writes that the watch has not shown.
    pub expectations: Expectations,
    /// Requests that wait to be sent.
    pub requests: RequestQueue,
    /// Claims whose report waits for others to be sent.
    pub(crate) reports_over_limit: ReportsOverLimit,
    /// What is remembered of each pool and claim.
    pub(crate) memory: Memory,
}

/// The keys of `known` that are missing from a list.
pub(crate) fn absent<'a>(known: impl Iterator<Item = &'a Key>, listed: &HashSet<Key>) -> Vec<Key> {
    known.filter(|key| !listed.contains(key)).cloned().collect()
}
