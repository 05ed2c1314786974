//! The counters of each pool.
//!
//! A deleted pool's counters are dropped, so the number of series is bounded by the number of pools.

use crate::api::SandboxClaimStatus;
use crate::api::claim::Phase;
use crate::api::conditions;
use crate::api::conditions::claim as reasons;
use crate::cache::pool_stats::NO_POOL;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::leaving_reason::LeavingReason;
use crate::planner::leave_nodes::{DEADLINE_EXCEEDED, POLICY_BREAK};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Buckets of the time from a claim to its binding, in seconds: milliseconds for a warm sandbox, the start of a pod for
/// a cold one.
const WAIT: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// The replacement was available first.
const SURGE: &str = "surge";
/// No replacement was waited for.
const BREAK: &str = "break";

/// The counters of one pool.
#[derive(Debug)]
pub struct Meter {
    warm_wait: Histogram,
    cold_wait: Histogram,
    /// By outcome and reason.
    claims: BTreeMap<(&'static str, String), u64>,
    creations: BTreeMap<&'static str, u64>,
    deletions: BTreeMap<&'static str, u64>,
    drains: BTreeMap<&'static str, u64>,
    /// By method.
    disruptions: BTreeMap<&'static str, u64>,
}

impl Default for Meter {
    /// Common series start at 0: Prometheus does not see the rise of a counter that appears at 1.
    fn default() -> Self {
        Self {
            warm_wait: Histogram::new(WAIT),
            cold_wait: Histogram::new(WAIT),
            claims: BTreeMap::from([(("bound", reasons::BOUND.to_string()), 0)]),
            creations: BTreeMap::from([("Demand", 0), ("Refill", 0)]),
            deletions: BTreeMap::from([("ScaledDown", 0), ("OldRevision", 0)]),
            drains: BTreeMap::from([("OldRevision", 0)]),
            disruptions: BTreeMap::from([(SURGE, 0), (BREAK, 0)]),
        }
    }
}

impl Meter {
    pub(crate) fn created(&mut self, reason: &'static str) {
        *self.creations.entry(reason).or_default() += 1;
    }

    pub(crate) fn deleted(&mut self, reason: &'static str) {
        *self.deletions.entry(reason).or_default() += 1;
        if let Some(method) = disruption_method(reason) {
            *self.disruptions.entry(method).or_default() += 1;
        }
    }

    pub(crate) fn drained(&mut self, reason: &'static str) {
        *self.drains.entry(reason).or_default() += 1;
    }

    /// Counts a claim that was bound for the first time, failed or expired.
    fn decided(&mut self, claim: &Claim, status: &SandboxClaimStatus) {
        let condition = conditions::find(&status.conditions, conditions::BOUND);
        let reason = condition.map_or(String::new(), |condition| condition.reason.clone());
        let outcome = match status.phase {
            Some(Phase::Failed | Phase::Expired) if status.phase == claim.status.phase => return,
            Some(Phase::Bound) if claim.status.wait_seconds.is_none() => "bound",
            Some(Phase::Failed) => "failed",
            Some(Phase::Expired) => "expired",
            _ => return,
        };
        if outcome == "bound" {
            let warm = status.sandboxes.iter().all(|sandbox| sandbox.warm);
            let wait = if warm { &self.warm_wait } else { &self.cold_wait };
            wait.observe(status.wait_seconds.unwrap_or_default());
        }
        *self.claims.entry((outcome, reason)).or_default() += 1;
    }
}

/// The counters by pool. [`none`] counts claims of no existing pool.
#[derive(Clone, Debug, Default)]
pub struct Meters(Arc<Mutex<BTreeMap<Key, Meter>>>);

impl Meters {
    /// Counts for `pool`.
    pub(crate) fn with(&self, pool: &Key, count: impl FnOnce(&mut Meter)) {
        count(self.lock().entry(pool.clone()).or_default());
    }

    /// Counts the outcome in the written `status` of `claim`. `pool` is its pool, if that exists.
    pub fn decided(&self, pool: Option<&Key>, claim: &Claim, status: &SandboxClaimStatus) {
        self.with(pool.unwrap_or(&none()), |meter| {
            meter.decided(claim, status);
        });
    }

    /// Drops the counters of every pool that is not in `pools`, and starts the counters of new pools.
    pub fn keep<'a>(&self, pools: impl IntoIterator<Item = &'a Key>) {
        let mut meters = self.lock();
        let mut before = std::mem::take(&mut *meters);
        meters.extend(before.remove_entry(&none()));
        for pool in pools {
            meters.insert(pool.clone(), before.remove(pool).unwrap_or_default());
        }
    }

