//! Checks what drains, cordons and taints do to a pool (I6).

use crate::world::{World, lines};
use jiff::SignedDuration;
use serde_json::{Value, json};
use warmpool::api::claim::Phase;
use warmpool::api::conditions::find;
use warmpool::model::known_nodes::NodeAccess;
use warmpool::model::sandbox::{PodPhase, Sandbox};
use warmpool::model::scheduling::Scheduling;
use warmpool::model::toleration::{StoredToleration, Tolerations};
use warmpool::planner::PlanPhase;

/// A full pool on two nodes.
pub fn on_two_nodes(replicas: usize, fields: Value) -> World {
    let mut world = World::new(replicas, fields);
    world.open("node-1").open("node-2");
    world.converge();
    world
}

/// Lets seconds pass until nothing is left on `node`. Returns the least that was available meanwhile.
fn drain(world: &mut World, node: &str) -> usize {
    let mut least = world.available();
    for _ in 0..100 {
        world.step();
        least = least.min(world.available());
        if world.on_node(node) == 0 {
            return least;
        }
        world.pass_second(|_| true);
    }
    panic!(
        "{} stay on {node}: {:?}",
        world.on_node(node),
        world.plan().actions
    );
}

pub fn evictions(world: &World) -> Vec<String> {
    lines(&world.plan(), PlanPhase::Eviction)
}

pub fn said(world: &World) -> String {
    let status = world.plan().status;
    find(&status.conditions, "Available").unwrap().message.clone()
}

fn later(world: &mut World, seconds: i64) {
    world.now = world.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
}

fn tolerations(stored: Value) -> Tolerations {
    let stored: Vec<StoredToleration> = serde_json::from_value(stored).unwrap();
    Tolerations::read(&stored)
}

/// The only or first sandbox.
pub fn only(world: &mut World) -> &mut Sandbox {
    world.sandboxes.values_mut().next().unwrap()
}

#[test]
fn a_pool_of_one_keeps_one_available_while_its_node_is_drained() {
    for update in [
        json!({}),
        json!({"maxUnavailable": 0, "maxSurge": 1}),
        json!({"maxUnavailable": 1}),
    ] {
        let mut world = on_two_nodes(1, json!({"updateStrategy": update}));
        let node = only(&mut world).node.clone().unwrap();
        world.cordon(&node);
        assert_eq!(drain(&mut world, &node), 1, "{update}");
        world.converge();
        assert_eq!(world.unclaimed().count(), 1, "{update}");
    }
}

#[test]
fn no_available_sandbox_of_a_drained_node_goes_before_its_replacement_is_available() {
    let mut world = on_two_nodes(10, json!({"updateStrategy": {"maxUnavailable": "30%"}}));
    world.cordon("node-1");
    assert_eq!(drain(&mut world, "node-1"), 10);
}

#[test]
fn a_node_with_many_sandboxes_is_drained_in_rounds_as_wide_as_the_budget() {
    let mut world = on_two_nodes(
        10,
        json!({"updateStrategy": {"maxUnavailable": 2, "maxSurge": 1}}),
    );
    world.cordon("node-1");
    world.step();
    assert_eq!(
        world.unclaimed().count(),
        13,
        "I4: a round makes as many replacements as a rollout may have missing and extra"
    );
    world.pass_second(|_| true);
    world.step();
    assert_eq!(world.on_node("node-1"), 2);
}

#[test]
fn a_plan_says_why_a_sandbox_leaves_its_node() {
    let taint = |key: &str, effect: &str| json!({"spec": {"taints": [{"key": key, "effect": effect}]}});
    let not_ready = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let mut cordoned = taint("node.kubernetes.io/unschedulable", "NoSchedule");
    cordoned["spec"]["unschedulable"] = json!(true);
    for (node, reason) in [
        (cordoned, "NodeCordoned"),
        (taint("team", "NoSchedule"), "NodeTainted"),
        (taint("team", "NoExecute"), "NodeTainted"),
        (
            taint("ToBeDeletedByClusterAutoscaler", "NoSchedule"),
            "NodeDeletionAnnounced",
        ),
        (
            taint("karpenter.sh/disrupted", "NoSchedule"),
            "NodeDeletionAnnounced",
        ),
        (not_ready, "NodeNotReady"),
    ] {
        let mut world = on_two_nodes(1, json!({}));
        let (name, on) = (
            only(&mut world).key.name.clone(),
            only(&mut world).node.clone().unwrap(),
        );
        world.node(&on, node);
        world.step();
        world.pass_second(|_| true);
        assert_eq!(evictions(&world), [format!("DeletePod {name} {reason}")]);
    }
}

