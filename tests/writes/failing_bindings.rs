//! Writes that keep failing: which writes they delay, and when they end.

use crate::world::{Asked, Reply, World, owner, warm};
use serde_json::json;
use std::time::{Duration, Instant as StdInstant};
use warmpool::model::Key;

const TEN_MINUTES: Duration = Duration::from_secs(600);

/// More than there are request slots.
const MANY: usize = 40;

fn binds_in(asked: &Asked, namespace: &str) -> bool {
    asked.verb == "PATCH" && asked.resource == "pods" && asked.namespace == namespace
}

/// A world in whose namespace `sick` many bindings of one pool meet `reply`.
fn sick(reply: Reply) -> World {
    let mut world = sick_world(reply);
    world.pool("sick", "python", MANY);
    for n in 0..MANY {
        world.claim("sick", &format!("run-{n}"), "python", &json!({}));
    }
    world
}

/// A world in whose namespace `sick` the bindings of many pools are never answered.
fn many_sick_pools() -> World {
    let mut world = sick_world(Reply::Never);
    for n in 0..MANY {
        let pool = format!("python-{n}");
        world.pool("sick", &pool, 1);
        world.claim("sick", &format!("run-{n}"), &pool, &json!({}));
    }
    world
}

fn sick_world(reply: Reply) -> World {
    let rule = move |asked: &Asked| {
        if binds_in(asked, "sick") {
            reply.clone()
        } else {
            Reply::Done
        }
    };
    World::new(rule)
}

