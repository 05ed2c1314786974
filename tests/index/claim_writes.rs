//! Two writes on one claim are in flight: the second followed on a version that the first did not know.

use crate::{NOW, claim, index, snapshot, write_status};
use warmpool::cache::index::Index;
use warmpool::cache::stale_answers::WatchProgress;
use warmpool::cache::watch::Indexed;
use warmpool::model::failure::{Class, Failure};
use warmpool::model::request::Request;
use warmpool::model::retry::{NextWrite, Purpose};

fn fails(index: &mut Index, request: &Request, class: Class) {
    let message = "it failed".to_string();
    let outcome = Err(Failure { class, message });
    index.take_over(request, outcome, WatchProgress::default(), NOW);
}

#[test]
fn a_conflict_of_the_first_write_keeps_nobody_from_repeating_the_second() {
    let mut index = index();
    let before = snapshot(&index).claims[0].claim.clone();
    let first = write_status(&mut index, &before);
    claim(11, "Pending").apply(&mut index, true);
    let shown = index.claim(&before.key).unwrap();
    let second = write_status(&mut index, &shown);
    fails(&mut index, &second, Class::Unknown);
    fails(&mut index, &first, Class::Conflict);
    let write = index.claim_memory(&shown).unwrap().write.as_ref().unwrap();
    let next = write.next(Purpose::Publish, &shown.resource_version, NOW);
    assert_ne!(
        next,
        NextWrite::Read,
        "I8: nothing is written before a read that nobody makes"
    );
}