#[test]
fn a_sandbox_stays_on_a_node_whose_taint_it_tolerates_or_that_is_only_a_hint() {
    let taint = |key: &str, effect: &str| json!({"key": key, "value": "x", "effect": effect});
    let exists = json!([{"operator": "Exists"}]);
    for (taint, tolerated) in [
        (
            taint("team", "NoSchedule"),
            json!([{"key": "team", "value": "x"}]),
        ),
        (
            taint("team", "NoExecute"),
            json!([{"key": "team", "operator": "Exists", "effect": "NoExecute"}]),
        ),
        (taint("team", "PreferNoSchedule"), json!([])),
        (
            taint("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule"),
            json!([]),
        ),
        (
            taint("node.kubernetes.io/memory-pressure", "NoSchedule"),
            json!([]),
        ),
        (taint("team", "NoSchedule"), exists.clone()),
    ] {
        let mut world = on_two_nodes(1, json!({}));
        let on = only(&mut world).node.clone().unwrap();
        only(&mut world).tolerations = tolerations(tolerated.clone());
        world.node(&on, json!({"spec": {"taints": [taint]}}));
        assert!(world.plan().actions.is_empty(), "{tolerated}");
    }
    for (taint, other) in [
        (
            taint("team", "NoSchedule"),
            json!([{"key": "team", "value": "y"}]),
        ),
        (
            taint("team", "NoSchedule"),
            json!([{"key": "team", "operator": "Exists", "effect": "NoExecute"}]),
        ),
        (taint("karpenter.sh/disrupted", "NoSchedule"), exists),
        (
            taint("team", "NoSchedule"),
            json!([{"key": "team", "operator": "Likes"}]),
        ),
    ] {
        let mut world = on_two_nodes(1, json!({}));
        let on = only(&mut world).node.clone().unwrap();
        only(&mut world).tolerations = tolerations(other.clone());
        world.node(&on, json!({"spec": {"taints": [taint]}}));
        assert_eq!(world.plan().actions.len(), 1, "{other}");
    }
}

#[test]
fn another_operator_neither_forgets_a_replacement_nor_makes_another() {
    let mut world = on_two_nodes(1, json!({}));
    let node = only(&mut world).node.clone().unwrap();
    world.cordon(&node);
    world.step();
    assert_eq!(world.unclaimed().count(), 2);
    world.restart();
    world.step();
    assert_eq!(world.unclaimed().count(), 2);
    assert_eq!(drain(&mut world, &node), 1);
    assert_eq!(world.unclaimed().count(), 1);
}

#[test]
fn where_max_total_is_full_a_drain_waits_says_why_and_breaks_at_its_deadline() {
    let fields = json!({"capacity": {"maxTotal": 2}, "disruption": {"drainDeadlineSeconds": 60}});
    let mut world = on_two_nodes(2, fields);
    world.cordon("node-1");
    world.step();
    assert!(world.plan().actions.is_empty());
    let (_, message) = world.progressing();
    assert!(
        message.contains(
            "replacements need 3 sandboxes beside the claimed sandboxes, and capacity.maxTotal allows 2"
        ),
        "{message}"
    );
    assert!(
        said(&world).contains("sandboxes leave their nodes (1 NodeCordoned) and wait"),
        "{}",
        said(&world)
    );
    let deadline = world.now + SignedDuration::from_secs(60);
    assert_eq!(world.plan().next, Some(deadline));
    later(&mut world, 60);
    let left = evictions(&world);
    assert!(
        left.len() == 1 && left[0].ends_with("DrainDeadlineExceeded"),
        "{left:?}"
    );
}

#[test]
fn a_stuck_sandbox_of_a_leaving_node_goes_at_its_warm_up_deadline() {
    for max_total in [2, 3] {
        let fields = json!({"capacity": {"maxTotal": max_total}, "warmUpDeadlineSeconds": 60});
        let mut world = on_two_nodes(2, fields);
        let now = world.now;
        let (kept, stuck) = (world.sandboxes.keys().next_back().cloned(), only(&mut world));
        (stuck.created, stuck.ready_since, stuck.ready_changed) = (now, None, Some(now));
        let node = stuck.node.clone().unwrap();
        // With a replacement in the place of another sandbox, none is made for the stuck one.
        let kept = world.sandboxes.get_mut(&kept.unwrap()).unwrap();
        kept.evict = max_total == 3;
        world.cordon(&node);
        later(&mut world, 60);
        let left = evictions(&world);
        assert!(
            left.iter().any(|line| line.ends_with("WarmUpDeadline")),
            "I8: {left:?}"
        );
        assert!(
            world.plan().failures.is_empty(),
            "the revision is blamed for the node"
        );
        world.converge();
        assert_eq!((world.available(), world.on_node(&node)), (2, 0));
    }
}

