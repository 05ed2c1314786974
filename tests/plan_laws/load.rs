//! Checks when a rollout under a steady load of claims is complete, with the times that the API server would store.

use crate::world::World;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use smol_str::{SmolStr, format_smolstr};
use std::collections::BTreeMap;

/// Time between two plans.
const TICK: SignedDuration = SignedDuration::from_millis(100);

/// A pool that claims arrive at.
struct Load {
    world: World,
    warm_up: SignedDuration,
    /// Claims in a second.
    rate: f64,
    created: BTreeMap<SmolStr, Timestamp>,
    claims: BTreeMap<String, Timestamp>,
    random: u64,
}

impl Load {
    fn new(replicas: usize, strategy: &Value, warm_up: SignedDuration, rate: f64) -> Self {
        let fields = json!({"updateStrategy": strategy, "progressDeadlineSeconds": 60});
        Self {
            world: World::full(replicas, fields),
            warm_up,
            rate,
            created: BTreeMap::new(),
            claims: BTreeMap::new(),
            random: 7,
        }
    }

    /// The claims of one tick arrive, two seconds after its binding each claim goes, and the pool is planned.
    fn tick(&mut self) {
        self.world.now += TICK;
        let now = self.world.now;
        for _ in 0..self.arriving() {
            let name = format!("run-{}", self.world.counter);
            self.world.claim(&name, json!({}));
            self.claims.insert(name, now);
        }
        let over: Vec<String> = self
            .claims
            .iter()
            .filter(|(name, at)| {
                now.duration_since(**at) > SignedDuration::from_secs(2) && self.world.bound_to(name).is_some()
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in over {
            self.claims.remove(&name);
            self.world.delete_claim(&name);
        }
        self.warm();
        self.world.step();
    }

    /// Claims that arrive in one tick, as many on average as the rate says.
    fn arriving(&mut self) -> usize {
        let tries = 10;
        let chance = self.rate * TICK.as_secs_f64() / f64::from(tries);
        (0..tries).filter(|_| self.uniform() < chance).count()
    }

    fn uniform(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.random >> 32).unwrap()) / f64::from(u32::MAX)
    }

    /// Sandboxes become Ready when they have warmed up. The API stores whole seconds.
    fn warm(&mut self) {
        let (now, whole) = (
            self.world.now,
            Timestamp::from_second(self.world.now.as_second()).unwrap(),
        );
        for name in self.world.sandboxes.keys().cloned().collect::<Vec<_>>() {
            let created = *self.created.entry(name.clone()).or_insert(now);
            let mut sandbox = self.world.sandboxes[&name].clone();
            if created == now {
                sandbox.created = whole;
            }
            if sandbox.ready_since.is_none() && now.duration_since(created) >= self.warm_up {
                self.world.make_ready(&mut sandbox);
                sandbox.ready_since = Some(whole);
                sandbox.ready_changed = Some(whole);
                sandbox.resource_version = format_smolstr!("{}0", sandbox.resource_version);
            }
            self.world.sandboxes.insert(name, sandbox);
        }
    }
}

/// How a rollout under load ended.
#[derive(Debug)]
struct End {
    /// Seconds from its beginning.
    seconds: i64,
    /// Sandboxes that were missing then.
    missing: usize,
    /// Old sandboxes that were left.
    old: usize,
}

/// Rolls a pool under load until `Progressing` has the reason `end`; `None` if that takes more than two minutes. The rollout
/// is never late.
fn roll(load: &mut Load, end: &str) -> Option<End> {
    (0..50).for_each(|_| load.tick());
    load.world.set_image("image:2");
    let begin = load.world.now;
    let replicas = load.world.pool().spec.replicas;
    for _ in 0..1200 {
        load.tick();
        let (reason, message) = load.world.progressing();
        assert_ne!(reason, "ProgressDeadlineExceeded", "{message}");
        let status = load.world.written();
        if reason == end {
            let number = |count: i32| usize::try_from(count).unwrap();
            return Some(End {
                seconds: load.world.now.duration_since(begin).as_secs(),
                missing: replicas.saturating_sub(number(status.available)),
                old: number(status.replicas - status.updated),
            });
        }
    }
    None
}

fn quarter() -> Value {
    json!({"maxUnavailable": "25%"})
}

#[test]
fn a_rollout_without_claims_or_under_a_light_load_is_complete_when_the_pool_is_full() {
    for (replicas, rate) in [(40, 0.0), (40, 2.0), (10, 0.0), (10, 2.0), (4, 1.0), (1, 0.3)] {
        let mut load = Load::new(replicas, &quarter(), SignedDuration::from_secs(1), rate);
        let end = roll(&mut load, "RolloutComplete").unwrap_or_else(|| panic!("{replicas} at {rate}/s"));
        assert_eq!((end.missing, end.old), (0, 0), "{replicas} at {rate}/s: {end:?}");
    }
}

#[test]
fn under_a_load_that_never_leaves_the_pool_full_a_rollout_is_complete_after_half_a_minute() {
    for (rate, warm_up) in [(8, 1), (2, 4)] {
        let mut load = Load::new(
            40,
            &quarter(),
            SignedDuration::from_secs(warm_up),
            f64::from(rate),
        );
        let end = roll(&mut load, "RolloutComplete").unwrap_or_else(|| panic!("{rate}/s"));
        assert!((30..60).contains(&end.seconds), "{rate}/s: {end:?}");
        assert!(
            (1..=10).contains(&end.missing) && end.old == 0,
            "{rate}/s: {end:?}"
        );
        for _ in 0..100 {
            load.tick();
            assert_eq!(load.world.progressing().0, "RolloutComplete", "it is said once");
        }
    }
}

#[test]
fn a_pool_that_has_too_few_for_its_load_says_how_many_are_missing_and_its_rollout_is_not_late() {
    let mut load = Load::new(4, &json!({"type": "Recreate"}), SignedDuration::from_secs(2), 6.0);
    let end = roll(&mut load, "RolloutComplete");
    let (reason, message) = load.world.progressing();
    assert!(end.is_none(), "{end:?}");
    assert_eq!(reason, "Progressing");
    assert!(message.ends_with("more must become available"), "{message}");
}

#[test]
fn under_a_load_that_takes_the_new_sandboxes_at_once_a_partition_is_complete_when_its_split_is_there() {
    let strategy = json!({"maxUnavailable": "25%", "partition": 15});
    for rate in [0.0, 6.0] {
        let mut load = Load::new(20, &strategy, SignedDuration::from_secs(1), rate);
        let end = roll(&mut load, "PartitionComplete").unwrap_or_else(|| panic!("{rate}/s"));
        assert!(end.old <= 15 && end.missing <= 5, "{rate}/s: {end:?}");
    }
}
