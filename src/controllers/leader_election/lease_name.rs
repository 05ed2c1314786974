//! The name of the operator's Lease: one for each shard.

use crate::model::shard_selector::ShardSelector;

/// Name of the lease of an operator that serves all pools.
pub(crate) const LEASE: &str = "warmpool";

/// The name of the lease of the operator that serves these pools. Two operators of one shard share a lease, and those
/// of two shards do not.
pub(crate) fn default_lease(pools: &ShardSelector) -> String {
    if pools.selects_all() {
        LEASE.to_string()
    } else {
        format!("{LEASE}-{}", pools.hash())
    }
}
