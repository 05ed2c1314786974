//! Checks laws over random worlds.
//!
//! Random events change budgets and templates, create and delete claims, make pods fail, and crash the operator after it has
//! applied part of a plan.

use crate::world::{POOL_UID, World};
use proptest::prelude::*;
use serde_json::json;
use smol_str::{SmolStr, format_smolstr};
use std::collections::{HashMap, HashSet};
use warmpool::api::claim::RevisionPolicy;
use warmpool::api::labels;
use warmpool::api::pool::UpdateStrategyType;
use warmpool::model::Key;
use warmpool::model::claim::Claim;
use warmpool::model::pool_error::PoolError;
use warmpool::model::sandbox::{Owner, PodPhase, Sandbox};
use warmpool::planner::{Plan, PlanPhase, Step, plan};

#[derive(Clone, Debug)]
enum Event {
    /// Plans, and applies this many quarters of the actions.
    Step(usize),
    PassSecond,
    /// Priority, revision policy, sandboxes wanted.
    Claim(i32, &'static str, usize),
    DeleteClaim(usize),
    Image(u8),
    Replicas(usize),
    MaxUnavailable(usize),
    MaxSurge(usize),
    Partition(usize),
    Paused(bool),
    Type(&'static str),
    Fail(usize),
    Vanish(usize),
    Unready(usize),
    Evict(usize),
    /// A node is cordoned.
    Cordon(usize),
    /// A node takes pods again.
    Uncordon(usize),
    /// Another controller adds a preDelete handler to a sandbox.
    AddHandler(usize),
    /// Another controller removes the preDelete handler.
    RemoveHandler(usize),
    /// Whether the PodTemplate is missing.
    Template(bool),
}

const HELD: &str = "example.com/held";
/// The last node stays open.
const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (1..=4usize).prop_map(Event::Step),
        4 => Just(Event::PassSecond),
        3 => (0..3i32, policy(), prop_oneof![4 => Just(1usize), 1 => 2..4usize])
            .prop_map(|(priority, policy, wanted)| Event::Claim(priority, policy, wanted)),
        1 => any::<usize>().prop_map(Event::DeleteClaim),
        1 => (0..4u8).prop_map(Event::Image),
        1 => (0..8usize).prop_map(Event::Replicas),
        1 => (0..5usize).prop_map(Event::MaxUnavailable),
        1 => (0..4usize).prop_map(Event::MaxSurge),
        1 => (0..5usize).prop_map(Event::Partition),
        1 => any::<bool>().prop_map(Event::Paused),
        1 => proptest::sample::select(vec!["RollingUpdate", "Recreate", "OnReplenish"]).prop_map(Event::Type),
        1 => any::<usize>().prop_map(Event::Fail),
        1 => any::<usize>().prop_map(Event::Vanish),
        1 => any::<usize>().prop_map(Event::Unready),
        1 => any::<usize>().prop_map(Event::Evict),
        1 => (0..NODES.len()).prop_map(Event::Cordon),
        1 => (0..NODES.len()).prop_map(Event::Uncordon),
        2 => any::<usize>().prop_map(Event::AddHandler),
        1 => any::<usize>().prop_map(Event::RemoveHandler),
        1 => any::<bool>().prop_map(Event::Template),
    ]
}

fn policy() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec!["PreferLatest", "PreferLatest", "Latest", "Any"])
}

fn policy_of(claim: &Claim) -> RevisionPolicy {
    claim.resolved_spec(None).revision_policy
}

fn capacity() -> impl Strategy<Value = serde_json::Value> {
    (
        proptest::option::of(8..12usize),
        proptest::option::of(0..6usize),
        proptest::option::of(8..20usize),
    )
        .prop_map(|(warm, min, max)| json!({"maxWarm": warm, "minTotal": min, "maxTotal": max}))
}

