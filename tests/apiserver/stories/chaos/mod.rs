//! Checks that no claim is lost while parts fail in turn: `make chaos`.

mod disruptions;
mod load;

use super::faults::expect_faults;
use crate::cluster_state::wait_until_at_rest;
use crate::lab::{number, seed};
use crate::objects::{pool, sim};
use crate::scene::Scene;
use disruptions::{Disruption, Target};
use jiff::SignedDuration;
use load::Load;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const POOLS: [&str; 2] = ["python", "node"];
/// Between two disruptions, so that some of the time all is well.
const CALM: Duration = Duration::from_secs(6);
/// How late a creation or a deletion may arrive that was decided on in time: a blow may hold it up for so long.
const HELD_UP: SignedDuration = SignedDuration::from_secs(30);

/// How late a watch may show a claim or a loss: a network delays an event by 2 s, and an API server that crashed is back soon
/// after that.
const UNSEEN: SignedDuration = SignedDuration::from_secs(5);
/// Several parts fail in a row, and each may keep a claim from its sandbox.
const PASSED_OVER: SignedDuration = SignedDuration::from_secs(60);
/// The longest without any claim served while a sandbox is available: a request without an answer is given up after 15 s, and an
/// API server that crashed just then is back some seconds later.
const IDLE: SignedDuration = SignedDuration::from_secs(45);
/// The largest difference between two clocks.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(180);

/// A new template for one pool, a new size for another.
fn change(scene: &Scene, dice: &mut StdRng) -> Result<(), String> {
    let name = |dice: &mut StdRng| POOLS[dice.random_range(0..POOLS.len())];
    scene.roll_to(name(dice), &format!("sandbox:{}", dice.random_range(0..1000)))?;
    let replicas = dice.random_range(10..20);
    scene.patch_pool(name(dice), &json!({"spec": {"replicas": replicas}}))
}

pub fn nothing_is_lost_while_everything_fails_in_turn(scene: &Scene) -> Result<(), String> {
    expect_faults(scene);
    scene.declare(|rules| {
        rules.gaps = true;
        rules.idle = Some(IDLE);
        rules.held_up = HELD_UP;
        rules.passed_over = PASSED_OVER;
        rules.unseen = UNSEEN;
        rules.clock = CLOCKS_APART;
    });
    let (minutes, seed) = (number("CHAOS_MINUTES", 20)?, seed()?);
    eprintln!("chaos for {minutes} minutes, CHAOS_MINUTES={minutes} SEED={seed}");
    let mut dice = StdRng::seed_from_u64(seed);
    let mut target = Target::new(scene)?;
    for name in POOLS {
        scene.create_pool(&pool(name, 15, &sim(&[("ready-after", "300ms")])))?;
    }
    wait_until_at_rest(scene, 60)?;
    let mut load = Load::start(scene);
    let (began, mut injected) = (Instant::now(), BTreeMap::<Disruption, usize>::new());
    for disruption in Disruption::ALL.into_iter().cycle() {
        if began.elapsed() >= Duration::from_secs(60 * minutes) {
            break;
        }
        change(scene, &mut dice)?;
        target.inject(disruption)?;
        *injected.entry(disruption).or_default() += 1;
        sleep(CALM);
        target.operator_lives()?;
        let seconds = began.elapsed().as_secs();
        let so_far = load.so_far()?;
        eprintln!(
            "{:3}:{:02} {}; {so_far}",
            seconds / 60,
            seconds % 60,
            disruption.name()
        );
    }
    let claims = load.stop()?;
    wait_until_at_rest(scene, 180)?;
    target.stop_operator()?;
    for (disruption, times) in injected {
        scene
            .lab
            .print_at_end(format!("chaos: {times:3} times {}", disruption.name()));
    }
    scene
        .lab
        .print_at_end(format!("chaos: {claims} in {minutes} minutes, SEED={seed}"));
    Ok(())
}