    /// Encodes all counters.
    ///
    /// # Errors
    /// When the writer under `encoder` fails.
    pub fn encode(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let meters = self.lock();
        let mut wait = encoder.encode_descriptor(
            "claim_wait",
            "Time from a claim to its binding; warm: the sandbox was available when the claim came",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (pool, meter) in meters.iter() {
            for (warm, histogram) in [("true", &meter.warm_wait), ("false", &meter.cold_wait)] {
                histogram.encode(wait.encode_family(&labels(pool, [("warm", warm)]))?)?;
            }
        }
        let help = "Claims that were bound, failed or expired, with the reason of their condition Bound";
        let mut claims = encoder.encode_descriptor("claims", help, None, MetricType::Counter)?;
        for (pool, meter) in meters.iter() {
            for ((outcome, reason), count) in &meter.claims {
                let labels = labels(pool, [("outcome", *outcome), ("reason", reason)]);
                ConstCounter::new(*count).encode(claims.encode_family(&labels)?)?;
            }
        }
        by_reason(encoder, &meters, "sandbox_creations", "Sandboxes created", |m| {
            &m.creations
        })?;
        by_reason(
            encoder,
            &meters,
            "sandbox_deletions",
            "Sandboxes deleted by the operator",
            |m| &m.deletions,
        )?;
        by_reason(
            encoder,
            &meters,
            "sandbox_drains",
            "Sandboxes marked as draining before their deletion",
            |m| &m.drains,
        )?;
        let help = "Unclaimed sandboxes deleted because they could not stay on their nodes: surge, after their replacements \
                    were available; break, without";
        let mut disruptions =
            encoder.encode_descriptor("sandbox_disruptions", help, None, MetricType::Counter)?;
        for (pool, meter) in meters.iter() {
            for (method, count) in &meter.disruptions {
                let labels = labels(pool, [("method", *method)]);
                ConstCounter::new(*count).encode(disruptions.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Meter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of claims of no existing pool. Tenants may make as many namespaces as they like, so it names none.
fn none() -> Key {
    Key::new(NO_POOL, NO_POOL)
}

/// How a sandbox that could not stay on its node went; `None` for a deletion for another reason.
fn disruption_method(reason: &str) -> Option<&'static str> {
    let after_replacement = [
        LeavingReason::DisruptionTarget,
        LeavingReason::EvictionRequest,
        LeavingReason::NodeNotReady,
        LeavingReason::NodeDeletionAnnounced,
        LeavingReason::NodeCordoned,
        LeavingReason::NodeTainted,
    ];
    let at_once = [LeavingReason::NodeGone.as_str(), POLICY_BREAK, DEADLINE_EXCEEDED];
    if after_replacement.iter().any(|leaving| leaving.as_str() == reason) {
        Some(SURGE)
    } else {
        at_once.contains(&reason).then_some(BREAK)
    }
}

fn by_reason(
    encoder: &mut DescriptorEncoder,
    meters: &BTreeMap<Key, Meter>,
    name: &str,
    help: &str,
    counts: impl Fn(&Meter) -> &BTreeMap<&'static str, u64>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (pool, meter) in meters {
        for (reason, count) in counts(meter) {
            let labels = labels(pool, [("reason", *reason)]);
            ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// The labels of a series of `pool`.
pub(crate) fn labels<'a, const N: usize>(
    pool: &'a Key,
    more: [(&'a str, &'a str); N],
) -> Vec<(&'a str, &'a str)> {
    let of_pool = [
        ("namespace", pool.namespace.as_str()),
        ("pool", pool.name.as_str()),
    ];
    of_pool.into_iter().chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_counts_as_a_disruption_by_whether_its_replacement_was_waited_for() {
        let rows = [
            ("NodeCordoned", Some(SURGE)),
            ("NodeTainted", Some(SURGE)),
            ("NodeNotReady", Some(SURGE)),
            ("NodeDeletionAnnounced", Some(SURGE)),
            ("DisruptionTarget", Some(SURGE)),
            ("NodeGone", Some(BREAK)),
            ("DrainPolicyBreak", Some(BREAK)),
            ("DrainDeadlineExceeded", Some(BREAK)),
            ("EvictRequested", None),
            ("OldRevision", None),
        ];
        for (reason, method) in rows {
            assert_eq!(disruption_method(reason), method, "{reason}");
        }
    }
}