/// Every invariant that a single plan can break.
fn check(world: &World, plan: &Plan) -> Result<(), TestCaseError> {
    let spec = world.pool().spec;
    let mut touched = HashSet::new();
    let (mut deleted_within_budget, mut deleted, mut created, mut restored) = (0, 0, 0, 0);
    let (mut served, mut bound) = (HashMap::new(), 0);
    let (mut drained, mut evicted) = (0, 0);
    let mut failed = HashSet::new();
    for action in &plan.actions {
        match &action.step {
            Step::DeletePod { sandbox } | Step::DrainPod { sandbox } => {
                prop_assert!(touched.insert(sandbox.uid.clone()), "two writes on one pod");
                prop_assert_eq!(
                    &sandbox.owner,
                    &Owner::Pool { uid: POOL_UID.into() },
                    "I2: only unclaimed sandboxes are deleted"
                );
                let available = sandbox
                    .available_at(&spec.availability_rule)
                    .is_some_and(|at| at <= world.now);
                let held = sandbox.labels.contains_key(HELD);
                prop_assert!(
                    !held || matches!(action.step, Step::DrainPod { .. }),
                    "a sandbox with a preDelete handler is deleted"
                );
                deleted += usize::from(sandbox.state == labels::WARM);
                let by_recreate =
                    spec.strategy == UpdateStrategyType::Recreate && action.phase == PlanPhase::Recreate;
                deleted_within_budget += usize::from(available && !by_recreate);
                drained += usize::from(available && action.reason == "NodeCordoned");
                evicted += usize::from(available && action.reason == "EvictRequested");
            }
            Step::BindClaim { claim, sandbox } => {
                prop_assert!(touched.insert(sandbox.uid.clone()), "I1: two writes on one pod");
                bound += 1;
                let bound_to_claim = served.entry(claim.uid.clone()).or_insert(0);
                *bound_to_claim += 1;
                let held = world.claim_snapshot(&claim.key.name).sandboxes;
                let held = held.iter().filter(|s| !s.terminating && !s.finished()).count();
                prop_assert!(
                    held + *bound_to_claim <= claim.wanted(),
                    "I1: a claim gets more sandboxes than its replicas"
                );
                let available = sandbox
                    .available_at(&spec.availability_rule)
                    .is_some_and(|at| at <= world.now);
                prop_assert!(available && !sandbox.terminating, "I3: {sandbox:?}");
                let updated = sandbox.revision == plan.revisions.update.hash;
                let latest = policy_of(claim) == RevisionPolicy::Latest;
                prop_assert!(updated || !latest, "I3: the claim excludes this revision");
            }
            Step::CreatePod { name, .. } => {
                prop_assert!(
                    !world.sandboxes.contains_key(name),
                    "the name of a new pod is already in use"
                );
                created += 1;
            }
            Step::RestorePod { sandbox } => {
                prop_assert!(touched.insert(sandbox.uid.clone()), "two writes on one pod");
                prop_assert_eq!(&sandbox.owner, &Owner::Pool { uid: POOL_UID.into() });
                restored += 1;
            }
            Step::FailClaim { claim, .. } => _ = failed.insert(claim.uid.clone()),
        }
    }
    let (available, total) = (world.available(), world.sandboxes.len());
    let claim_of = |uid: &SmolStr| world.claims.values().find(|c| c.uid == *uid);
    let waiting_replicas = plan.waiting.iter().map(|(claim, _)| &**claim);
    let waiting_replicas: usize = waiting_replicas.map(Claim::wanted).sum();
    for (uid, bound_to_claim) in &served {
        let claim = claim_of(uid).unwrap();
        let held = world.claim_snapshot(&claim.key.name).sandboxes;
        let held = held.iter().filter(|s| !s.terminating && !s.finished()).count();
        prop_assert_eq!(
            held + bound_to_claim,
            claim.wanted(),
            "I1: the sandboxes of a claim are bound together"
        );
    }
    let said_to_wait: HashSet<_> = plan.waiting.iter().map(|(claim, _)| &claim.uid).collect();
    for claim in world.claims.values().filter(|claim| claim.waiting()) {
        let held = world.claim_snapshot(&claim.key.name).sandboxes;
        let held = held.iter().filter(|s| !s.terminating && !s.finished()).count();
        let is_known = served.contains_key(&claim.uid)
            || failed.contains(&claim.uid)
            || said_to_wait.contains(&claim.uid);
        prop_assert!(
            held >= claim.wanted() || is_known,
            "I7: claim {} is forgotten",
            claim.key.name
        );
    }
    // A claim for several sandboxes delays the claims behind it; a Latest claim delays no other claim.
    let waiting = plan.waiting.iter().map(|(claim, _)| &**claim);
    let first = waiting.take_while(|c| c.wanted() == 1);
    let unserved = first.filter(|c| policy_of(c) != RevisionPolicy::Latest).count();
    let is_claimable = |sandbox: &&Sandbox| {
        let available_at = sandbox.available_at(&spec.availability_rule);
        !sandbox.evict && available_at.is_some_and(|at| at <= world.now)
    };
    let left = world.unclaimed().filter(is_claimable).count() - bound;
    prop_assert!(
        unserved == 0 || left == 0,
        "I7: {unserved} claims wait and {left} sandboxes are available and not given to them"
    );
    if deleted_within_budget > 0 {
        let left = available - deleted_within_budget - bound;
        let claimed = world.sandboxes.len() - world.unclaimed().count();
        let total_capacity_left = spec
            .max_total
            .map_or(usize::MAX, |max| max.saturating_sub(claimed));
        let reachable = spec.replicas.min(total_capacity_left);
        prop_assert!(
            left + spec.rollout_budget(claimed).max_unavailable >= reachable,
            "I4: {left} of {reachable} stay available"
        );
    }
    if drained > 0 {
        let left = available + world.recent_claims.len() - drained - evicted;
        let claimed = world.sandboxes.len() - world.unclaimed().count();
        let room = spec
            .max_total
            .map_or(usize::MAX, |max| max.saturating_sub(claimed));
        let wanted = spec.replicas.min(room);
        prop_assert!(left >= wanted + bound, "I6: {left} of {wanted} stay available");
    }
    if created + restored > 0 {
        let warm = world.unclaimed().filter(|s| s.state == labels::WARM).count();
        let unclaimed = warm - deleted - bound + created + restored;
        // Sandboxes for a Latest claim are created in addition to the old sandboxes that stay.
        let latest = plan.waiting.iter().map(|(claim, _)| &**claim);
        let latest = latest.filter(|c| policy_of(c) == RevisionPolicy::Latest);
        let update = world.update();
        let beside_old = match latest.map(Claim::wanted).sum() {
            0 => 0,
            latest => world.unclaimed().filter(|s| s.revision != update).count() + latest,
        };
        let wanted = (spec.replicas + waiting_replicas)
            .max(spec.min_total)
            .max(beside_old);
        let both_zero = spec.max_unavailable == 0 && spec.max_surge == 0;
        let leaving = world
            .unclaimed()
            .any(|s| s.node.as_deref().is_some_and(|node| world.is_closed(node)));
        let for_drain = if leaving { spec.rollout_width() } else { 0 };
        let wanted = wanted + spec.max_surge.max(usize::from(both_zero)).max(for_drain);
        prop_assert!(unclaimed <= wanted, "I4: {unclaimed} unclaimed of {wanted}");
        prop_assert!(
            spec.max_total.is_none_or(|max| total + created <= max),
            "I4: maxTotal"
        );
    }
    prop_assert!(
        world.pod_template.is_none() || deleted + created == 0,
        "a pool without its template creates and deletes nothing"
    );
    Ok(())
}

