//! Replays published rollouts through `warmpool plan` and compares the numbers.
//!
//! `stories.yaml` holds the rollouts and defines each figure. The published planner either scales or replaces in one pass, and
//! this planner does both. So the test compares numbers of created and deleted sandboxes, which [`Moves::published`] derives
//! from the figures.

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
use std::sync::LazyLock;
use std::{fmt, thread};
use story::{Figures, Sandboxes, Step, Story};

/// Number of published steps, and of steps for which this project has a rule of its own.
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
    /// The moves of one pass that the figures require.
    ///
    /// The pass creates the missing sandboxes. It deletes all evicted warming sandboxes, and up to `may_go` available ones:
    /// first the evicted, then the surplus. Last it replaces old sandboxes while the replaced and the warming ones stay within
    /// `move_limit`; an evicted old sandbox counts as replaced.
    fn published(has: &Sandboxes, figures: &Figures) -> Self {
        let mut may_go = figures.may_go;
        let mut within_limit = |wanted: usize| {
            let allowed = wanted.min(may_go);
            may_go -= allowed;
            allowed
        };
        let evicted_old = within_limit(has.old_evicted);
        let evicted_new = within_limit(has.new_evicted);
        let surplus_old = within_limit(figures.surplus_old);
        let surplus_new = within_limit(figures.surplus - figures.surplus_old);
        let moves_left = figures.move_limit.saturating_sub(has.new_warming);
        let moved = figures.to_move.min(moves_left).saturating_sub(evicted_old);
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

/// Every story with the plans of its steps. A debug build takes a second for a plan, and each test reads all of them.
static PLANNED: LazyLock<Vec<(Story, Vec<Snapshot>)>> = LazyLock::new(|| {
    thread::scope(|scope| {
        let plan = |story: Story| {
            scope.spawn(|| {
                let plan_of = |step| Snapshot::plan(&story.pool, step);
                let plans = story.steps.iter().map(plan_of).collect();
                (story, plans)
            })
        };
        let planning: Vec<_> = story::all().into_iter().map(plan).collect();
        planning.into_iter().map(|story| story.join().unwrap()).collect()
    })
});

/// Fails with the differences that `check` finds over all steps.
fn check_every_step(check: impl Fn(&Step, &Snapshot) -> Option<String>) {
    let mut differences = Vec::new();
    for (story, plans) in PLANNED.iter() {
        for (number, (step, snapshot)) in story.steps.iter().zip(plans).enumerate() {
            if let Some(difference) = check(step, snapshot) {
                differences.push(format!("{}, step {}: {difference}", story.story, number + 1));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn every_published_step_creates_and_deletes_the_published_numbers() {
    check_every_step(|step, snapshot| {
        let figures = step.ours.as_ref().unwrap_or(&step.figures);
        let published = Moves::published(&step.has, figures);
        (snapshot.moves != published).then(|| format!("published: {published}; planned: {}", snapshot.moves))
    });
}

#[test]
fn the_status_shows_how_many_sandboxes_are_still_to_move() {
    check_every_step(|step, snapshot| {
        let to_move = snapshot.to_move();
        (to_move != step.figures.to_move)
            .then(|| format!("published: {}; the status shows {to_move}", step.figures.to_move))
    });
}

#[test]
fn the_status_counts_the_existing_sandboxes() {
    check_every_step(|step, snapshot| {
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

/// The source only says that all sandboxes of a finished step are new. The end of the rollout follows from that.
#[test]
fn a_pool_is_finished_where_the_plan_of_the_step_before_completes_its_rollout() {
    let mut finished = 0;
    for (story, plans) in PLANNED.iter() {
        let steps_with_the_plan_before = story.steps.iter().skip(1).zip(plans);
        for (_, Snapshot { status, .. }) in steps_with_the_plan_before.filter(|(step, _)| step.finished) {
            assert_eq!(status["currentRevision"], status["updateRevision"]);
            finished += 1;
        }
    }
    let steps = PLANNED.iter().flat_map(|(story, _)| &story.steps);
    let marked = steps.filter(|step| step.finished).count();
    assert_eq!(finished, marked, "a finished step is not the first of its story");
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
        assert_ne!(ours, theirs, "{step:?} has the published figures");
    }
}