#[test]
fn the_deadline_counts_from_the_time_that_the_taint_was_added() {
    let mut world = on_two_nodes(1, json!({"capacity": {"maxTotal": 1}}));
    let node = only(&mut world).node.clone().unwrap();
    let added = (world.now - SignedDuration::from_secs(599)).to_string();
    let taint = json!({"key": "team", "effect": "NoSchedule", "timeAdded": added});
    world.node(&node, json!({"spec": {"taints": [taint]}}));
    assert!(evictions(&world).is_empty());
    later(&mut world, 1);
    assert_eq!(evictions(&world).len(), 1);
}

#[test]
fn with_policy_break_the_sandboxes_of_a_node_go_at_once() {
    let mut world = on_two_nodes(4, json!({"disruption": {"drainPolicy": "Break"}}));
    world.cordon("node-1");
    let left = evictions(&world);
    assert!(
        left.len() == 2 && left.iter().all(|line| line.ends_with("DrainPolicyBreak")),
        "{left:?}"
    );
}

#[test]
fn a_claim_gets_a_sandbox_of_a_drained_node_only_when_no_other_is_available_and_its_status_says_so() {
    let mut world = on_two_nodes(2, json!({}));
    world.cordon("node-1");
    world.claim("one", json!({})).claim("two", json!({}));
    world.step();
    let node = |world: &World, claim| world.bound_to(claim).unwrap().node.clone().unwrap();
    assert_eq!(
        (node(&world, "one"), node(&world, "two")),
        ("node-2".into(), "node-1".into())
    );
    let bound = |claim: &str| {
        let conditions = &world.claims[claim].status.conditions;
        find(conditions, "Bound").unwrap().message.clone()
    };
    assert!(!bound("one").contains("node"), "{}", bound("one"));
    assert!(
        bound("two").ends_with("may be lost, its node is cordoned (node-1)"),
        "{}",
        bound("two")
    );
    assert_eq!(world.claims["two"].status.phase, Some(Phase::Bound));
}

#[test]
fn an_old_sandbox_that_stays_is_claimed_before_a_new_one_that_leaves() {
    let mut world = on_two_nodes(1, json!({"updateStrategy": {"type": "OnReplenish"}}));
    let old = only(&mut world).key.name.clone();
    only(&mut world).node = Some("node-1".into());
    world.set_image("image:2");
    let update = world.update();
    world.sandbox("new", &update, |s| s.node = Some("node-2".into()));
    world
        .cordon("node-2")
        .claim("run", json!({"revisionPolicy": "PreferLatest"}));
    world.step();
    assert_eq!(world.bound_to("run").unwrap().key.name, old);
}

#[test]
fn a_rollout_and_a_drain_share_the_budget() {
    let mut world = on_two_nodes(8, json!({"updateStrategy": {"maxUnavailable": 2}}));
    world.set_image("image:2");
    world.step();
    world.cordon("node-1");
    assert!(drain(&mut world, "node-1") >= 6);
    world.converge();
    let update = world.update();
    assert!(world.unclaimed().all(|s| s.revision == update));
    assert_eq!(world.unclaimed().count(), 8);
}

#[test]
fn the_replacement_of_an_old_sandbox_respects_the_partition() {
    let mut world = on_two_nodes(
        4,
        json!({"updateStrategy": {"partition": 2, "maxUnavailable": 1}}),
    );
    world.set_image("image:2");
    world.converge();
    world.cordon("node-1");
    drain(&mut world, "node-1");
    world.converge();
    let update = world.update();
    assert_eq!(world.unclaimed().filter(|s| s.revision == update).count(), 2);
    assert_eq!(world.unclaimed().count(), 4);
}

#[test]
fn a_drain_without_capacity_does_not_hold_a_rollout_with_a_partition() {
    let fields =
        json!({"capacity": {"maxTotal": 6}, "updateStrategy": {"partition": 2, "maxUnavailable": 1}});
    let mut world = on_two_nodes(6, fields);
    world.set_image("image:2");
    world.cordon("node-1");
    world.converge_where(|_| true);
    let update = world.update();
    assert_eq!(world.unclaimed().filter(|s| s.revision != update).count(), 2);
}