async fn another_namespace_is_served(world: &mut World) {
    world.pool("well", "python", 1);
    world.claim("well", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(world.bound("well"), ["run"], "{:#?}", world.tally());
}

#[tokio::test(start_paused = true)]
async fn failing_bindings_do_not_delay_other_namespaces() {
    for code in [429, 500, 503] {
        let mut world = sick(Reply::Code(code));
        world.run_for(Duration::from_secs(3)).await;
        another_namespace_is_served(&mut world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_bindings_of_one_pool_delay_no_other() {
    let mut world = sick(Reply::Never);
    world.run_for(Duration::from_secs(1)).await;
    another_namespace_is_served(&mut world).await;
}

#[tokio::test(start_paused = true)]
async fn unanswered_bindings_of_many_pools_delay_others_by_one_deadline_at_most() {
    let mut world = many_sick_pools();
    // Their first tries have come to their deadline.
    world.run_for(Duration::from_secs(16)).await;
    another_namespace_is_served(&mut world).await;
}

#[tokio::test(start_paused = true)]
async fn failing_deletions_do_not_delay_creations_in_other_namespaces() {
    let rule = |asked: &Asked| match (asked.verb.as_str(), asked.namespace.as_str()) {
        ("DELETE", "sick") => Reply::Code(503),
        _ => Reply::Done,
    };
    let mut world = World::new(rule);
    world.pool("sick", "python", MANY);
    world.pool_is_scaled("sick", "python", 0);
    world.run_for(Duration::from_secs(3)).await;
    world.pool("well", "python", 0);
    world.pool_is_scaled("well", "python", 1);
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(
        world.asked("well", "POST", "pods").len(),
        1,
        "{:#?}",
        world.tally()
    );
}

#[tokio::test(start_paused = true)]
async fn a_binding_ends_when_its_claim_is_deleted() {
    for (code, left) in [(503, "Answered"), (429, "")] {
        let mut world = World::new(move |asked| {
            if binds_in(asked, "sick") || asked.verb == "GET" {
                Reply::Code(code)
            } else {
                Reply::Done
            }
        });
        world.pool("sick", "python", 1);
        world.claim("sick", "run", "python", &json!({}));
        world.run_for(Duration::from_secs(40)).await;
        world.claim_goes("sick", "run");
        world.run_for(Duration::from_secs(40)).await;
        let tries = world.asked("sick", "PATCH", "pods").len();
        world.run_for(Duration::from_secs(600)).await;
        assert_eq!(world.asked("sick", "PATCH", "pods").len(), tries, "{code}");
        let pending = world.pending().join("; ");
        assert_eq!(pending.is_empty(), left.is_empty(), "{code}: {pending}");
        assert!(
            pending.contains(left),
            "a write that may have happened is confirmed by a live read: {pending}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_binding_fails_ends_at_its_deadline() {
    for (reply, late) in [(Reply::Code(500), 1), (Reply::Code(429), 1), (Reply::Never, 11)] {
        let case = format!("{reply:?}");
        let mut world = World::new(move |asked| match asked.verb.as_str() {
            "GET" => Reply::Object(warm("sick", "python", &asked.name)),
            _ if binds_in(asked, "sick") => reply.clone(),
            _ => Reply::Done,
        });
        world.pool("sick", "python", 1);
        world.claim("sick", "run", "python", &json!({"waitTimeoutSeconds": 20}));
        world.pass(20).await;
        let ended = world
            .phases("sick", "run")
            .iter()
            .any(|phase| phase.starts_with("Failed"));
        assert!(
            !ended,
            "{case}: the stored creation time lacks a fraction of a second"
        );
        world.pass(1 + late).await;
        let last = world.phases("sick", "run").pop();
        assert_eq!(last.as_deref(), Some("Failed WaitTimeout"), "{case}");
        assert_eq!(world.pending().len(), 0, "{case}: {:?}", world.pending());
    }
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_a_live_read_confirms_at_the_deadline_is_published() {
    let mut world = World::new(move |asked| match asked.verb.as_str() {
        "GET" => {
            let mut pod = warm("sick", "python", &asked.name);
            pod["metadata"]["resourceVersion"] = json!("2");
            pod["metadata"]["labels"]["warmpool.dev/state"] = json!("claimed");
            pod["metadata"]["ownerReferences"] = owner("SandboxClaim", "run", "uid-sick-run");
            Reply::Object(pod)
        }
        _ if binds_in(asked, "sick") => Reply::Code(500),
        _ => Reply::Done,
    });
    world.pool("sick", "python", 1);
    world.claim("sick", "run", "python", &json!({"waitTimeoutSeconds": 20}));
    world.pass(22).await;
    let last = world.phases("sick", "run").pop();
    assert_eq!(last.as_deref(), Some("Bound Bound"));
}

/// A world with one sandbox and the claim `run`, which waits for a minute. Its bindings meet `reply`.
fn fails_on(mut reply: impl FnMut() -> Reply + Send + 'static) -> World {
    let mut world = World::new(move |asked| match asked.verb.as_str() {
        "GET" => Reply::Object(warm("sick", "python", &asked.name)),
        _ if binds_in(asked, "sick") => reply(),
        _ => Reply::Done,
    });
    world.pool("sick", "python", 1);
    world.claim("sick", "run", "python", &json!({"waitTimeoutSeconds": 60}));
    world
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_binding_keeps_failing_reports_why() {
    for (code, at_once) in [(500, false), (429, true)] {
        let mut world = fails_on(move || Reply::Code(code));
        world.pass(1).await;
        assert_eq!(
            !world.phases("sick", "run").is_empty(),
            at_once,
            "{code}: that may be over in a moment, unless the API server asks for more"
        );
        world.pass(31).await;
        assert_eq!(world.phases("sick", "run"), ["Pending BindingRefused"]);
        world.claim_is_seen_as_written("sick", "run");
        world.pass(30).await;
        let ended = world.asked("sick", "PUT", "sandboxclaims/status").pop().unwrap();
        let said = &ended.body["status"]["conditions"][0];
        assert_eq!(said["reason"], "WaitTimeout");
        let answer = format!("answered with {code}");
        assert!(said["message"].as_str().unwrap().contains(&answer), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_binding_has_failed_says_so_no_longer_than_that_is_why_it_waits() {
    let mut tries = 0;
    let mut world = fails_on(move || {
        tries += 1;
        Reply::Code(if tries < 8 { 500 } else { 409 })
    });
    world.pass(10).await;
    world.claim_is_seen_as_written("sick", "run");
    world.pass(10).await;
    let phases = world.phases("sick", "run");
    assert_eq!(phases[..2], ["Pending BindingRefused", "Pending NoneAvailable"]);
}

#[tokio::test(start_paused = true)]
async fn a_longer_deadline_adds_no_tries() {
    let mut world = fails_on(|| Reply::Code(503));
    world.pass(50).await;
    world.claim("sick", "run", "python", &json!({"waitTimeoutSeconds": 600}));
    world.pass(15).await;
    let before = world.asked("sick", "PATCH", "pods").len();
    world.pass(60).await;
    let tried = world.asked("sick", "PATCH", "pods").len() - before;
    assert!((10..=13).contains(&tried), "{tried} tries in a minute");
}

#[tokio::test(start_paused = true)]
async fn live_reads_of_an_unreadable_pod_end_when_its_claim_is_deleted() {
    for unreadable in [503, 429] {
        let mut tries = 0;
        let mut world = World::new(move |asked| {
            if asked.verb == "GET" {
                return Reply::Code(unreadable);
            }
            tries += u16::from(binds_in(asked, "sick"));
            match tries {
                1 => Reply::Code(504),
                _ if binds_in(asked, "sick") => Reply::Code(403),
                _ => Reply::Done,
            }
        });
        world.pool("sick", "python", 1);
        world.claim("sick", "run", "python", &json!({}));
        world.run_for(Duration::from_secs(40)).await;
        world.claim_goes("sick", "run");
        world.run_for(Duration::from_secs(40)).await;
        let reads = world.asked("sick", "GET", "pods").len();
        assert!(reads > 0);
        world.run_for(Duration::from_secs(600)).await;
        assert_eq!(world.asked("sick", "GET", "pods").len(), reads, "{unreadable}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_deleted_while_its_binding_waits_for_a_slot_is_not_bound() {
    let mut world = many_sick_pools();
    world.run_for(Duration::from_secs(1)).await;
    world.pool("well", "python", 1);
    world.claim("well", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(5)).await;
    world.claim_goes("well", "run");
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(world.asked("well", "PATCH", "pods").len(), 0);
    let pending = world.pending().join("; ");
    assert!(!pending.contains("well"), "{pending}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_for_many_keeps_no_other_waiting() {
    let mut world = World::new(|asked| {
        if binds_in(asked, "sick") {
            Reply::Never
        } else {
            Reply::Done
        }
    });
    world.pool("sick", "python", MANY);
    world.claim("sick", "batch", "python", &json!({"replicas": MANY}));
    world.run_for(Duration::from_secs(1)).await;
    another_namespace_is_served(&mut world).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_in_retry_is_not_planned_again() {
    for verb in ["DELETE", "PATCH"] {
        let fails = move |asked: &Asked| asked.resource == "pods" && asked.verb == verb;
        let mut world = World::new(move |asked| match fails(asked) {
            true => Reply::Code(500),
            false => Reply::Done,
        });
        world.pool("default", "python", 1);
        match verb {
            "DELETE" => world.pool_is_scaled("default", "python", 0),
            _ => world.claim("default", "run", "python", &json!({})),
        }
        world.run_for(Duration::from_secs(30)).await;
        let noted = world.pending();
        let late = StdInstant::now() + TEN_MINUTES;
        let pod = Key::new("default", "python-0");
        let mut index = world.context.shared.lock();
        assert_eq!(
            index.expectations.overdue(late),
            [],
            "it is tried, however long that takes"
        );
        index.expectations.read(&pod, None);
        drop(index);
        assert_eq!(
            world.pending(),
            noted,
            "a live read during the retry proves nothing"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn statuses_that_are_too_large_to_be_stored_keep_no_other_claim_of_the_pool_waiting() {
    let mut world = World::new(|asked| {
        if asked.resource == "sandboxclaims/status" && asked.name.starts_with("large") {
            Reply::Fails("etcdserver: request is too large")
        } else {
            Reply::Done
        }
    });
    world.pool("default", "python", MANY);
    for n in 0..MANY - 1 {
        world.claim("default", &format!("large-{n}"), "python", &json!({}));
    }
    world.run_for(Duration::from_secs(1)).await;
    world.claim("default", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(
        world
            .bound("default")
            .iter()
            .filter(|name| *name == "run")
            .count(),
        1
    );
}
