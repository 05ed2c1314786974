//! Random walks through larger worlds. A seed gives the world and the walk; a breach is cut down to the actions that it
//! needs before it is told.

use crate::scene::{Left, Scene};
use crate::state::State;
use crate::story::{Story, settle, tell};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Worlds to walk in.
const SCENES: u64 = 256;
/// Steps after which nothing disturbs any more.
const STEPS: usize = 160;
/// Walks after each of which it is told how far they are.
const TOLD: u64 = 10_000;
/// Longest time in which a story is cut down.
const CUTTING: Duration = Duration::from_secs(60);

/// The world number `seed`.
fn scene(seed: u64) -> &'static Scene {
    let mut random = StdRng::seed_from_u64(seed);
    let replicas = random.random_range(2..=6);
    Scene::new("a walk", replicas).with(|scene| {
        let unavailable = random.random_range(0..=2usize);
        let surge = random.random_range(usize::from(unavailable == 0)..=2);
        let strategy = ["RollingUpdate", "RollingUpdate", "RollingUpdate", "OnReplenish"];
        let strategy = strategy.choose(&mut random).unwrap();
        let rolls = *strategy == "RollingUpdate";
        let update = json!({"maxUnavailable": unavailable, "maxSurge": surge, "type": strategy});
        scene.pool(json!({"updateStrategy": update}));
        if random.random_bool(0.3) {
            scene.pool(json!({"capacity": {"maxTotal": random.random_range(replicas + 1..=replicas + 4)}}));
        }
        // The handlers are labels that the template gives and that somebody changes later.
        if random.random_bool(0.2) {
            scene.pool(json!({
                "lifecycle": {"preNormal": {"labelsHandler": {"admitted": "yes"}}},
                "template": {"metadata": {"labels": {"admitted": "no"}}},
            }));
        }
        if random.random_bool(0.2) {
            scene.pool(json!({
                "lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}}},
                "template": {"metadata": {"labels": {"hold": "yes"}}},
            }));
        }
        if random.random_bool(0.3) {
            let replicas = random.random_range(0..=3);
            scene.another_pool(json!({"replicas": replicas, "capacity": {"maxTotal": null}}));
        }
        let pools = scene.pools.len();
        let claims = random.random_range(1..=8);
        scene.operators = random.random_range(1..=2);
        let claims: Vec<_> = (0..claims)
            .map(|_| claim(&mut random, scene.operators, pools))
            .collect();
        scene.claims(claims);
        let images = if rolls {
            ["one", "two", "three"]
        } else {
            ["one"; 3]
        };
        let edits = random.random_range(0..=3);
        let pool = |random: &mut StdRng| scene.pools.choose(random).map_or("", |(name, _)| *name);
        let edits: Vec<_> = (0..edits)
            .map(|_| (pool(&mut random), edit(&mut random, &images)))
            .collect();
        scene.left.edits = edits.leak();
        let mut up_to = |most: u8| random.random_range(0..=most);
        scene.left = Left {
            crashes: up_to(2),
            losses: up_to(3),
            relists: up_to(2),
            stalls: up_to(1),
            passes: up_to(3),
            unclaims: up_to(3),
            evictions: up_to(2),
            deaths: up_to(2),
            unready: up_to(2),
            removals: up_to(1),
            ..scene.left.clone()
        };
        scene.late = random.random_bool(0.5);
    })
}

fn claim(random: &mut StdRng, operators: usize, pools: usize) -> Value {
    let replicas = [1, 1, 1, 2, 3].choose(random).copied().unwrap();
    let policy = ["PreferLatest", "PreferLatest", "Latest", "Any"]
        .choose(random)
        .unwrap();
    let priority = random.random_range(0..=2);
    // What two leaders at once may do to a claim that has lost sandboxes replaced is in docs/guarantees.md.
    let replaces = operators == 1 && random.random_bool(0.3);
    let lost = if replaces { "Replace" } else { "Fail" };
    // For several that wait for more than the pool keeps nobody else waits, which the laws do not know.
    let on_empty = if replicas == 1 {
        ["Create", "Create", "Create", "Wait", "Fail"]
    } else {
        ["Create"; 5]
    };
    let on_empty = on_empty.choose(random).unwrap();
    let release = ["Delete", "Retain"].choose(random).unwrap();
    let mut claim = json!({
        "replicas": replicas, "priority": priority, "revisionPolicy": policy, "onSandboxLost": lost,
        "onEmpty": on_empty, "releasePolicy": release,
    });
    if pools > 1 && random.random_bool(0.6) {
        claim["poolRef"] = json!({"name": "po"});
        if random.random_bool(0.6) {
            claim["poolRef"] = Value::Null;
            claim["poolSelector"] = json!({"matchLabels": {"lang": "any"}});
        }
    }
    if random.random_bool(0.2) {
        claim["lifetimeSeconds"] = json!(60);
    }
    if random.random_bool(0.2) {
        claim["ttlSecondsAfterFinished"] = json!(30);
    }
    claim
}

