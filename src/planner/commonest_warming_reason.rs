//! Why warming sandboxes are not available: the commonest reason, and all of them with their counts.

use crate::api::conditions;
use crate::cache::snapshot::PoolSnapshot;
use crate::model::sandbox::Sandbox;
use crate::model::sandbox_state::SandboxState;
use crate::model::warming_reason::{WarmingReason, split};
use jiff::{SignedDuration, Timestamp};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long a Ready sandbox may lack a preNormal handler before that counts as a reason. The controller that adds the
/// handler usually needs a moment, and a status that names the handler for a moment is written twice for each sandbox.
const HOOK_PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// The reasons of one pool at one moment.
#[derive(Debug, Default)]
pub struct WarmingReasons {
    /// Every reason, the commonest first.
    pub all: Vec<WarmingReason>,
    /// Warming sandboxes, those without a reason included.
    pub warming: usize,
    /// When time alone adds a reason.
    pub next: Option<Timestamp>,
}

impl WarmingReasons {
    /// The reasons of the unclaimed sandboxes that the watch shows as not available.
    pub fn of(snapshot: &PoolSnapshot) -> Self {
        let (pool, now) = (&snapshot.pool, snapshot.now);
        let entries = snapshot.sandboxes.iter().filter(|entry| !entry.is_leaving());
        let warming: Vec<_> = entries
            .map(|entry| &entry.sandbox)
            .filter(|s| s.state_at(&pool.uid, &pool.spec.availability_rule, now) == SandboxState::Warming)
            .collect();
        let mut groups: BTreeMap<Cow<str>, Vec<&Arc<Sandbox>>> = BTreeMap::new();
        let mut next = None;
        for sandbox in &warming {
            if let Some(reason) = &sandbox.not_running_reason {
                groups.entry(reason.into()).or_default().push(sandbox);
            } else if let Some((handler, due)) = missing_handler(snapshot, sandbox) {
                if due <= now {
                    groups.entry(handler.into()).or_default().push(sandbox);
                } else {
                    next = Some(next.map_or(due, |next: Timestamp| next.min(due)));
                }
            }
        }
        let mut all: Vec<_> = groups
            .into_iter()
            .map(|(reason, sandboxes)| {
                // The same sandbox is quoted as long as it is there.
                let quoted = sandboxes
                    .iter()
                    .min_by_key(|s| (s.not_running_detail.is_empty(), &s.key.name));
                WarmingReason {
                    count: sandboxes.len(),
                    warming: warming.len(),
                    reason: reason.into_owned(),
                    sandbox: quoted.map_or(String::new(), |s| s.key.name.to_string()),
                    detail: quoted.map_or(String::new(), |s| s.not_running_detail.to_string()),
                }
            })
            .collect();
        all.sort_by(|a, b| (b.count, &a.reason).cmp(&(a.count, &b.reason)));
        Self {
            all,
            warming: warming.len(),
            next,
        }
    }

    /// The reason to name. The reason in the status stays while at least half as many sandboxes have it as have the
    /// commonest reason. Otherwise two reasons with similar counts would alternate.
    pub fn commonest(&self, snapshot: &PoolSnapshot) -> Option<&WarmingReason> {
        let first = self.all.first()?;
        let available = conditions::find(&snapshot.pool.status.conditions, conditions::AVAILABLE);
        let said = available.and_then(|condition| split(&condition.message).1);
        let mut common = self.all.iter().filter(|of| of.count * 2 >= first.count);
        Some(
            common
                .find(|of| Some(of.reason.as_str()) == said)
                .unwrap_or(first),
        )
    }
}

/// The first preNormal handler that a Ready sandbox lacks, and when that begins to count.
fn missing_handler(snapshot: &PoolSnapshot, sandbox: &Sandbox) -> Option<(String, Timestamp)> {
    let due = sandbox.ready_since?.checked_add(HOOK_PATIENCE).ok()?;
    let hook = &snapshot.pool.spec.availability_rule.pre_normal;
    let (handler, _) = hook.describe(sandbox).find(|(_, on)| !on)?;
    Some((format!("the preNormal {handler} is missing"), due))
}