#[test]
fn sandboxes_of_a_node_that_is_not_ready_are_replaced_although_they_are_not_available() {
    let mut world = on_two_nodes(4, json!({"updateStrategy": {"maxUnavailable": 1}}));
    world.node(
        "node-1",
        json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
    );
    for sandbox in world
        .sandboxes
        .values_mut()
        .filter(|s| s.node.as_deref() == Some("node-1"))
    {
        sandbox.ready_since = None;
    }
    let stays = |s: &Sandbox| s.node.as_deref() != Some("node-1");
    for _ in 0..10 {
        world.step();
        world.pass_second(stays);
    }
    assert_eq!((world.on_node("node-1"), world.available()), (0, 4));
}

#[test]
fn sandboxes_of_a_node_that_is_not_ready_wait_for_replacements_whatever_the_policy_and_the_deadline() {
    for policy in ["Wait", "Break"] {
        let fields = json!({"disruption": {"drainPolicy": policy}, "capacity": {"maxTotal": 1}});
        let mut world = on_two_nodes(1, fields);
        let node = only(&mut world).node.clone().unwrap();
        only(&mut world).ready_since = None;
        world.node(
            &node,
            json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
        );
        later(&mut world, 100_000);
        assert!(world.plan().actions.is_empty(), "{policy}");
    }
}

#[test]
fn a_sandbox_whose_node_is_gone_goes_at_once_and_to_no_claim() {
    let mut world = on_two_nodes(1, json!({}));
    let node = only(&mut world).node.clone().unwrap();
    world.nodes.nodes.remove(node.as_str());
    assert!(
        world.plan().actions.is_empty(),
        "the watch may not have shown a new node yet"
    );
    let due = only(&mut world).created + SignedDuration::from_secs(30);
    if due > world.now {
        assert_eq!(world.plan().next, Some(due));
        world.now = due;
    }
    world.claim("run", json!({"onEmpty": "Wait"}));
    let left = evictions(&world);
    assert!(left.len() == 1 && left[0].ends_with("NodeGone"), "{left:?}");
    assert!(lines(&world.plan(), PlanPhase::Scheduling).is_empty());
    let mut world = on_two_nodes(1, json!({}));
    let node = only(&mut world).node.clone().unwrap();
    world.nodes.nodes.remove(node.as_str());
    world.nodes.deleted.insert(node);
    assert_eq!(
        evictions(&world).len(),
        1,
        "a watch has shown that the node is gone"
    );
}

#[test]
fn without_the_right_to_read_nodes_nothing_changes_and_the_pool_says_so() {
    let mut world = on_two_nodes(2, json!({}));
    world.cordon("node-1");
    world.nodes.access = NodeAccess::Denied;
    assert!(world.plan().actions.is_empty());
    assert!(
        said(&world).contains("the operator may not list and watch nodes"),
        "{}",
        said(&world)
    );
}

#[test]
fn a_pod_that_no_node_takes_is_kept_after_its_deadline_and_the_pool_says_so() {
    for (scheduling, words) in [
        (Scheduling::Unschedulable, "no node has capacity for 1"),
        (Scheduling::Gated, "scheduling gates hold 1"),
    ] {
        let mut world = World::new(1, json!({"warmUpDeadlineSeconds": 60}));
        world.step();
        only(&mut world).scheduling = scheduling;
        later(&mut world, 3600);
        assert!(world.plan().actions.is_empty(), "{scheduling:?}");
        assert!(said(&world).contains(words), "{}", said(&world));
        // Its time to become available begins when a node takes it.
        only(&mut world).scheduling = Scheduling::Scheduled(Some(world.now));
        assert!(world.plan().actions.is_empty(), "{scheduling:?}");
        later(&mut world, 60);
        assert_eq!(evictions(&world).len(), 1, "{scheduling:?}");
    }
}

#[test]
fn a_rollout_replaces_an_old_pod_that_no_node_takes() {
    let mut world = World::new(1, json!({"updateStrategy": {"maxUnavailable": 1}}));
    world.step();
    only(&mut world).scheduling = Scheduling::Unschedulable;
    world.set_image("image:2");
    let replaced = lines(&world.plan(), PlanPhase::Recreate);
    assert!(
        replaced.len() == 1 && replaced[0].ends_with("OldRevision"),
        "{replaced:?}"
    );
}