fn edit(random: &mut StdRng, images: &[&str]) -> Value {
    match random.random_range(0..=5) {
        0..=2 => return json!({"replicas": random.random_range(0..=6)}),
        3 => return json!({"updateStrategy": {"paused": random.random_bool(0.6)}}),
        _ => {}
    }
    let image = images.choose(random).unwrap();
    json!({"template": {"spec": {"containers": [{"name": "sandbox", "image": image}]}}})
}

/// Walks through the world number `seed % SCENES` as `seed` has it.
fn walk(seed: u64, begin: &State) -> Option<Story> {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut state, mut actions) = (begin.clone(), Vec::new());
    for _ in 0..STEPS {
        let enabled = state.enabled();
        let (course, rest): (Vec<_>, Vec<_>) = enabled.into_iter().partition(|action| action.is_course());
        let disturbs = random.random_bool(0.1) || course.is_empty();
        let from = if disturbs && !rest.is_empty() {
            &rest
        } else {
            &course
        };
        let Some(action) = from.choose(&mut random) else {
            break;
        };
        actions.push(action.clone());
        if let Err(breach) = state.happen(action).expect("it is enabled") {
            return Some(shorter(begin, Story::new(begin, actions, breach)));
        }
    }
    let breach = settle(state, &mut actions).err()?;
    Some(shorter(begin, Story::new(begin, actions, breach)))
}

/// The story without the actions that it does not need (delta debugging, Zeller 1999), as far as [`CUTTING`] suffices.
fn shorter(begin: &State, mut story: Story) -> Story {
    let begun = Instant::now();
    eprintln!(
        "{}; cutting the story down from {} actions",
        story.breach,
        story.actions.len()
    );
    let mut size = story.actions.len() / 2;
    while size > 0 {
        let mut start = 0;
        while start < story.actions.len() && begun.elapsed() < CUTTING {
            let mut actions = story.actions.clone();
            actions.drain(start..actions.len().min(start + size));
            match tell(begin, &actions) {
                Some(same)
                    if same.breach.law == story.breach.law && same.actions.len() < story.actions.len() =>
                {
                    story = same;
                }
                _ => start += size,
            }
        }
        size /= 2;
    }
    story
}

/// Walks `count` times from `first` on.
pub fn walks(first: u64, count: u64, threads: usize) {
    let (next, start) = (AtomicU64::new(first), Instant::now());
    let work = || {
        let mut begun: HashMap<u64, State> = HashMap::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return None;
            }
            if seed > first && (seed - first).is_multiple_of(TOLD) {
                let seconds = start.elapsed().as_secs_f64();
                eprintln!("{} of {count} walks, {seconds:.0} s", seed - first);
            }
            let number = seed % SCENES;
            let begin = begun.entry(number).or_insert_with(|| scene(number).begin());
            if let Some(story) = walk(seed, begin) {
                eprintln!("seed {seed}: {}", story.breach);
                next.store(first + count, Ordering::Relaxed);
                return Some((seed, story));
            }
        }
    };
    let found = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        ends.into_iter().flatten().next()
    });
    if let Some((seed, story)) = found {
        panic!(
            "seed {seed} (WALK_SEED={seed} repeats it): {story}{:#?}",
            story.begin.scene
        );
    }
    println!(
        "{count} walks from seed {first} on, {:.1} s",
        start.elapsed().as_secs_f64()
    );
}
