//! Checks the limit of each kind of request, and the order in which those above it are sent.

use crate::requests::{
    FIRST, RETRY, bind, claim, create, delete, line, lines, publish, push, push_bindings, python, read, send,
    status, write_pool,
};
use std::sync::Arc;
use warmpool::api::claim::Phase;
use warmpool::cache::request_limits::{IN_FLIGHT, RequestQueue};
use warmpool::model::claim::Claim;
use warmpool::model::request::{ClaimWrite, Request};

#[test]
fn each_kind_of_request_has_a_limit_of_its_own() {
    let named = |n: usize| format!("{n}");
    type Make<'a> = &'a dyn Fn(usize) -> Request;
    let rows: [(&str, bool, Make, usize); 14] = [
        (
            "statuses of claims again",
            RETRY,
            &|n| status(&named(n), Phase::Pending),
            32,
        ),
        ("W1", FIRST, &|n| bind(&named(n), &named(n)), 32),
        ("W2", FIRST, &|n| publish(&named(n)), 32),
        ("W1 again", RETRY, &|n| bind(&named(n), &named(n)), 32),
        ("W2 again", RETRY, &|n| publish(&named(n)), 32),
        ("creations", FIRST, &|n| create(&named(n)), 32),
        ("deletions", FIRST, &|n| delete(&named(n)), 32),
        ("creations again", RETRY, &|n| create(&named(n)), 32),
        ("deletions again", RETRY, &|n| delete(&named(n)), 32),
        (
            "statuses of waiting claims",
            FIRST,
            &|n| status(&named(n), Phase::Pending),
            32,
        ),
        (
            "statuses of failed claims",
            FIRST,
            &|n| status(&named(n), Phase::Failed),
            32,
        ),
        (
            "deletions of claims",
            FIRST,
            &|n| Request::DeleteClaim(claim(&named(n))),
            32,
        ),
        ("reads", FIRST, &|n| read(&named(n)), 32),
        ("statuses of pools", FIRST, &|_| write_pool(&python()), 32),
    ];
    for (kind, is_retry, request, limit) in rows {
        let mut queue = RequestQueue::default();
        push(&mut queue, is_retry, 100, request);
        assert_eq!(send(&mut queue).len(), limit, "{kind}");
    }
}

#[test]
fn requests_of_these_kinds_share_a_limit() {
    let rows = [
        ("W1 and W2", FIRST, [bind("pod", "run"), publish("run")], 32),
        (
            "creations and deletions",
            FIRST,
            [create("pod"), delete("pod")],
            32,
        ),
        ("the same again", RETRY, [create("pod"), delete("pod")], 32),
        (
            "statuses and deletions of claims",
            FIRST,
            [status("run", Phase::Expired), Request::DeleteClaim(claim("run"))],
            32,
        ),
    ];
    for (kinds, is_retry, [one, other], limit) in rows {
        let mut queue = RequestQueue::default();
        // The limit of W1 per claim is not what is checked.
        push(&mut queue, is_retry, limit - 1, |n| match &one {
            Request::WritePod(_) => bind(&format!("{n}"), &format!("{n}")),
            one => one.clone(),
        });
        queue.push(other.clone(), is_retry);
        assert_eq!(send(&mut queue).len(), limit, "{kinds}");
        queue.push(other, is_retry);
        assert!(queue.take_next().is_none(), "{kinds}");
    }
}

#[test]
fn these_requests_do_not_wait_for_those() {
    let named = |n: usize| format!("{n}");
    type Make<'a> = &'a dyn Fn(usize) -> Request;
    let rows: [(&str, bool, Make, bool, Request); 12] = [
        (
            "a status for retries",
            RETRY,
            &|n| status(&named(n), Phase::Pending),
            FIRST,
            status("run", Phase::Pending),
        ),
        (
            "a binding for reads",
            FIRST,
            &|n| read(&named(n)),
            FIRST,
            bind("pod", "run"),
        ),
        (
            "a read for statuses of pools",
            FIRST,
            &|_| write_pool(&python()),
            FIRST,
            read("pod"),
        ),
        (
            "a binding for deletions",
            FIRST,
            &|n| delete(&named(n)),
            FIRST,
            bind("pod", "run"),
        ),
        (
            "a binding for creations",
            FIRST,
            &|n| create(&named(n)),
            FIRST,
            bind("pod", "run"),
        ),
        (
            "a binding for retries",
            RETRY,
            &|n| bind(&named(n), &named(n)),
            FIRST,
            bind("pod", "run"),
        ),
        (
            "a binding for retries of W2",
            RETRY,
            &|n| publish(&named(n)),
            FIRST,
            bind("pod", "run"),
        ),
        (
            "W2 for creations",
            FIRST,
            &|n| create(&named(n)),
            FIRST,
            publish("run"),
        ),
        (
            "W2 for statuses",
            FIRST,
            &|n| status(&named(n), Phase::Pending),
            FIRST,
            publish("run"),
        ),
        (
            "a creation for retries",
            RETRY,
            &|n| create(&named(n)),
            FIRST,
            create("pod"),
        ),
        (
            "a retry for bindings",
            FIRST,
            &|n| bind(&named(n), &named(n)),
            RETRY,
            bind("pod", "run"),
        ),
        (
            "a creation for bindings",
            FIRST,
            &|n| bind(&named(n), &named(n)),
            FIRST,
            create("pod"),
        ),
    ];
    for (row, are_retries, those, is_retry, this) in rows {
        let mut queue = RequestQueue::default();
        push(&mut queue, are_retries, 100, those);
        assert_eq!(send(&mut queue).len(), 32, "{row}");
        queue.push(this.clone(), is_retry);
        assert_eq!(lines(&send(&mut queue)), [line(&this)], "{row}");
    }
}

