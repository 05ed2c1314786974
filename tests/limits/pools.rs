//! Checks that requests of one pool or namespace that are not answered hold up no other.

use crate::requests::{
    FIRST, RETRY, bind_of, create_of, delete_of, push, read_in, send, status_of, write_pool,
};
use std::collections::VecDeque;
use warmpool::api::claim::Phase;
use warmpool::cache::request_limits::{RequestQueue, Sent};
use warmpool::model::Key;
use warmpool::model::request::Request;

/// A request about this pool, or about a claim or pod of its namespace, made from its number.
type OfPool<'a> = &'a dyn Fn(&Key, usize) -> Request;

const OF_POOL: [(&str, OfPool<'static>); 7] = [
    ("W1", &|pool, n| bind_of(pool, &n.to_string(), &n.to_string())),
    ("W2", &|pool, n| status_of(pool, &n.to_string(), Phase::Bound)),
    ("creations", &|pool, n| create_of(pool, &n.to_string())),
    ("deletions", &|pool, n| delete_of(pool, &n.to_string())),
    ("statuses of waiting claims", &|pool, n| {
        status_of(pool, &n.to_string(), Phase::Pending)
    }),
    ("reads", &|pool, n| read_in(&pool.namespace, &n.to_string())),
    ("statuses of pools", &|pool, _| write_pool(pool)),
];

#[test]
fn requests_of_one_namespace_that_are_not_answered_hold_up_no_other_namespace() {
    let (slow, other, third) = (
        Key::new("slow", "python"),
        Key::new("other", "python"),
        Key::new("third", "python"),
    );
    for (kind, request) in OF_POOL {
        for is_retry in [FIRST, RETRY] {
            let mut queue = RequestQueue::default();
            push(&mut queue, is_retry, 1000, |n| request(&slow, n));
            assert_eq!(send(&mut queue).len(), 32, "{kind}");
            push(&mut queue, is_retry, 100, |n| request(&other, n));
            assert_eq!(send(&mut queue).len(), 7, "{kind}");
            queue.push(request(&third, 0), is_retry);
            assert_eq!(send(&mut queue).len(), 1, "{kind}: a slot is free for the next");
        }
    }
}

#[test]
fn requests_of_one_pool_that_are_not_answered_hold_up_no_other_pool() {
    let (slow, other) = (Key::new("default", "slow"), Key::new("default", "other"));
    for (kind, request) in OF_POOL.into_iter().take(4) {
        let mut queue = RequestQueue::default();
        push(&mut queue, FIRST, 1000, |n| request(&slow, n));
        assert_eq!(
            send(&mut queue).len(),
            32,
            "I7: one pool has all slots for {kind}"
        );
        for number in 0..100 {
            queue.push(request(&other, number), FIRST);
            let sent = queue.take_next();
            queue.answered(&sent.unwrap_or_else(|| {
                panic!("I7: a pool whose {kind} are not answered holds up those of another")
            }));
        }
    }
}

#[test]
fn two_pools_that_are_answered_in_turn_get_as_many_requests_each() {
    let pools = [Key::new("default", "large"), Key::new("default", "small")];
    let mut queue = RequestQueue::default();
    let (_, create) = OF_POOL[2];
    for pool in &pools {
        push(&mut queue, FIRST, 1000, |n| create(pool, n));
    }
    let mut in_flight = VecDeque::from(send(&mut queue));
    let mut sent = [0_usize, 0];
    for _ in 0..400 {
        queue.answered(&in_flight.pop_front().unwrap());
        for next in send(&mut queue) {
            let Request::CreatePod(creation) = &next.request else {
                panic!("not a creation: {next:?}");
            };
            sent[usize::from(creation.pool.key == pools[1])] += 1;
            in_flight.push_back(next);
        }
    }
    let in_flight: [usize; 2] = pools.each_ref().map(|pool| {
        let of_pool = |sent: &&Sent| matches!(&sent.request, Request::CreatePod(c) if c.pool.key == *pool);
        in_flight.iter().filter(of_pool).count()
    });
    assert!(in_flight[0].abs_diff(in_flight[1]) <= 4, "{in_flight:?}");
    assert!(sent[0].abs_diff(sent[1]) <= sent[0] / 5, "{sent:?}");
}
