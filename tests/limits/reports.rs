//! Checks which statuses of claims are queued, decided by the controller of claims on an index.

use crate::requests::{FIRST, NOW, line, lines, push_bindings, send, stored_claim, stored_claim_in};
use jiff::SignedDuration;
use serde_json::json;
use std::collections::VecDeque;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::request_limits::{IN_FLIGHT, Sent};
use warmpool::cache::stale_answers::WatchProgress;
use warmpool::controllers::claim::decide;
use warmpool::model::Key;
use warmpool::model::failure::{Class, Failure};
use warmpool::model::request::{Answer, Outcome, Request};
use warmpool::model::stored::StoredClaim;

#[test]
fn a_publication_that_failed_does_not_keep_a_binding_from_its_first_try() {
    let (mut index, run) = (Index::default(), Key::new("default", "run"));
    index.apply_claim(&stored_claim("run"), true, NOW);
    let bound = json!({
        "metadata": {
            "namespace": "default", "name": "pod", "uid": "pod", "resourceVersion": "1",
            "labels": {"warmpool.dev/pool": "python", "warmpool.dev/state": "claimed"},
            "ownerReferences": [{
                "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "name": "run", "uid": "default-run",
                "controller": true,
            }],
        },
        "status": {"phase": "Running"},
    });
    index.apply_pod(&serde_json::from_value(bound).unwrap());
    decide(&mut index, &run, NOW);
    let [first] = send(&mut index.requests).try_into().unwrap();
    assert_eq!(line(&first.request), "publish run");
    let lost = Err(failure(Class::Unknown));
    index.requests.answered(&first);
    index.take_over(&first.request, lost, WatchProgress::default(), NOW);
    decide(&mut index, &run, NOW + SignedDuration::from_millis(100));
    push_bindings(&mut index.requests, FIRST, IN_FLIGHT + 1);
    let sent = lines(&send(&mut index.requests));
    assert!(sent.contains(&"publish run".into()), "{sent:?}");
    assert_eq!(sent.len(), IN_FLIGHT + 1);
}

/// A world in which so many claims name a pool that does not exist.
fn claims_without_a_pool(count: usize) -> (Index, Vec<Key>) {
    let mut index = Index::default();
    let names = (0..count).map(|n| format!("run-{n:03}"));
    let claims = names.map(|name| {
        index.apply_claim(&stored_claim(&name), true, NOW);
        Key::new("default", name)
    });
    let claims = claims.collect();
    (index, claims)
}

/// The moment at which a claim that waits says so.
const LATER: SignedDuration = SignedDuration::from_secs(1);

/// Reconciles every claim of `due`, and those that follow from it.
fn reconcile_claims(index: &mut Index, due: Vec<ReconcileRequest>) {
    let mut due = VecDeque::from(due);
    while let Some(object) = due.pop_front() {
        if let ReconcileRequest::Claim(claim) = object
            // The controller reconciles no claim that is gone.
            && index.knows_claim(&stored_claim_in(&claim.namespace, &claim.name))
        {
            due.extend(decide(index, &claim, NOW + LATER).to_reconcile);
        }
    }
}

/// Sends what may be sent, answers the first and reconciles what follows, until nothing is left. Returns what was sent.
fn send_and_answer_all(index: &mut Index) -> Vec<String> {
    let (mut in_flight, mut went) = (VecDeque::new(), Vec::new());
    loop {
        in_flight.extend(send(&mut index.requests));
        let Some(sent) = in_flight.pop_front() else {
            return went;
        };
        went.push(line(&sent.request));
        let written = Answer::Claim(Box::new(written(&sent.request)));
        answer(index, &sent, Ok(written));
    }
}

fn answer(index: &mut Index, sent: &Sent, outcome: Outcome) {
    index.requests.answered(sent);
    let due = index.take_over(&sent.request, outcome, WatchProgress::default(), NOW + LATER);
    reconcile_claims(index, due);
}

fn failure(class: Class) -> Failure {
    Failure {
        class,
        message: String::new(),
    }
}

/// The claim that a write of its status leaves behind.
fn written(request: &Request) -> StoredClaim {
    let Request::WriteClaim(write) = request else {
        panic!("not a status: {request:?}");
    };
    let mut stored = stored_claim(&write.claim.key.name);
    stored.metadata.resource_version = Some("2".into());
    stored.status = serde_json::from_value(json!(write.status)).unwrap();
    stored
}

#[test]
fn a_thousand_claims_that_begin_to_wait_have_64_statuses_in_memory_and_all_are_written_in_order() {
    let (mut index, claims) = claims_without_a_pool(1000);
    let due = claims.iter().cloned().map(ReconcileRequest::Claim);
    reconcile_claims(&mut index, due.collect());
    let mut queued = index.requests.clone();
    let mut count = 0;
    while let Some(sent) = queued.take_next() {
        queued.answered(&sent);
        count += 1;
    }
    assert_eq!(count, 64);
    let expected: Vec<_> = claims
        .iter()
        .map(|claim| format!("publish {}", claim.name))
        .collect();
    assert_eq!(send_and_answer_all(&mut index), expected);
}

#[test]
fn claims_of_a_namespace_whose_statuses_are_not_answered_hold_up_no_status_of_another() {
    let (mut index, claims) = claims_without_a_pool(1000);
    let due = claims.into_iter().map(ReconcileRequest::Claim);
    reconcile_claims(&mut index, due.collect());
    assert_eq!(send(&mut index.requests).len(), 32);
    let other = stored_claim_in("other", "run");
    index.apply_claim(&other, true, NOW);
    reconcile_claims(
        &mut index,
        vec![ReconcileRequest::Claim(Key::new("other", "run"))],
    );
    let sent = send(&mut index.requests);
    let [Request::WriteClaim(write)] = sent.iter().map(|sent| &sent.request).collect::<Vec<_>>()[..] else {
        panic!("not one status: {:?}", lines(&sent));
    };
    assert_eq!(write.claim.key, Key::new("other", "run"));
}

#[test]
fn claims_that_go_before_or_while_their_status_is_written_hold_up_no_other() {
    let (mut index, claims) = claims_without_a_pool(200);
    let due = claims.iter().cloned().map(ReconcileRequest::Claim);
    reconcile_claims(&mut index, due.collect());
    let in_flight = send(&mut index.requests);
    for claim in claims.iter().take(128) {
        let due = index.delete_claim(&stored_claim(&claim.name));
        reconcile_claims(&mut index, due);
    }
    for sent in in_flight {
        answer(&mut index, &sent, Err(failure(Class::Gone)));
    }
    let went = send_and_answer_all(&mut index);
    for claim in claims.iter().skip(128) {
        assert!(went.contains(&format!("publish {}", claim.name)), "{went:?}");
    }
}