#[test]
fn one_claim_has_eight_w1_in_flight_and_leaves_the_others_to_other_claims() {
    let mut queue = RequestQueue::default();
    push(&mut queue, FIRST, 20, |n| bind(&format!("batch-{n}"), "batch"));
    push_bindings(&mut queue, FIRST, 2);
    let mut sent = send(&mut queue);
    let mut expected: Vec<_> = (0..8).map(|n| format!("bind batch-{n}")).collect();
    expected.extend(["bind pod-0".into(), "bind pod-1".into()]);
    assert_eq!(lines(&sent), expected);
    queue.answered(&sent.remove(9));
    assert!(
        queue.take_next().is_none(),
        "the answer of another claim frees nothing"
    );
    queue.answered(&sent.remove(0));
    assert_eq!(lines(&send(&mut queue)), ["bind batch-8"]);
}

#[test]
fn retries_count_among_the_w1_of_their_claim() {
    let mut queue = RequestQueue::default();
    push(&mut queue, FIRST, 8, |n| bind(&format!("batch-{n}"), "batch"));
    assert_eq!(send(&mut queue).len(), 8);
    queue.push(bind("again", "batch"), RETRY);
    assert!(queue.take_next().is_none());
}

#[test]
fn w2_goes_before_w1_that_wait_and_after_w2_that_wait() {
    let mut queue = RequestQueue::default();
    push_bindings(&mut queue, FIRST, IN_FLIGHT + 1);
    let sent = send(&mut queue);
    for claim in ["first", "second", "third"] {
        queue.push(publish(claim), FIRST);
    }
    sent.iter().for_each(|sent| queue.answered(sent));
    assert_eq!(
        lines(&send(&mut queue)),
        ["publish first", "publish second", "publish third", "bind pod-32"]
    );
}

#[test]
fn a_status_that_follows_a_bound_claim_delays_no_binding() {
    let mut bound = Claim::clone(&claim("bound"));
    bound.status.phase = Some(Phase::Bound);
    let follow = |_| {
        Request::WriteClaim(Arc::new(ClaimWrite {
            claim: Arc::new(bound.clone()),
            status: Box::new(bound.status.clone()),
        }))
    };
    let mut queue = RequestQueue::default();
    push(&mut queue, FIRST, 100, follow);
    send(&mut queue);
    push_bindings(&mut queue, FIRST, 100);
    assert_eq!(send(&mut queue).len(), 32);
}

#[test]
fn requests_of_one_kind_go_in_the_order_in_which_they_were_decided() {
    type Make = fn(usize) -> Request;
    let rows: [(&str, Make); 5] = [
        ("W1", |n| bind(&format!("{n}"), &format!("{n}"))),
        ("creations", |n| create(&format!("{n}"))),
        ("changes", |n| delete(&format!("{n}"))),
        ("statuses", |n| status(&format!("{n}"), Phase::Pending)),
        ("statuses and deletions of claims", |n| match n % 2 {
            0 => status(&format!("{n}"), Phase::Pending),
            _ => Request::DeleteClaim(claim(&format!("{n}"))),
        }),
    ];
    for (kind, request) in rows {
        let mut queue = RequestQueue::default();
        push(&mut queue, FIRST, 40, request);
        let mut went = Vec::new();
        while let Some(sent) = queue.take_next() {
            queue.answered(&sent);
            went.push(line(&sent.request));
        }
        let expected: Vec<_> = (0..40).map(|n| line(&request(n))).collect();
        assert_eq!(went, expected, "{kind}");
    }
}

#[test]
fn an_answered_request_lets_one_more_be_sent() {
    let mut queue = RequestQueue::default();
    push_bindings(&mut queue, FIRST, 40);
    let sent = send(&mut queue);
    assert_eq!(sent.len(), 32);
    for (answered, next) in sent.iter().zip(32..40) {
        assert!(queue.take_next().is_none());
        queue.answered(answered);
        assert_eq!(lines(&send(&mut queue)), [format!("bind pod-{next}")]);
    }
}

#[test]
fn cancelled_requests_are_returned_and_never_sent_and_the_others_keep_their_order() {
    let mut queue = RequestQueue::default();
    push_bindings(&mut queue, FIRST, 36);
    push_bindings(&mut queue, RETRY, 34);
    let sent = send(&mut queue);
    assert_eq!(sent.len(), 64);
    let is_obsolete = |request: &Request| ["bind pod-0", "bind pod-33"].contains(&line(request).as_str());
    let cancelled: Vec<_> = queue.cancel(is_obsolete).iter().map(line).collect();
    assert_eq!(
        cancelled,
        ["bind pod-33", "bind pod-33"],
        "a request that is in flight is not cancelled"
    );
    sent.iter().for_each(|sent| queue.answered(sent));
    assert_eq!(
        lines(&send(&mut queue)),
        ["bind pod-32", "bind pod-34", "bind pod-35", "bind pod-32"]
    );
}

#[test]
fn at_a_stop_only_the_publications_of_bound_claims_are_still_sent() {
    let mut queue = RequestQueue::default();
    for is_retry in [FIRST, RETRY] {
        for request in [bind("pod", "run"), publish("run"), create("pod"), delete("pod")] {
            queue.push(request, is_retry);
        }
    }
    queue.push(status("waits", Phase::Pending), FIRST);
    queue.push(read("pod"), FIRST);
    queue.keep_publications();
    assert_eq!(lines(&send(&mut queue)), ["publish run", "publish run"]);
}
