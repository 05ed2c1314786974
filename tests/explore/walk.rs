//! Random walks through larger worlds. A seed gives the world and the walk; a breach is cut down to the actions that it
//! needs before it is told.

use crate::state::State;
use crate::story::{Story, settle, tell};
use crate::worlds;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
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
            let begin = begun
                .entry(number)
                .or_insert_with(|| worlds::scene(number).begin());
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
