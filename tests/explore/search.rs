//! Every world that a scene can come to, the nearest first, so that the first breach found is the shortest story.

use crate::action::Action;
use crate::goal;
use crate::key;
use crate::laws::Breach;
use crate::scene::Scene;
use crate::state::State;
use crate::story::Story;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// More steps than any undisturbed world needs to come to rest.
pub const RESTLESS: usize = 1_000;

/// How a world was come to.
struct Step {
    action: Action,
    before: Option<Arc<Step>>,
}

type Way = Option<Arc<Step>>;

/// What a search has covered.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    pub states: usize,
    pub transitions: usize,
    /// The most steps from the beginning.
    pub depth: usize,
    pub time: Duration,
    /// Nothing is left out.
    pub complete: bool,
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = if self.complete { "all" } else { "the nearest" };
        let (states, transitions, depth) = (self.states, self.transitions, self.depth);
        let seconds = self.time.as_secs_f64();
        write!(
            f,
            "{all} {states} states, {transitions} transitions, depth {depth}, {seconds:.1} s"
        )
    }
}

/// Bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub states: usize,
    pub threads: usize,
}

/// A world that was come to, or the breach on the way to it.
struct Found {
    way: Way,
    /// It is what the undisturbed course of this world goes on with.
    course_of: Option<u128>,
    /// Its key, and the world itself when the search goes on from it. Most are known already, and all of them together
    /// would not fit into memory.
    world: Result<(u128, Option<State>), Breach>,
}

/// A world to go on from.
struct Open {
    state: State,
    key: u128,
    way: Way,
}

/// Visits every world that the scene can come to, up to `bounds`.
///
/// # Errors
/// The shortest story that breaks a law.
pub fn explore(scene: &'static Scene, bounds: Bounds) -> Result<Coverage, Box<Story>> {
    let start = Instant::now();
    let begin = scene.begin();
    let key = key::of(&begin);
    let mut ways = HashMap::from([(key, None)]);
    let mut courses = HashMap::new();
    let mut coverage = Coverage::default();
    let (state, way) = (begin.clone(), None);
    let mut layer = vec![Open { state, key, way }];
    let mut is_cut = false;
    while !layer.is_empty() {
        coverage.states += layer.len();
        coverage.depth += 1;
        let is_last = coverage.states >= bounds.states;
        let found = expand_all(&layer, bounds.threads, |key| !is_last && !ways.contains_key(&key));
        layer = Vec::new();
        for one in found {
            coverage.transitions += 1;
            let (key, state) = match one.world {
                Err(breach) => return Err(Box::new(Story::new(&begin, actions(&one.way), breach))),
                Ok(key_and_state) => key_and_state,
            };
            courses.extend(one.course_of.map(|before| (before, key)));
            if let Entry::Vacant(unseen) = ways.entry(key) {
                let way = one.way;
                unseen.insert(way.clone());
                is_cut |= is_last;
                layer.extend(state.map(|state| Open { state, key, way }));
            }
        }
    }
    coverage.complete = !is_cut;
    coverage.time = start.elapsed();
    match restless(&courses, &ways) {
        Some(way) => Err(Box::new(circle(&begin, actions(way)))),
        None => Ok(coverage),
    }
}

/// The shortest way to a world whose undisturbed course runs in a circle: every other ends at rest, where it is judged.
fn restless<'a>(courses: &HashMap<u128, u128>, ways: &'a HashMap<u128, Way>) -> Option<&'a Way> {
    let endless = |key: &&u128| {
        let course = std::iter::successors(Some(**key), |key| courses.get(key).copied());
        course.take(RESTLESS).count() == RESTLESS
    };
    let found = courses.keys().filter(endless).filter_map(|key| ways.get(key));
    found.min_by_key(|way| steps(way).count())
}

/// These actions, and the undisturbed course after them once around.
fn circle(begin: &State, mut actions: Vec<Action>) -> Story {
    let mut state = begin.clone();
    for action in &actions {
        state
            .happen(action)
            .expect("it is enabled")
            .expect("no law is broken");
    }
    let mut seen = HashSet::new();
    while seen.insert(key::of(&state)) {
        let action = state.undisturbed().expect("it never rests");
        state
            .happen(&action)
            .expect("it is enabled")
            .expect("no law is broken");
        actions.push(action);
    }
    let (law, what) = ("I8", "a course comes to no rest".to_string());
    Story::new(begin, actions, Breach { law, what })
}

fn steps(way: &Way) -> impl Iterator<Item = &Arc<Step>> {
    std::iter::successors(way.as_ref(), |step| step.before.as_ref())
}

fn actions(way: &Way) -> Vec<Action> {
    let mut found: Vec<_> = steps(way).map(|step| step.action.clone()).collect();
    found.reverse();
    found
}

/// Expands every world of a layer. A world that is found is kept once, and only if `is_kept`.
fn expand_all(layer: &[Open], threads: usize, is_kept: impl Fn(u128) -> bool + Sync) -> Vec<Found> {
    let share = layer.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let is_kept = &is_kept;
        let chunk = move |open: &[Open]| {
            let mut kept = HashSet::new();
            let mut is_kept = |key| is_kept(key) && kept.insert(key);
            let found = open.iter().flat_map(|open| expand(open, &mut is_kept));
            found.collect::<Vec<_>>()
        };
        if threads == 1 || share < 16 {
            return chunk(layer);
        }
        let chunks = layer.chunks(share).map(|open| scope.spawn(move || chunk(open)));
        let threads: Vec<_> = chunks.collect();
        let found = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        found.collect()
    })
}

/// All that may happen next, and what follows when nothing disturbs.
fn expand(open: &Open, is_kept: &mut impl FnMut(u128) -> bool) -> Vec<Found> {
    let Open { state, key, way } = open;
    let undisturbed = state.undisturbed();
    let mut all: Vec<_> = state.enabled();
    // What happens by itself only when nothing else does is no disturbance there.
    all.extend(undisturbed.clone().filter(|action| !all.contains(action)));
    let mut next = Vec::new();
    for action in all {
        let Some(after) = state.after(&action) else {
            continue;
        };
        let is_course = undisturbed.as_ref() == Some(&action);
        let before = way.clone();
        next.push(Found {
            way: Some(Arc::new(Step { action, before })),
            course_of: is_course.then_some(*key),
            world: after.map(|state| {
                let key = key::of(&state);
                (key, is_kept(key).then_some(state))
            }),
        });
    }
    if undisturbed.is_none()
        && let Err(breach) = goal::reached(state)
    {
        next.push(Found {
            way: way.clone(),
            course_of: None,
            world: Err(breach),
        });
    }
    next
}
