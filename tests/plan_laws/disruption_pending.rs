//! Checks what a claim says and does when the node of its sandbox has to go.

use crate::lifetimes::{bound, expires, later, lose, phase};
use crate::world::World;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use warmpool::api::claim::Phase;
use warmpool::api::conditions::find;
use warmpool::model::disruption_mark::DisruptionMark;
use warmpool::model::sandbox::PodPhase;
use warmpool::planner::claim::{ClaimPlan, plan};

/// A bound claim whose sandbox is on a node that stays, and the node.
fn on_a_node(claim: Value, defaults: Value) -> (World, String) {
    let mut world = bound(claim, defaults);
    let node = world.bound_to("run").unwrap().node.clone().unwrap().to_string();
    world.open(&node);
    world.reconcile_claim("run");
    (world, node)
}

fn planned(world: &World) -> ClaimPlan {
    plan(&world.claim_snapshot("run"))
}

/// Reason and message of the condition `DisruptionPending`, once the status is written.
fn said(world: &mut World) -> Option<(String, String)> {
    world.reconcile_claim("run");
    assert_eq!(planned(world).status, None, "the status is written once");
    let conditions = &world.claims["run"].status.conditions;
    let said = find(conditions, "DisruptionPending")?;
    assert_eq!(said.status, "True");
    Some((said.reason.clone(), said.message.clone()))
}

/// The mark that is to be written, which is then on the pod.
fn write_mark(world: &mut World) -> Option<DisruptionMark> {
    let (sandbox, mark) = planned(world).marks.pop()?;
    let stored = world.sandboxes.get_mut(&sandbox.key.name).unwrap();
    stored.disruption_deadline = mark.deadline;
    stored.allows_disruption = mark.allowed;
    Some(mark)
}

fn in_seconds(world: &World, seconds: i64) -> Timestamp {
    world.now + SignedDuration::from_secs(seconds)
}

#[test]
fn a_claim_says_that_its_node_has_to_go_and_until_when_its_sandbox_stays() {
    let rows = [
        (
            json!({}),
            "; disruption is Block, so nothing evicts it; delete the claim to let it go",
        ),
        (
            json!({"lifetimeSeconds": 3600}),
            "; disruption is Block, so nothing evicts it before the claim expires at END; delete the claim to let it go",
        ),
        (
            json!({"disruption": "Allow"}),
            "; disruption is Allow, so it may be evicted at any time",
        ),
        (
            json!({"disruption": "Notify"}),
            "; disruption is Notify, so it may be evicted in disruptionGracePeriodSeconds (300)",
        ),
    ];
    for (claim, end) in rows {
        let (mut world, node) = on_a_node(claim.clone(), json!({}));
        assert_eq!(said(&mut world), None, "{claim}");
        world.cordon(&node);
        let (reason, message) = said(&mut world).unwrap();
        assert_eq!(reason, "NodeCordoned", "{claim}");
        let why = format!("cannot stay on node {node}: its node is cordoned");
        assert!(message.contains(&why), "{message}");
        let end = end.replace(
            "END",
            &expires(&world).map_or_else(String::new, |end| end.to_string()),
        );
        assert!(message.ends_with(&end), "{message}");
        world.open(&node);
        assert_eq!(said(&mut world), None, "{claim}");
    }
}

#[test]
fn the_label_that_asks_for_a_replacement_says_nothing_of_a_claimed_sandbox() {
    let (mut world, _) = on_a_node(json!({"disruption": "Notify"}), json!({}));
    let name = world.bound_to("run").unwrap().key.name.clone();
    world.sandboxes.get_mut(&name).unwrap().evict = true;
    assert_eq!(said(&mut world), None);
    assert_eq!(write_mark(&mut world), None);
}

#[test]
fn a_grace_is_never_shorter_than_promised() {
    let claim = json!({"disruption": "Notify", "disruptionGracePeriodSeconds": 1});
    let (mut world, node) = on_a_node(claim, json!({}));
    world.now += SignedDuration::from_millis(990);
    world.cordon(&node);
    let end = write_mark(&mut world).and_then(|mark| mark.deadline).unwrap();
    assert!(end >= in_seconds(&world, 1), "{end} is the end at {}", world.now);
}

#[test]
fn a_notified_claim_keeps_its_sandbox_for_its_grace_and_then_lets_it_go() {
    let claim = json!({"disruption": "Notify", "disruptionGracePeriodSeconds": 60});
    let (mut world, node) = on_a_node(claim, json!({}));
    assert_eq!(write_mark(&mut world), None, "nothing is written before");
    world.cordon(&node);
    let end = in_seconds(&world, 60);
    let deadline = Some(end);
    let notified = DisruptionMark {
        deadline,
        allowed: false,
    };
    assert_eq!(write_mark(&mut world), Some(notified));
    let (_, message) = said(&mut world).unwrap();
    let end = format!("it may be evicted from {end} on");
    assert!(message.ends_with(&end), "{message}");
    for seconds in [0, 59] {
        later(&mut world, seconds);
        assert_eq!(write_mark(&mut world), None, "one write says it");
        assert_eq!(planned(&world).next, deadline);
    }
    later(&mut world, 1);
    let allowed = DisruptionMark {
        deadline,
        allowed: true,
    };
    assert_eq!(write_mark(&mut world), Some(allowed));
    assert_eq!(write_mark(&mut world), None);
    // A node that stays after all takes both back.
    world.open(&node);
    assert_eq!(write_mark(&mut world), Some(DisruptionMark::default()));
    assert_eq!(write_mark(&mut world), None);
}

