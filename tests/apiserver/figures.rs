//! Prints the measurements at the end of a run.

use crate::check::Figures;

/// Percentiles are printed for stories with at least this many claims. Fewer say little.
const MANY: usize = 50;

/// Prints what the stories, each with its name, have measured.
pub fn print(stories: &[(String, Figures)]) {
    let Some((test, figures)) = stories.iter().max_by_key(|(_, f)| f.idle_wait.0) else {
        return;
    };
    eprintln!(
        "the longest that a claim waited while a sandbox was available for it: {} ms, in {test}",
        figures.idle_wait.0.as_millis()
    );
    for (test, figures) in stories.iter().filter(|(_, f)| f.excused > 0) {
        eprintln!(
            "{:>6} deletions below the budget, each for a loss of its own that could not be known, up to {} ms before, in {test}",
            figures.excused,
            figures.unseen.as_millis()
        );
    }
    for (test, figures) in stories.iter().filter(|(_, f)| f.late > 0) {
        eprintln!(
            "{:>6} claims whose binding arrived up to {} ms after that of a younger claim was answered, in {test}",
            figures.late,
            figures.reordered.as_millis()
        );
    }
    let mut shown: Vec<_> = stories.iter().filter(|(_, f)| f.waits.count() >= MANY).collect();
    shown.sort_by_key(|(test, _)| test);
    for (test, figures) in shown {
        eprintln!("{:>6} claims: {} in {test}", figures.waits.count(), figures.waits);
    }
}
