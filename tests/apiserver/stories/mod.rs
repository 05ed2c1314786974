//! Holds the stories, and the steps that they share.

pub mod across;
pub mod autoscaling;
pub mod batches;
pub mod breach;
pub mod budgets;
pub mod busy;
pub mod chaos;
pub mod churn;
pub mod claims;
pub mod columns;
pub mod crashes;
pub mod deadlines;
pub mod documents;
pub mod drains;
pub mod edits;
pub mod election;
pub mod events;
pub mod eviction_requests;
pub mod examples;
pub mod fairness;
pub mod faults;
pub mod fill;
pub mod forged;
pub mod half;
pub mod harm;
mod held;
pub mod hooks;
pub mod idle;
pub mod interrupted_rollouts;
pub mod least;
pub mod lifetimes;
pub mod logs;
pub mod lost;
pub mod metrics;
pub mod more_verbs;
pub mod namespaced;
mod own_nodes;
pub mod plugin;
pub mod queue;
pub mod rejected_bindings;
pub mod removals;
pub mod revisions;
pub mod rollouts;
pub mod selectors;
pub mod shards;
pub mod starts;
pub mod storm;
pub mod strategies;
pub mod templates;
pub mod tenants;
pub mod verbs;
pub mod visible;
pub mod watches;
pub mod writes;

use crate::api::{Api, CLAIMS};
use crate::check::event::{Change, Event, Kind, condition, text};
use crate::check::world::{Owner, Step};
use crate::scene::Scene;
use crate::{check, objects, wait};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::time::Duration;

/// Waits until more than half of a second is over, so that a time that is counted from the whole second ends early. The rest is
/// left for a slow request.
pub fn late_in_a_second() {
    let into_second = Timestamp::now().subsec_millisecond();
    let left = (1_600 - into_second) % 1_000;
    std::thread::sleep(Duration::from_millis(u64::try_from(left).unwrap_or_default()));
}

/// What the machine stood still this shortly before an event was seen may be why it was seen late.
const SEEN_LATE: SignedDuration = SignedDuration::from_secs(10);

/// Checks that at least `promised` seconds passed between two moments, and not much more than the second that stored times
/// lack. The history sees each moment a little late, and later where the machine stood still.
pub fn lasted(
    scene: &Scene,
    what: &str,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    promised: f64,
) -> Result<(), String> {
    let (from, to) = from
        .zip(to)
        .ok_or_else(|| format!("{what} began at {from:?} and ended at {to:?}"))?;
    let waits = scene.lab.processor_waits();
    let lasted = to.duration_since(from).as_secs_f64();
    let seen_late = waits.within(from - SEEN_LATE, from).as_secs_f64();
    let undisturbed = waits.elapsed(from, to).as_secs_f64();
    let is_right = lasted >= promised - 0.1 - seen_late && undisturbed < promised + 4.0;
    wait::ensure(is_right, || {
        format!("{what} lasted {lasted} s of {promised}, {undisturbed} s without waits for a processor")
    })
}

/// When the history saw the claim enter a phase.
pub fn entered(events: &[Event], claim: &str, phase: &str) -> Option<Timestamp> {
    let mut of_claim = events
        .iter()
        .filter(|e| e.kind == Kind::Claim && e.name() == claim);
    of_claim
        .find(|e| text(&e.object, "/status/phase") == phase)
        .map(|e| e.at)
}

/// Waits until the claim is Bound, and returns it.
pub fn bound(scene: &Scene, claim: &str) -> Result<Value, String> {
    in_phase(scene, claim, "Bound", 30)
}

/// Waits until every claim is Bound.
pub fn all_bound(scene: &Scene, claims: &[String]) -> Result<(), String> {
    claims.iter().try_for_each(|claim| bound(scene, claim).map(drop))
}

/// Waits until the claim is in that phase, and returns it.
pub fn in_phase(scene: &Scene, claim: &str, phase: &str, seconds: u64) -> Result<Value, String> {
    wait::until(&format!("claim {claim} was {phase}"), seconds, || {
        let seen = scene.claim(claim)?;
        wait::ensure(text(&seen, "/status/phase") == phase, || {
            seen["status"].to_string()
        })?;
        Ok(seen)
    })
}

/// Waits until the condition of the claim has that reason, and returns its message.
pub fn says(scene: &Scene, claim: &str, type_: &str, reason: &str) -> Result<String, String> {
    wait::until(&format!("claim {claim} said {type_}: {reason}"), 30, || {
        message(&scene.claim(claim)?, type_, reason)
    })
}

/// Waits until the condition of the pool has that reason, and returns its message.
pub fn pool_says(scene: &Scene, pool: &str, type_: &str, reason: &str) -> Result<String, String> {
    wait::until(&format!("pool {pool} said {type_}: {reason}"), 30, || {
        message(&scene.pool(pool)?, type_, reason)
    })
}

/// The message of a condition with that reason.
fn message(object: &Value, type_: &str, reason: &str) -> Result<String, String> {
    let said = condition(object, type_).filter(|c| c["reason"] == reason);
    said.map(|c| text(c, "/message").to_string())
        .ok_or_else(|| object["status"].to_string())
}

/// How many pods the events show being created.
pub fn pods_created(events: &[Event]) -> usize {
    events
        .iter()
        .filter(|event| event.kind == Kind::Pod && event.change == Change::Added)
        .count()
}

/// Names of claims of one set.
pub fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}-{n}")).collect()
}

/// Creates that many claims at once.
pub fn burst(
    scene: &Scene,
    prefix: &str,
    count: usize,
    pool: &str,
    more: &Value,
) -> Result<Vec<String>, String> {
    burst_in(&scene.lab.api, &scene.namespace, prefix, count, pool, more)
}

/// The same without a scene, which stays in its thread.
pub fn burst_in(
    api: &Api,
    namespace: &str,
    prefix: &str,
    count: usize,
    pool: &str,
    more: &Value,
) -> Result<Vec<String>, String> {
    let names = names(prefix, count);
    let claims: Vec<Value> = names
        .iter()
        .map(|name| objects::claim(name, pool, more))
        .collect();
    api.create_all(CLAIMS, namespace, &claims)?;
    Ok(names)
}

/// Names of the claims in the order in which pods became theirs.
pub fn order_of_service(events: &[Event]) -> Vec<String> {
    let mut order = Vec::new();
    let mut world = check::world::World::default();
    for event in events {
        let step = world.step(event);
        if let Step::Pod(before, Some(after)) = &step
            && let Owner::Claim { name, .. } = &after.owner
            && before.as_ref().is_none_or(|b| b.owner != after.owner)
        {
            order.push(name.clone());
        }
        world.apply(event, step);
    }
    order
}

/// The one sandbox of a bound claim: its pod's name and UID.
pub fn sandbox(claim: &Value) -> (String, String) {
    (
        text(claim, "/status/sandboxes/0/name").into(),
        text(claim, "/status/sandboxes/0/uid").into(),
    )
}