#[test]
fn claims_that_block_or_allow_write_no_mark() {
    for claim in [
        json!({}),
        json!({"disruption": "Block"}),
        json!({"disruption": "Allow"}),
    ] {
        let (mut world, node) = on_a_node(claim.clone(), json!({}));
        world.cordon(&node);
        assert_eq!(write_mark(&mut world), None, "{claim}");
    }
}

#[test]
fn the_grace_of_the_pool_counts_as_it_was_when_the_claim_was_bound() {
    let defaults = json!({"disruption": "Notify", "disruptionGracePeriodSeconds": 10});
    let (mut world, node) = on_a_node(json!({}), defaults);
    world.set(json!({"claimDefaults": {"disruption": "Block", "disruptionGracePeriodSeconds": 1000}}));
    world.cordon(&node);
    let deadline = Some(in_seconds(&world, 10));
    assert_eq!(write_mark(&mut world).and_then(|mark| mark.deadline), deadline);
}

/// A bound claim with these fields, what happens to it then, and its phase after that.
type End = (&'static str, fn(&mut World), Phase);

/// Claims that are bound no more and have a sandbox.
const BOUND_NO_MORE: [End; 3] = [
    (
        r#"{"lifetimeSeconds": 60, "releasePolicy": "Retain"}"#,
        |world| later(world, 3600),
        Phase::Expired,
    ),
    (r#"{"replicas": 2}"#, |world| lose(world, "gone"), Phase::Failed),
    (
        r#"{"replicas": 2, "onSandboxLost": "Replace"}"#,
        |world| lose(world, "gone"),
        Phase::Pending,
    ),
];

/// The claim of such a row with these fields too, and the node of the sandbox that it has.
fn bound_no_more((fields, end, phase): End, more: Value) -> (World, String) {
    let mut fields = serde_json::from_str(fields).unwrap();
    json_patch::merge(&mut fields, &more);
    let mut world = bound(fields, json!({}));
    end(&mut world);
    world.reconcile_claim("run");
    assert_eq!(self::phase(&world), phase);
    let [kept] = &world.claim_snapshot("run").sandboxes[..] else {
        panic!("not one sandbox");
    };
    let node = kept.node.clone().unwrap().to_string();
    world.open(&node);
    (world, node)
}

#[test]
fn a_grace_ends_also_for_what_a_claim_keeps_that_is_bound_no_more() {
    for row in BOUND_NO_MORE {
        let what = format!("{} that is {:?}", row.0, row.2);
        let notify = json!({"disruption": "Notify", "disruptionGracePeriodSeconds": 60});
        let (mut world, node) = bound_no_more(row, notify);
        assert_eq!(write_mark(&mut world), None, "{what}");
        world.cordon(&node);
        let deadline = Some(in_seconds(&world, 60));
        let notified = DisruptionMark {
            deadline,
            allowed: false,
        };
        assert_eq!(
            write_mark(&mut world),
            Some(notified),
            "I8: a drain waits forever for {what}"
        );
        let (_, message) = said(&mut world).unwrap();
        assert!(message.contains("it may be evicted from"), "{what}: {message}");
        assert!(
            planned(&world).next.is_some_and(|next| Some(next) <= deadline),
            "{what}"
        );
        later(&mut world, 60);
        let allowed = DisruptionMark {
            deadline,
            allowed: true,
        };
        assert_eq!(write_mark(&mut world), Some(allowed), "{what}");
        world.open(&node);
        assert_eq!(write_mark(&mut world), Some(DisruptionMark::default()), "{what}");
        assert_eq!(said(&mut world), None, "{what}");
    }
}

#[test]
fn a_claim_that_blocks_says_until_when_also_when_it_has_ended() {
    let delete = "delete the claim to let it go";
    for row in BOUND_NO_MORE {
        let (mut world, node) = bound_no_more(row, json!({}));
        world.cordon(&node);
        let (_, message) = said(&mut world).unwrap();
        let end = format!("disruption is Block, so nothing evicts it; {delete}");
        assert!(message.ends_with(&end), "{:?}: {message}", row.2);
    }
    let (mut world, node) = bound_no_more(BOUND_NO_MORE[1], json!({"ttlSecondsAfterFinished": 600}));
    world.cordon(&node);
    let (_, message) = said(&mut world).unwrap();
    let end = in_seconds(&world, 601);
    let end = format!("nothing evicts it before the claim is deleted at {end}; {delete}");
    assert!(message.ends_with(&end), "{message}");
}

#[test]
fn a_sandbox_that_has_ended_or_is_let_go_is_not_said_to_stay() {
    let (mut world, node) = on_a_node(json!({"disruption": "Notify"}), json!({}));
    let name = world.bound_to("run").unwrap().key.name.clone();
    world.sandboxes.get_mut(&name).unwrap().phase = PodPhase::Succeeded;
    world.cordon(&node);
    assert_eq!(said(&mut world), None);
    assert_eq!(write_mark(&mut world), None);
    let (mut world, node) = on_a_node(json!({"disruption": "Notify", "lifetimeSeconds": 60}), json!({}));
    world.cordon(&node);
    assert!(said(&mut world).is_some());
    later(&mut world, 3600);
    world.reconcile_claim("run");
    assert_eq!(said(&mut world), None, "an expired claim deletes what it had");
}
