//! The shutdown of the operator waits for requests in flight and the publications that follow, and for nothing else.

use crate::world::{Asked, Reply, World, owner, warm};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use warmpool::controllers::context::Context;
use warmpool::controllers::leader_election::Term;
use warmpool::controllers::shutdown::finish;

/// A stop that waits for nothing takes less.
const AT_ONCE: Duration = Duration::from_millis(100);

/// A world with a pool of one sandbox and a claim for it. Every request for a pod is answered with `reply`.
fn answering(reply: Reply) -> World {
    let mut world = World::new(move |asked: &Asked| match asked.resource.as_str() {
        "pods" => reply.clone(),
        _ => Reply::Done,
    });
    world.pool("default", "python", 1);
    world.claim("default", "run", "python", &json!({}));
    world
}

async fn stops_in(mut world: World) -> Duration {
    world.run_for(Duration::from_secs(1)).await;
    let start = Instant::now();
    finish(&world.context, &watch::channel(Term::Unlimited).1).await;
    start.elapsed()
}

/// A claim that holds the sandbox that it waits for: an earlier operator bound it. Nothing was planned since.
fn bound_before(spec: &Value) -> World {
    let mut world = World::new(|_| Reply::Done);
    world.pool("default", "python", 0);
    _ = world.claim_arrives("default", "run", "python", spec);
    let mut pod = warm("default", "python", "python-0");
    let labels = pod["metadata"]["labels"].as_object_mut().unwrap();
    labels.insert("warmpool.dev/state".into(), json!("claimed"));
    labels.insert("warmpool.dev/claim".into(), json!("run"));
    labels.insert("warmpool.dev/claim-uid".into(), json!("uid-default-run"));
    pod["metadata"]["ownerReferences"] = owner("SandboxClaim", "run", "uid-default-run");
    let pod = serde_json::from_value(pod).unwrap();
    _ = world.context.shared.lock().apply_pod(&pod);
    world
}

/// How long an operator with this term takes to stop, and which claims it has published by then. The controllers run
/// meanwhile if it leads.
async fn stops_while_running(mut world: World, term: Term) -> (Duration, Vec<String>) {
    let context = Context {
        shared: world.context.shared.clone(),
        executor: world.context.executor.clone(),
    };
    let leads = term.runs();
    let (_sender, term) = watch::channel(term);
    let start = Instant::now();
    let stop = async {
        finish(&context, &term).await;
        start.elapsed()
    };
    let run = async {
        if leads {
            world.reconcile_all();
            world.pass(20).await;
        } else {
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
    };
    let took = tokio::select! {
        biased;
        took = stop => took,
        () = run => start.elapsed(),
    };
    (took, world.bound("default"))
}

#[tokio::test(start_paused = true)]
async fn a_leader_publishes_the_claims_that_are_bound_before_it_ends() {
    let (took, published) = stops_while_running(bound_before(&json!({})), Term::Unlimited).await;
    assert_eq!(
        published,
        ["run"],
        "I8: it ended after {took:?} and left the claim"
    );
    assert!(took < AT_ONCE, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_standby_ends_at_once_whatever_claims_the_leader_has_not_published() {
    let (took, _) = stops_while_running(bound_before(&json!({})), Term::None).await;
    assert!(took < AT_ONCE, "I8: a standby waited for {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_does_not_wait_for_a_claim_that_is_to_end_before_it_is_published() {
    let over = json!({"shutdownTime": "2025-12-31T23:59:59Z"});
    let (took, published) = stops_while_running(bound_before(&over), Term::Unlimited).await;
    assert_eq!(published, Vec::<String>::new());
    assert!(
        took < AT_ONCE,
        "I8: a leader waited for {took:?} for what it does not send"
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_again_and_again_holds_up_no_stop() {
    let took = stops_in(answering(Reply::Code(500))).await;
    assert!(took < Duration::from_millis(100), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_on_the_wire_is_waited_for_and_not_sent_again() {
    let took = stops_in(answering(Reply::Never)).await;
    assert!(
        took > Duration::from_secs(5) && took < Duration::from_secs(16),
        "{took:?}"
    );
}
