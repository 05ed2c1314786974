//! Checks which requests of a claim's plan are sent, and which wait for a live read or an answer.

use crate::world::World;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use smol_str::SmolStr;
use warmpool::api::claim::Phase;
use warmpool::api::labels;
use warmpool::cache::snapshot::{ClaimSnapshot, SandboxRead};
use warmpool::model::failure::{Class, Failure};
use warmpool::model::retry::{ObjectWrite, Purpose, Stage};
use warmpool::model::sandbox::Owner;
use warmpool::planner::claim::{plan, requests};

/// Resource version of every claim in these worlds.
const VERSION: &str = "1";

/// The requests to be sent as short lines, such as `release a`.
fn sent(snapshot: &ClaimSnapshot) -> Vec<String> {
    let requests = requests(snapshot, plan(snapshot));
    let status = requests.status.iter();
    let status = status.map(|status| format!("write {:?}", status.phase.unwrap()));
    let mut lines: Vec<String> = status.collect();
    lines.extend(requests.delete.then(|| "delete the claim".into()));
    lines.extend(requests.read_claim.then(|| "read the claim".into()));
    lines.extend(
        requests
            .to_release
            .iter()
            .map(|sandbox| format!("to decide on {}", sandbox.uid)),
    );
    lines.extend(
        requests
            .release
            .iter()
            .map(|sandbox| format!("release {}", sandbox.uid)),
    );
    lines.extend(requests.read_pods.iter().map(|pod| format!("read {}", pod.uid)));
    lines
}

/// When time alone changes what may be sent.
fn next(snapshot: &ClaimSnapshot) -> Option<Timestamp> {
    requests(snapshot, plan(snapshot)).next
}

/// A claim bound to a published sandbox that also holds sandboxes with these UIDs, which its status does not list.
pub fn with_unlisted(uids: &[&str]) -> World {
    let mut world = World::full(1, json!({}));
    world.claim("one", json!({"onSandboxLost": "Replace"})).step();
    let (claim, revision) = (world.claims["one"].uid.clone(), world.update());
    for uid in uids {
        world.sandbox(uid, &revision, |sandbox| {
            sandbox.uid = (*uid).into();
            sandbox.state = labels::CLAIMED.into();
            sandbox.owner = Owner::Claim {
                name: "one".into(),
                uid: claim.clone(),
            };
        });
    }
    world
}

fn version_of(world: &World, sandbox: &str) -> SmolStr {
    world.sandboxes[sandbox].resource_version.clone()
}

/// A read of this version of the claim did not list a sandbox of that version.
fn unlisted(claim: &str, sandbox: &str) -> SandboxRead {
    SandboxRead::Unlisted {
        claim: claim.into(),
        sandbox: sandbox.into(),
    }
}

#[test]
fn a_claim_is_read_before_a_sandbox_that_it_does_not_list_is_released() {
    let world = with_unlisted(&["a"]);
    let later = world.now + SignedDuration::from_secs(5);
    let read = vec!["read the claim", "to decide on a"];
    let seen = version_of(&world, "a");
    let rows = [
        (None, read.clone(), None),
        (Some(SandboxRead::ClaimSent(seen.clone())), vec![], None),
        (Some(SandboxRead::Again(later)), vec![], Some(later)),
        (Some(SandboxRead::Again(world.now)), read.clone(), None),
        (Some(unlisted(VERSION, &seen)), vec!["release a"], None),
        // The status may list the sandbox since.
        (Some(unlisted("0", &seen)), read.clone(), None),
        // The sandbox may have been chosen as a replacement since.
        (Some(unlisted(VERSION, "0")), read, None),
    ];
    for (known, expected, due) in rows {
        let mut snapshot = world.claim_snapshot("one");
        let row = format!("{known:?}");
        snapshot
            .reads
            .extend(known.map(|read| (SmolStr::from("a"), read)));
        assert_eq!(sent(&snapshot), expected, "I2: {row}");
        assert_eq!(next(&snapshot), due, "{row}");
    }
}

#[test]
fn a_read_that_is_under_way_does_not_decide_on_a_sandbox_that_came_later() {
    let world = with_unlisted(&["a", "b"]);
    let seen = version_of(&world, "a");
    let rows = [
        (None, vec!["read the claim", "to decide on a", "to decide on b"]),
        (Some(SandboxRead::ClaimSent(seen.clone())), vec![]),
        (
            Some(unlisted(VERSION, &seen)),
            vec!["read the claim", "to decide on b", "release a"],
        ),
    ];
    for (of_a, expected) in rows {
        let mut snapshot = world.claim_snapshot("one");
        let row = format!("{of_a:?}");
        snapshot.reads.extend(of_a.map(|read| (SmolStr::from("a"), read)));
        assert_eq!(sent(&snapshot), expected, "I2: {row}");
    }
    let mut snapshot = world.claim_snapshot("one");
    snapshot.write = Some(failed_write(Class::Conflict, world.now, Stage::Reading));
    assert!(
        sent(&snapshot).is_empty(),
        "the claim is being read because a write met a conflict"
    );
}

#[test]
fn no_sandbox_is_released_while_a_status_that_may_list_it_is_being_written() {
    let world = with_unlisted(&["a"]);
    for known in [None, Some(unlisted(VERSION, &version_of(&world, "a")))] {
        let mut snapshot = world.claim_snapshot("one");
        snapshot.write = Some(ObjectWrite::sent(None, VERSION, Purpose::Publish));
        let row = format!("{known:?}");
        snapshot
            .reads
            .extend(known.map(|read| (SmolStr::from("a"), read)));
        assert!(sent(&snapshot).is_empty(), "I2: {row}");
    }
}

