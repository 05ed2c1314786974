//! Random walks through larger worlds. A seed gives the world and the walk; a breach is cut down to the actions that it
//! needs.

use crate::action::Action;
use crate::laws::Breach;
use crate::state::State;
use crate::story::{Story, come_to_rest, replay};
use crate::worlds;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Worlds to walk in.
const SCENES: u64 = 256;
/// Steps after which nothing disturbs any more.
const STEPS: usize = 160;
/// Walks between two reports.
const REPORTED: u64 = 10_000;
/// Longest time in which a story is cut down.
const CUTTING: Duration = Duration::from_secs(60);

/// Walks from `begin` on as `seed` has it. Returns what has happened, and the law that the last of it breaks.
fn walk(seed: u64, begin: &State) -> (Vec<Action>, Result<(), Breach>) {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut state, mut actions) = (begin.clone(), Vec::new());
    for _ in 0..STEPS {
        let course = state.course();
        let mut rest = state.enabled();
        rest.retain(|action| !course.contains(action));
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
            return (actions, Err(breach));
        }
    }
    let rested = come_to_rest(state, &mut actions);
    (actions, rested)
}

/// Where the walk of a seed begins: in the world number `seed % SCENES`.
fn beginning(seed: u64) -> State {
    worlds::scene(seed % SCENES).begin()
}

/// Walks as each of `seeds` has it, twice, and sees that it goes the same way: otherwise a breach could not be repeated.
pub fn repeat_themselves(seeds: Range<u64>) {
    for seed in seeds {
        let ways = [(); 2].map(|()| walk(seed, &beginning(seed)).0);
        let apart = ways[0].iter().zip(&ways[1]).position(|(one, other)| one != other);
        let lengths = ways.each_ref().map(Vec::len);
        assert!(
            apart.is_none() && lengths[0] == lengths[1],
            "seed {seed}: of {lengths:?} actions number {apart:?} differs"
        );
    }
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
            match replay(begin, &actions) {
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
            if seed > first && (seed - first).is_multiple_of(REPORTED) {
                let seconds = start.elapsed().as_secs_f64();
                eprintln!("{} of {count} walks, {seconds:.0} s", seed - first);
            }
            let begin = begun.entry(seed % SCENES).or_insert_with(|| beginning(seed));
            if let (actions, Err(breach)) = walk(seed, begin) {
                eprintln!("seed {seed}: {breach}");
                next.store(first + count, Ordering::Relaxed);
                return Some((seed, shorter(begin, Story::new(begin, actions, breach))));
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