/// A pool with a preDelete hook.
fn hooked(replicas: usize, fields: serde_json::Value) -> World {
    let mut world = World::new(replicas, fields);
    world.set(json!({
        "lifecycle": {"preDelete": {"labelsHandler": {HELD: "yes"}}},
        "disruption": {"drainDeadlineSeconds": i32::MAX},
    }));
    for node in NODES {
        world.open(node);
    }
    world
}

fn strategy(world: &mut World, fields: serde_json::Value) {
    world.set(json!({"updateStrategy": fields}));
}

fn nth<T: Clone>(items: impl Iterator<Item = T>, n: usize) -> Option<T> {
    let items: Vec<_> = items.collect();
    (!items.is_empty()).then(|| items[n % items.len()].clone())
}

fn apply_event(world: &mut World, event: &Event, number: usize) -> Result<(), TestCaseError> {
    let unclaimed = |world: &World, n| nth(world.unclaimed().map(|s| s.key.name.clone()), n);
    let change = |world: &mut World, n: usize, edit: fn(&mut Sandbox)| {
        if let Some(sandbox) = unclaimed(world, n).and_then(|name| world.sandboxes.get_mut(&name)) {
            edit(sandbox);
            sandbox.resource_version = format_smolstr!("{}0", sandbox.resource_version);
        }
    };
    match event {
        Event::Step(share) => {
            let plan = world.plan();
            check(world, &plan)?;
            world.store(&plan);
            let part = plan.actions.len() * share / 4;
            plan.actions.iter().take(part).for_each(|a| world.apply(a));
            if *share == 4 {
                world.status = serde_json::to_value(&plan.status).unwrap();
            }
        }
        Event::PassSecond => world.pass_second(|s| !s.uid.ends_with('7')),
        Event::Claim(priority, policy, wanted) => {
            let fields = json!({"priority": priority, "revisionPolicy": policy, "replicas": wanted});
            world.claim(&format!("c{number}"), fields);
        }
        Event::DeleteClaim(n) => {
            if let Some(name) = nth(world.claims.keys().cloned(), *n) {
                world.delete_claim(&name);
            }
        }
        Event::Image(n) => drop(world.set_image(&format!("image:{n}"))),
        Event::Replicas(n) => drop(world.set(json!({"replicas": n}))),
        Event::MaxUnavailable(n) => strategy(world, json!({"maxUnavailable": n})),
        Event::MaxSurge(n) => strategy(world, json!({"maxSurge": n})),
        Event::Partition(n) => strategy(world, json!({"partition": n})),
        Event::Paused(paused) => strategy(world, json!({"paused": paused})),
        Event::Type(name) => strategy(world, json!({"type": name})),
        Event::Fail(n) => change(world, *n, |s| s.phase = PodPhase::Failed),
        Event::Vanish(n) => {
            if let Some(name) = unclaimed(world, *n) {
                world.sandboxes.remove(&name);
            }
        }
        Event::Unready(n) => change(world, *n, |s| s.ready_since = None),
        Event::Evict(n) => change(world, *n, |s| s.evict = true),
        Event::Cordon(n) => {
            if NODES[*n] != NODES[NODES.len() - 1] {
                world.cordon(NODES[*n]);
            }
        }
        Event::Uncordon(n) => {
            world.open(NODES[*n]);
        }
        Event::AddHandler(n) => change(world, *n, |s| drop(s.labels.insert(HELD.into(), "yes".into()))),
        Event::RemoveHandler(n) => change(world, *n, |s| drop(s.labels.remove(HELD))),
        Event::Template(missing) => {
            let not_found = PoolError::not_found(&Key::new("default", "shared"));
            world.pod_template = missing.then_some(Err(not_found));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 4000, ..ProptestConfig::default() })]

    /// Every step keeps I1 to I5 and I7. Once failures stop, the pool reaches its goal and plans nothing (I8).
    #[test]
    fn every_plan_keeps_the_invariants_and_the_pool_reaches_its_goal(
        replicas in 0..8usize,
        capacity in capacity(),
        events in proptest::collection::vec(event(), 1..60),
    ) {
        let mut world = hooked(replicas, json!({"capacity": capacity}));
        for (number, event) in events.iter().enumerate() {
            apply_event(&mut world, event, number)?;
        }
        world.sandboxes.values_mut().for_each(|s| s.labels.clear());
        let claim_names: Vec<_> = world.claims.keys().cloned().collect();
        for name in claim_names.iter().skip(4) {
            world.delete_claim(name);
        }
        // A paused pool and the other strategies may keep old sandboxes, so the rollout resumes before I5 is checked.
        world.set(json!({"updateStrategy": {"paused": false, "type": "RollingUpdate"}}));
        world.pod_template = None;
        world.converge();
        let (pool, update) = (world.pool(), world.update());
        let spec = &pool.spec;
        let claimed = world.sandboxes.len() - world.unclaimed().count();
        let reachable = spec.max_total.map_or(spec.replicas, |max| spec.replicas.min(max.saturating_sub(claimed)));
        prop_assert!(world.available() >= reachable, "{} of {reachable} available", world.available());
        // I4 comes before I5: with maxUnavailable 0 and no capacity for a surge, old sandboxes stay.
        let fits = spec.max_total.is_none_or(|max| spec.replicas + 1 + claimed <= max);
        if fits || spec.rollout_budget(claimed).max_unavailable > 0 {
            let old = world.unclaimed().filter(|s| s.revision != update).count();
            prop_assert!(old <= spec.partition, "I5: {old} old sandboxes left, {} may stay", spec.partition);
        }
        if fits {
            let left = NODES.iter().filter(|node| world.is_closed(node)).map(|node| world.on_node(node));
            prop_assert_eq!(left.sum::<usize>(), 0, "I6: sandboxes stay on cordoned nodes");
        }
        prop_assert!(world.plan().actions.is_empty());
        prop_assert_eq!(serde_json::to_value(world.plan().status).unwrap(), world.status, "I9");
    }

    /// The plan does not depend on the order in which pods, claims and revisions are listed.
    #[test]
    fn the_order_of_the_inputs_does_not_matter(
        replicas in 1..8usize,
        events in proptest::collection::vec(event(), 1..40),
        seed in any::<u64>(),
    ) {
        let mut world = hooked(replicas, json!({}));
        for (number, event) in events.iter().enumerate() {
            apply_event(&mut world, event, number)?;
        }
        let snapshot = world.snapshot();
        let mut shuffled = snapshot.clone();
        shuffle(&mut shuffled.sandboxes, seed);
        shuffle(&mut shuffled.claims, seed);
        shuffle(&mut shuffled.revisions, seed);
        let (expected, actual) = (plan(&snapshot), plan(&shuffled));
        prop_assert_eq!(format!("{:?}", expected.actions), format!("{:?}", actual.actions));
        prop_assert_eq!(expected.status, actual.status);
    }
}

/// Cases per law. `PROPTEST_CASES` overrides the number.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1_000)
}

fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for i in (1..items.len()).rev() {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        items.swap(i, usize::try_from(seed >> 33).unwrap() % (i + 1));
    }
}