#[test]
fn a_claim_that_has_ended_releases_what_it_may_not_keep_without_a_read() {
    for phase in [Phase::Failed, Phase::Expired] {
        let mut world = with_unlisted(&["a"]);
        world.claims.get_mut("one").unwrap().status.phase = Some(phase);
        let sent = sent(&world.claim_snapshot("one"));
        assert!(sent.contains(&"release a".into()), "{phase:?} {sent:?}");
        assert!(!sent.contains(&"read the claim".into()), "{phase:?} {sent:?}");
    }
}

#[test]
fn a_live_read_confirms_each_loss_before_the_status_says_so() {
    let mut world = World::full(2, json!({}));
    world.claim("one", json!({"replicas": 2})).step();
    let uids: Vec<_> = world.claims["one"]
        .status
        .sandboxes
        .iter()
        .map(|sandbox| SmolStr::from(&sandbox.uid))
        .collect();
    let [a, b] = &uids[..] else { panic!("{uids:?}") };
    world.sandboxes.retain(|_, sandbox| !uids.contains(&sandbox.uid));
    let (now, later) = (world.now, world.now + SignedDuration::from_secs(5));
    let (read_a, read_b) = (format!("read {a}"), format!("read {b}"));
    use SandboxRead::{Again, Lost, PodSent};
    let rows = [
        ([None, None], vec![read_a, read_b.clone()], None),
        ([Some(PodSent), Some(PodSent)], vec![], None),
        ([Some(Lost), Some(PodSent)], vec![], None),
        ([Some(Lost), None], vec![read_b.clone()], None),
        ([Some(Lost), Some(Again(later))], vec![], Some(later)),
        ([Some(Lost), Some(Again(now))], vec![read_b], None),
        ([Some(Lost), Some(Lost)], vec!["write Failed".into()], None),
    ];
    for (reads, expected, due) in rows {
        let mut snapshot = world.claim_snapshot("one");
        let row = format!("{reads:?}");
        let known = uids.iter().cloned().zip(reads);
        snapshot.reads = known.filter_map(|(uid, read)| Some((uid, read?))).collect();
        assert_eq!(sent(&snapshot), expected, "{row}");
        assert_eq!(next(&snapshot), due, "{row}");
    }
    let mut snapshot = world.claim_snapshot("one");
    snapshot.write = Some(ObjectWrite::sent(None, VERSION, Purpose::Report));
    assert!(sent(&snapshot).is_empty(), "another write is under way");
}

/// A write on the claim that failed at `at`, somebody waits for, and has come as far as `stage`.
fn failed_write(class: Class, at: Timestamp, stage: Stage) -> ObjectWrite {
    let mut write = ObjectWrite::sent(None, VERSION, Purpose::Publish);
    let message = String::new();
    write.failed(Failure { class, message }, at);
    write.stage = stage;
    write
}

/// What a claim sends whose plan is `planned`, for each state of the last write on it.
fn check_one_write_at_a_time(world: &World, planned: &str) {
    let now = world.now;
    let (soon, later) = (
        now + SignedDuration::from_millis(100),
        now + SignedDuration::from_secs(5),
    );
    let ago = |due: Timestamp| now - due.duration_since(now);
    let failed = |class, at| failed_write(class, at, Stage::Failed);
    let on = |version: &str, write| ObjectWrite {
        version: version.into(),
        ..write
    };
    let read = |version| on(version, failed_write(Class::Conflict, now, Stage::Read));
    let rows = [
        ("no write", None, vec![planned], None),
        (
            "in flight",
            Some(ObjectWrite::sent(None, VERSION, Purpose::Publish)),
            vec![],
            None,
        ),
        (
            "in flight again",
            Some(failed_write(Class::Unknown, now, Stage::Sent)),
            vec![],
            None,
        ),
        (
            "answer lost",
            Some(failed(Class::Unknown, now)),
            vec![],
            Some(soon),
        ),
        (
            "due again",
            Some(failed(Class::Unknown, ago(soon))),
            vec![planned],
            None,
        ),
        (
            "rejected",
            Some(failed(Class::Rejected, now)),
            vec![],
            Some(later),
        ),
        (
            "due after a rejection",
            Some(failed(Class::Rejected, ago(later))),
            vec![planned],
            None,
        ),
        (
            "conflict",
            Some(failed(Class::Conflict, now)),
            vec!["read the claim"],
            None,
        ),
        (
            "change seen",
            Some(on("0", failed(Class::Conflict, now))),
            vec![planned],
            None,
        ),
        (
            "being read",
            Some(failed_write(Class::Conflict, now, Stage::Reading)),
            vec![],
            None,
        ),
        ("read, no change", Some(read(VERSION)), vec![], Some(later)),
        ("read, changed", Some(read("0")), vec![planned], None),
    ];
    for (row, write, expected, due) in rows {
        let mut snapshot = world.claim_snapshot("one");
        snapshot.write = write;
        assert_eq!(sent(&snapshot), expected, "{row}");
        assert_eq!(next(&snapshot), due, "{row}");
    }
}

#[test]
fn a_status_is_written_when_no_other_write_on_the_claim_is_under_way() {
    let mut world = with_unlisted(&["a"]);
    world.claims.get_mut("one").unwrap().status = Default::default();
    check_one_write_at_a_time(&world, "write Bound");
}

#[test]
fn a_claim_is_deleted_when_no_other_write_on_it_is_under_way() {
    let mut world = World::new(0, json!({}));
    world.claim("one", json!({"ttlSecondsAfterFinished": 1}));
    let claim = world.claims.get_mut("one").unwrap();
    claim.status.phase = Some(Phase::Failed);
    claim.status.finish_time = Some(Time(world.now - SignedDuration::from_secs(2)));
    check_one_write_at_a_time(&world, "delete the claim");
}
