//! Checks which tests against an API server may run at the same time, and in which lab.

#![allow(
    dead_code,
    reason = "the gate's other user, the tests against an API server, uses the rest"
)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

#[path = "apiserver/gate.rs"]
mod gate;

use gate::Group::{self, Alone, BehindFaults, Busy, Together};
use gate::Queue;
use proptest::prelude::*;

/// One comes and enters at once, if a lab is open to it.
fn comes(queue: &mut Queue, group: Group) -> Option<usize> {
    queue.join(group);
    queue.admit(group)
}

#[test]
fn tests_that_share_a_lab_spread_over_those_that_nobody_waits_for() {
    let mut queue = Queue::new(2);
    let labs = [Together; 4].map(|group| comes(&mut queue, group).unwrap());
    assert_eq!(labs.iter().filter(|lab| **lab == 0).count(), 2, "{labs:?}");
}

#[test]
fn the_only_empty_lab_is_left_to_a_test_that_can_share_none() {
    let mut queue = Queue::new(2);
    assert_eq!(comes(&mut queue, Together), Some(0));
    queue.join(Alone);
    assert_eq!(
        comes(&mut queue, Together),
        Some(0),
        "it took the lab that another needs"
    );
    assert_eq!(queue.admit(Alone), Some(1));
}

#[test]
fn tests_that_share_crowd_in_one_lab_until_another_is_empty() {
    let mut queue = Queue::new(2);
    assert_eq!(
        (comes(&mut queue, Together), comes(&mut queue, Together)),
        (Some(0), Some(1))
    );
    assert_eq!(comes(&mut queue, Alone), None);
    let fullest = comes(&mut queue, Together).unwrap();
    assert_eq!(
        comes(&mut queue, Together),
        Some(fullest),
        "it keeps both labs from getting empty"
    );
    queue.leave(1 - fullest);
    assert_eq!(queue.admit(Alone), Some(1 - fullest));
}

#[test]
fn no_two_busy_tests_run_at_once_and_the_second_keeps_no_lab_from_others() {
    let mut queue = Queue::new(3);
    assert_eq!(comes(&mut queue, Busy), Some(0));
    assert_eq!(comes(&mut queue, Busy), None);
    assert_eq!(
        (comes(&mut queue, Together), comes(&mut queue, Together)),
        (Some(1), Some(2))
    );
    queue.leave(0);
    assert_eq!(queue.admit(Busy), Some(0));
}

proptest! {
    #[test]
    fn everybody_gets_in_and_never_two_groups_into_one_lab(
        comers in prop::collection::vec(prop::sample::select(vec![Together, BehindFaults, Alone, Busy]), 1..40),
        leavers in prop::collection::vec(any::<prop::sample::Index>(), 200),
        labs in 1_usize..5,
    ) {
        let (mut queue, mut waiting, mut inside) = (Queue::new(labs), Vec::new(), Vec::<(usize, Group)>::new());
        let (mut comers, mut leavers) = (comers.into_iter(), leavers.into_iter());
        loop {
            // As many as the threads of a run come at once.
            while waiting.len() + inside.len() < 6 && let Some(group) = comers.next() {
                queue.join(group);
                waiting.push(group);
            }
            waiting.retain(|group| queue.admit(*group).map(|lab| inside.push((lab, *group))).is_none());
            for (n, (lab, group)) in inside.iter().enumerate() {
                for (other_lab, other) in &inside[..n] {
                    prop_assert!(lab != other_lab || (group == other && !group.is_alone()), "{inside:?}");
                    prop_assert!(*group != Busy || *other != Busy, "{inside:?}");
                }
            }
            let Some(leaver) = leavers.next().filter(|_| !inside.is_empty()) else {
                break;
            };
            queue.leave(inside.swap_remove(leaver.index(inside.len())).0);
        }
        prop_assert!(waiting.is_empty() && inside.is_empty(), "{waiting:?} wait while {inside:?} are inside");
    }
}
