//! The labels of a sandbox as label selectors see them.

use crate::api::labels;
use crate::model::sandbox::{Owner, Sandbox};
use std::collections::BTreeMap;

impl Sandbox {
    /// All labels: those of the template, of the claim and of users, and those of the operator.
    pub fn all_labels(&self) -> BTreeMap<String, String> {
        let mut all = self.labels.clone();
        let mut add = |key: &str, value: &str| {
            if !value.is_empty() {
                all.insert(key.into(), value.into());
            }
        };
        add(labels::POOL, &self.pool);
        add(labels::REVISION, &self.revision);
        add(labels::STATE, &self.state);
        add(labels::EVICT, if self.evict { "true" } else { "" });
        let allow = if self.allows_disruption { labels::ALLOW } else { "" };
        add(labels::DISRUPTION, allow);
        if let Owner::Claim { name, uid } = &self.owner {
            add(labels::CLAIM, name);
            add(labels::CLAIM_UID, uid);
        }
        all
    }
}
