//! Checks that random operations and crashes end in a state of rest.

use crate::api::PODS;
use crate::check::event::text;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{pool, sim, with};
use crate::scene::Scene;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

/// A small generator of numbers, the same in every run; what they lead to depends on the moment all the same.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: usize) -> usize {
        // Xorshift, by Marsaglia.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound.max(1)
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

const POOLS: [&str; 2] = ["python", "node"];
const STEPS: usize = 220;
const PACE: Duration = Duration::from_millis(100);

fn steer(scene: &Scene, pod: &str, key: &str, value: Value) -> Result<(), String> {
    let patch = json!({"metadata": {"annotations": {format!("sim.warmpool.dev/{key}"): value}}});
    match scene.lab.api.merge(PODS, &scene.namespace, pod, &patch) {
        // It may have gone meanwhile.
        Err(error) if error.code != 404 => Err(error.to_string()),
        _ => Ok(()),
    }
}

fn some_pod(scene: &Scene, dice: &mut Dice) -> Result<Option<String>, String> {
    let state = ClusterState::read(scene)?;
    let name = POOLS[dice.below(POOLS.len())];
    let names: Vec<_> = state
        .unclaimed(name)
        .iter()
        .map(|p| text(p, "/metadata/name").to_string())
        .collect();
    Ok(dice.pick(&names).cloned())
}

fn step(scene: &Scene, dice: &mut Dice, number: usize, live: &mut Vec<String>) -> Result<(), String> {
    let name = POOLS[dice.below(POOLS.len())];
    match dice.below(100) {
        0..45 => {
            let claim = format!("run-{number}");
            scene.create_claim(&claim, name, &json!({"priority": dice.below(3)}))?;
            live.push(claim);
        }
        45..78 if !live.is_empty() => scene.delete_claim(&live.remove(dice.below(live.len())))?,
        78..83 => scene.roll_to(name, &format!("sandbox:{}", dice.below(5)))?,
        83..86 => scene.patch_pool("python", &json!({"spec": {"replicas": 4 + dice.below(6)}}))?,
        86..91 => {
            if let Some(pod) = some_pod(scene, dice)? {
                scene.lab.api.delete(PODS, &scene.namespace, &pod)?;
            }
        }
        91..95 => {
            if let Some(pod) = some_pod(scene, dice)? {
                steer(scene, &pod, "fail-after", json!("0s"))?;
            }
        }
        95..100 => {
            if let Some(pod) = some_pod(scene, dice)? {
                steer(scene, &pod, "unready", json!("true"))?;
            }
        }
        _ => {}
    }
    Ok(())
}

pub fn whatever_happens_it_comes_to_rest(scene: &Scene) -> Result<(), String> {
    let mut operator = scene.lab.start_operator()?;
    scene.create_pool(&pool("python", 8, &sim(&[("ready-after", "200ms")])))?;
    let narrow = json!({"capacity": {"maxTotal": 12}, "updateStrategy": {"maxUnavailable": 2}});
    scene.create_pool(&pool("node", 5, &with(sim(&[("ready-after", "50ms")]), &narrow)))?;
    let (mut dice, mut live) = (Dice(0x5eed_cafe), Vec::new());
    for number in 0..STEPS {
        step(scene, &mut dice, number, &mut live)?;
        if number % 55 == 54 {
            operator = scene.while_operator_is_down(|| {
                operator.kill()?;
                scene.lab.start_operator()
            })?;
        }
        sleep(PACE);
    }
    // The faults stop: unready sandboxes become ready again, and deleted claims free capacity of the narrow pool.
    for pod in scene.pods()? {
        steer(scene, text(&pod, "/metadata/name"), "unready", Value::Null)?;
    }
    live.iter()
        .skip(5)
        .try_for_each(|claim| scene.delete_claim(claim))?;
    wait_until_at_rest(scene, 90)?;
    operator.stop()
}
