//! The metadata of the operator's Lease: its name, one for each shard, and what tells others which pools it is about.

use crate::api::labels;
use crate::model::shard_selector::ShardSelector;
use kube::core::ObjectMeta;
use std::collections::BTreeMap;

/// Name of the lease of an operator that serves all pools.
const LEASE: &str = "warmpool";

/// The name of the lease of the operator that serves these pools. Two operators of one shard share a lease, and those
/// of two shards do not.
pub fn default_lease(pools: &ShardSelector) -> String {
    if pools.selects_all() {
        LEASE.to_string()
    } else {
        format!("{LEASE}-{}", pools.hash())
    }
}

/// The metadata of the lease of the operator that serves these pools.
pub(super) fn lease_metadata(namespace: &str, name: &str, pools: &ShardSelector) -> ObjectMeta {
    let label = (labels::APP_NAME.to_string(), labels::OPERATOR.to_string());
    let selector = (labels::POOL_SELECTOR.to_string(), pools.to_string());
    ObjectMeta {
        namespace: Some(namespace.to_string()),
        name: Some(name.to_string()),
        labels: Some(BTreeMap::from([label])),
        annotations: (!pools.selects_all()).then(|| BTreeMap::from([selector])),
        ..ObjectMeta::default()
    }
}
