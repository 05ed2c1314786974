//! Published stories of rollouts, replayed through `warmpool plan` as users call it. `stories.yaml` holds them and
//! says what each figure means.
//!
//! The published planner either scales or replaces in a pass; this one does both in the same. So what is compared are
//! the numbers, and they must come out of the figures by one rule, see [`Moves::published`].

// A test may panic: that is how it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod pool;
mod story;

use pool::Snapshot;
use std::fmt;
use story::{Figures, Sandboxes, Step, Story};

/// Steps that are published, and of those the ones for which this project has a rule of its own.
const PUBLISHED: usize = 37;
const RESTATED: usize = 1;

/// What happens to sandboxes in one plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moves {
    created_new: usize,
    created_old: usize,
    deleted_available: Sides,
    deleted_warming: Sides,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sides {
    new: usize,
    old: usize,
}

impl fmt::Display for Moves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "created {} new and {} old, deleted {} new and {} old available, {} new and {} old warming",
            self.created_new,
            self.created_old,
            self.deleted_available.new,
            self.deleted_available.old,
            self.deleted_warming.new,
            self.deleted_warming.old
        )
    }
}

impl Moves {
    /// What the figures come to in one pass: what is missing is created; evicted sandboxes go, warming ones freely and
    /// available ones as far as they may; then the surplus, then what is to move, as far as the moves and those still
    /// warming stay within their limit. An evicted old sandbox has moved when it goes.
    fn published(has: &Sandboxes, figures: &Figures) -> Self {
        let mut may_go = figures.may_go;
        let mut take = |wanted: usize| {
            let taken = wanted.min(may_go);
            may_go -= taken;
            taken
        };
        let evicted_old = take(has.old_evicted);
        let evicted_new = take(has.new_evicted);
        let surplus_old = take(figures.surplus_old);
        let surplus_new = take(figures.surplus - figures.surplus_old);
        let room = figures.move_limit.saturating_sub(has.new_warming);
        let moved = figures.to_move.min(room).saturating_sub(evicted_old);
        Self {
            created_new: figures.missing - figures.missing_old,
            created_old: figures.missing_old,
            deleted_available: Sides {
                new: evicted_new + surplus_new,
                old: evicted_old + surplus_old + moved,
            },
            deleted_warming: Sides {
                new: has.new_warming_evicted,
                old: 0,
            },
        }
    }
}

fn told(check: impl Fn(&Story, &Step, &Snapshot) -> Option<String>) {
    let mut faults = Vec::new();
    for story in story::all() {
        for (number, step) in story.steps.iter().enumerate() {
            let snapshot = Snapshot::plan(&story.pool, step);
            if let Some(fault) = check(&story, step, &snapshot) {
                faults.push(format!("{}, step {}: {fault}", story.story, number + 1));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_published_step_creates_and_deletes_the_published_numbers() {
    told(|_, step, snapshot| {
        let figures = step.ours.as_ref().unwrap_or(&step.figures);
        let published = Moves::published(&step.has, figures);
        (snapshot.moves != published).then(|| format!("published: {published}; planned: {}", snapshot.moves))
    });
}

#[test]
fn the_status_tells_how_many_sandboxes_are_still_to_move() {
    told(|_, step, snapshot| {
        let to_move = snapshot.to_move();
        (to_move != step.figures.to_move)
            .then(|| format!("published: {}; the status tells {to_move}", step.figures.to_move))
    });
}

#[test]
fn the_status_counts_what_is_there() {
    told(|_, step, snapshot| {
        let has = &step.has;
        let expected = [
            ("replicas", has.all()),
            ("available", has.available()),
            ("updated", has.of_new()),
        ];
        let wrong = expected
            .iter()
            .find(|(field, count)| snapshot.status[*field] != *count);
        wrong.map(|(field, count)| format!("{field} should be {count}: {}", snapshot.status))
    });
}

/// Published is only that the sandboxes of such a step are all new; that no rollout is under way follows.
#[test]
fn a_pool_is_finished_where_the_plan_of_the_step_before_says_so() {
    let mut finished = 0;
    for story in story::all() {
        for pair in story.steps.windows(2).filter(|pair| pair[1].finished) {
            let status = Snapshot::plan(&story.pool, &pair[0]).status;
            assert_eq!(status["currentRevision"], status["updateRevision"]);
            finished += 1;
        }
    }
    let marked = story::all()
        .iter()
        .flat_map(|s| &s.steps)
        .filter(|s| s.finished)
        .count();
    assert_eq!(finished, marked, "a first step follows none");
}

#[test]
fn no_published_step_is_left_out_and_each_rule_of_our_own_has_its_reason() {
    let stories = story::all();
    let steps: Vec<&Step> = stories.iter().flat_map(|s| &s.steps).collect();
    let restated: Vec<&&Step> = steps.iter().filter(|s| s.ours.is_some()).collect();
    assert_eq!(restated.len(), RESTATED);
    assert_eq!(steps.len(), PUBLISHED + RESTATED);
    for step in restated {
        assert!(
            step.because.as_ref().is_some_and(|why| why.len() > 40),
            "{step:?} needs a reason"
        );
        let (ours, theirs) = (step.ours.as_ref(), Some(&step.figures));
        assert_ne!(ours, theirs, "{step:?} is no other rule");
    }
}