#[test]
fn a_pod_that_terminates_on_a_dead_node_does_not_hold_the_pool_and_is_said() {
    let mut world = on_two_nodes(1, json!({"capacity": {"maxTotal": 3}}));
    let node = only(&mut world).node.clone().unwrap();
    only(&mut world).terminating = true;
    world.node(
        &node,
        json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
    );
    assert_eq!(lines(&world.plan(), PlanPhase::Scale).len(), 1);
    assert!(
        said(&world).contains("1 more are being deleted on nodes that are not ready"),
        "{}",
        said(&world)
    );
}

#[test]
fn a_sandbox_that_somebody_is_about_to_terminate_is_replaced_first() {
    let mut world = on_two_nodes(1, json!({}));
    let now = world.now;
    only(&mut world).disruption_target = Some(now);
    assert_eq!(lines(&world.plan(), PlanPhase::Scale).len(), 1);
    world.step();
    world.pass_second(|_| true);
    let left = evictions(&world);
    assert!(
        left.len() == 1 && left[0].ends_with("DisruptionTarget"),
        "{left:?}"
    );
}

#[test]
fn removals_keep_the_zones_even_before_the_nodes() {
    let zone = |zone: &str| json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
    let mut world = World::new(6, json!({}));
    world
        .node("a-1", zone("a"))
        .node("a-2", zone("a"))
        .node("b-1", zone("b"));
    let revision = world.update();
    for (name, node) in [
        ("1", "a-1"),
        ("2", "a-1"),
        ("3", "a-2"),
        ("4", "a-2"),
        ("5", "b-1"),
        ("6", "b-1"),
    ] {
        world.sandbox(name, &revision, |s| {
            (s.node, s.phase) = (Some(node.into()), PodPhase::Running);
        });
    }
    world.set(json!({"replicas": 2}));
    world.step();
    assert_eq!(
        (world.on_node("a-1") + world.on_node("a-2"), world.on_node("b-1")),
        (1, 1)
    );
}

#[test]
fn claims_leave_the_zones_even_before_the_nodes() {
    let zone = |zone: &str| json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
    let mut world = World::new(9, json!({"scaleStrategy": {"maxUnavailable": 1}}));
    world
        .node("a-1", zone("a"))
        .node("a-2", zone("a"))
        .node("b-1", zone("b"));
    let revision = world.update();
    for (name, node) in ["a-1", "a-1", "a-1", "a-2", "a-2", "a-2", "b-1", "b-1", "b-1"]
        .iter()
        .enumerate()
    {
        world.sandbox(&format!("s{name}"), &revision, |s| s.node = Some((*node).into()));
    }
    for claim in 0..5 {
        world.claim(&format!("run-{claim}"), json!({}));
    }
    let plan = world.plan();
    plan.actions
        .iter()
        .filter(|a| a.phase == PlanPhase::Scheduling)
        .for_each(|a| world.apply(a));
    assert_eq!(["a-1", "a-2", "b-1"].map(|node| world.on_node(node)), [1, 1, 2]);
}

#[test]
fn a_sandbox_on_a_node_that_may_go_soon_is_removed_first() {
    let taint = json!({"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"});
    let mut world = on_two_nodes(2, json!({}));
    world.node("node-2", json!({"spec": {"taints": [taint]}}));
    world.set(json!({"replicas": 1}));
    world.step();
    assert_eq!((world.on_node("node-1"), world.on_node("node-2")), (1, 0));
}

/// The surge of the drain is made from the revision that works, and the rollout leaves it alone.
#[test]
fn a_drain_in_a_rollout_that_never_comes_up_makes_no_sandbox_in_vain() {
    for (max_unavailable, max_surge) in [(1, 0), (2, 0), (0, 1), (1, 1), (2, 1)] {
        let update = json!({"maxUnavailable": max_unavailable, "maxSurge": max_surge});
        let mut world = on_two_nodes(
            6,
            json!({"updateStrategy": update, "warmUpDeadlineSeconds": 3600}),
        );
        world.set_image("broken");
        let broken = world.update();
        for _ in 0..10 {
            world.step();
            world.pass_second(|s| s.revision != broken);
        }
        world.cordon("node-1");
        let mut created = 0;
        for _ in 0..100 {
            created += lines(&world.step(), PlanPhase::Scale)
                .iter()
                .filter(|line| line.starts_with("CreatePod"))
                .count();
        }
        assert!(created <= 6, "I8: {created} are made with {update}");
    }
}
