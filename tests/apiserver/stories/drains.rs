//! Checks drains: every story has nodes of its own, which no other pod tolerates.

use super::own_nodes::declare_drain;
use super::{all_bound, burst};
use crate::api::{EVENTS, NODES, PODS, POOLS};
use crate::check::event::{Change, Kind, condition, text};
use crate::check::replay;
use crate::claimants::Claimants;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::extremes::{self, Extremes};
use crate::objects::{NEW_IMAGE, pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const TAINT: &str = "drains";

/// Runs a story with so many nodes of its own.
fn on_nodes(
    scene: &Scene,
    count: usize,
    story: impl FnOnce(&[String]) -> Result<(), String>,
) -> Result<(), String> {
    let names: Vec<_> = (0..count).map(|n| format!("{}-{n}", scene.namespace)).collect();
    for name in &names {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    TAINT: scene.namespace, "type": "kwok", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                },
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "spec": {"taints": [{"key": TAINT, "value": scene.namespace, "effect": "NoSchedule"}]},
        });
        scene.lab.api.create(NODES, "", &node)?;
    }
    wait::until("the nodes were ready", 60, || {
        for name in &names {
            let node = scene.lab.api.get(NODES, "", name)?.unwrap_or_default();
            let tainted = node["spec"]["taints"].as_array().map_or(0, Vec::len);
            let ready = condition(&node, "Ready").is_some_and(|c| c["status"] == "True");
            wait::ensure(ready && tainted == 1, || node.to_string())?;
        }
        Ok(())
    })?;
    let outcome = story(&names);
    // A node that goes under a pool costs its sandboxes, whatever the budget.
    scene.lab.api.delete(POOLS, &scene.namespace, "python")?;
    wait::until("the sandboxes were gone", 60, || {
        let left = ClusterState::read(scene)?.unclaimed("python").len();
        wait::ensure(left == 0, || format!("{left} are there"))
    })?;
    for name in &names {
        scene.lab.api.delete(NODES, "", name)?;
    }
    outcome
}

/// The pod of a pool goes to the nodes of the story, over all of them, and takes a second to become Ready.
fn on_own_nodes(scene: &Scene, more: &Value) -> Value {
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "python"}},
    }]);
    let pod = json!({"template": {"spec": {
        "nodeSelector": {TAINT: scene.namespace},
        "tolerations": [{"key": TAINT, "value": scene.namespace, "effect": "NoSchedule"}],
        "topologySpreadConstraints": spread,
    }}});
    with(with(sim(&[("ready-after", "1s")]), &pod), more)
}

fn full_pool(scene: &Scene, replicas: i64, more: &Value) -> Result<(), String> {
    scene.create_pool(&pool("python", replicas, &on_own_nodes(scene, more)))?;
    wait_until_at_rest(scene, 60)
}

fn cordon(scene: &Scene, node: &str, breaks: bool) -> Result<(), String> {
    declare_drain(scene, node, breaks);
    scene.kubectl(&["cordon", node], None).map(drop)
}

fn uncordon(scene: &Scene, node: &str) -> Result<(), String> {
    scene.kubectl(&["uncordon", node], None)?;
    scene.declare(|rules| {
        let of_node = rules.drains.iter_mut().filter(|drain| drain.node == node);
        of_node.for_each(|drain| drain.to = drain.to.or(Some(Timestamp::now())));
    });
    Ok(())
}

fn unclaimed_on(scene: &Scene, node: &str) -> Result<usize, String> {
    let state = ClusterState::read(scene)?;
    let unclaimed = state.unclaimed("python");
    Ok(unclaimed
        .iter()
        .filter(|pod| text(pod, "/spec/nodeName") == node)
        .count())
}

fn node_of_the_only_sandbox(scene: &Scene) -> Result<String, String> {
    let state = ClusterState::read(scene)?;
    let unclaimed = state.unclaimed("python");
    let pod = unclaimed.first().ok_or("there is no sandbox")?;
    Ok(text(pod, "/spec/nodeName").to_string())
}

fn is_empty(scene: &Scene, node: &str, seconds: u64) -> Result<(), String> {
    wait::until(&format!("no unclaimed sandbox was on {node}"), seconds, || {
        let left = unclaimed_on(scene, node)?;
        wait::ensure(left == 0, || format!("{left} are"))
    })
}

/// What `kubectl drain` does once the sandboxes have gone: it finds nothing to evict, and ends.
fn kubectl_drain(scene: &Scene, node: &str) -> Result<(), String> {
    scene
        .kubectl(
            &["drain", node, "--force", "--ignore-daemonsets", "--timeout=20s"],
            None,
        )
        .map(drop)
}

/// The version of the pool, from which on a part of the history is measured.
fn version(scene: &Scene) -> Result<u64, String> {
    let pool = scene.pool("python")?;
    Ok(text(&pool, "/metadata/resourceVersion").parse().unwrap_or(0))
}

/// Cordons, waits until the node is empty, and returns the extremes of the pool meanwhile.
fn drained(scene: &Scene, node: &str, seconds: u64) -> Result<Extremes, String> {
    let from = version(scene)?;
    let began = Instant::now();
    cordon(scene, node, false)?;
    is_empty(scene, node, seconds)?;
    let took = began.elapsed().as_secs_f64();
    let seen = extremes::since(&scene.history_up_to_now()?, &scene.requests()?, "python", from);
    scene
        .lab
        .print_at_end(format!("{node} drained: {seen}, {took:.1} s"));
    Ok(seen)
}

pub fn a_pool_of_one_keeps_one_available_while_its_node_is_drained(scene: &Scene) -> Result<(), String> {
    on_nodes(scene, 2, |_| {
        full_pool(scene, 1, &json!({"updateStrategy": {"maxUnavailable": 0}}))?;
        let node = node_of_the_only_sandbox(scene)?;
        let least = drained(scene, &node, 30)?.least;
        kubectl_drain(scene, &node)?;
        wait_until_at_rest(scene, 30)?;
        wait::ensure(least == 1, || format!("{least} were available"))
    })
}

pub fn nodes_drained_one_after_the_other_under_claims_miss_no_more_than_the_budget(
    scene: &Scene,
) -> Result<(), String> {
    on_nodes(scene, 4, |nodes| {
        full_pool(scene, 40, &json!({"updateStrategy": {"maxUnavailable": "25%"}}))?;
        let (fast, slow) = nodes.split_at(2);
        // Under many claims, what they took may excuse as much as the budget does; under few, it excuses next to nothing.
        for (nodes, pace) in [(fast, Duration::from_millis(200)), (slow, Duration::from_secs(2))] {
            let claimants = Claimants::every(scene, "python", pace);
            let drained = nodes.iter().try_for_each(|node| {
                let seen = drained(scene, node, 60)?;
                uncordon(scene, node)?;
                wait::ensure(seen.margin >= 0, || format!("{seen}"))
            });
            let served = claimants.stop()?;
            scene
                .lab
                .print_at_end(format!("{served} claims were served meanwhile"));
            drained?;
        }
        wait_until_at_rest(scene, 60)
    })
}

pub fn a_node_drained_during_a_rollout_shares_its_budget(scene: &Scene) -> Result<(), String> {
    on_nodes(scene, 3, |nodes| {
        full_pool(scene, 12, &json!({"updateStrategy": {"maxUnavailable": 3}}))?;
        scene.roll_to("python", NEW_IMAGE)?;
        let least = drained(scene, &nodes[0], 60)?.least;
        wait_until_at_rest(scene, 60)?;
        wait::ensure(least >= 9, || format!("{least} were available"))
    })
}

pub fn a_node_cordoned_and_uncordoned_each_second_costs_no_sandbox_that_is_missed(
    scene: &Scene,
) -> Result<(), String> {
    on_nodes(scene, 2, |_| {
        full_pool(scene, 1, &json!({}))?;
        let (node, from) = (node_of_the_only_sandbox(scene)?, version(scene)?);
        for _ in 0..5 {
            cordon(scene, &node, false)?;
            std::thread::sleep(Duration::from_secs(1));
            uncordon(scene, &node)?;
            std::thread::sleep(Duration::from_secs(1));
        }
        wait_until_at_rest(scene, 30)?;
        let seen = extremes::since(&scene.history_up_to_now()?, &scene.requests()?, "python", from);
        let made = super::pods_created(&scene.history());
        scene
            .lab
            .print_at_end(format!("5 cordons taken back: {seen}, {made} pods made"));
        wait::ensure(seen.least >= 1 && seen.most <= 2 && made <= 7, || {
            format!("{seen:?}, {made} pods were made")
        })
    })
}

pub fn all_nodes_tainted_at_once_cost_nothing_before_the_deadline(scene: &Scene) -> Result<(), String> {
    on_nodes(scene, 2, |nodes| {
        full_pool(scene, 4, &json!({}))?;
        for node in nodes {
            declare_drain(scene, node, false);
            scene.kubectl(&["taint", "node", node, "maintenance=soon:NoSchedule"], None)?;
        }
        wait::until("the pool says why no replacement comes", 30, || {
            let pool = scene.pool("python")?;
            let said = condition(&pool, "Available").map_or("", |c| text(c, "/message"));
            let why = said.contains("4 NodeTainted") && said.contains("no node has capacity for 1");
            wait::ensure(why && pool["status"]["available"] == 4, || {
                pool["status"].to_string()
            })
        })?;
        for node in nodes {
            scene.kubectl(&["taint", "node", node, "maintenance-"], None)?;
        }
        wait_until_at_rest(scene, 60)
    })
}

pub fn a_drain_of_a_full_pool_waits_says_why_and_breaks_at_its_deadline(scene: &Scene) -> Result<(), String> {
    on_nodes(scene, 2, |_| {
        let fields = json!({"capacity": {"maxTotal": 1}, "disruption": {"drainDeadlineSeconds": 20}});
        full_pool(scene, 1, &fields)?;
        let node = node_of_the_only_sandbox(scene)?;
        let from = Timestamp::now();
        cordon(scene, &node, true)?;
        is_empty(scene, &node, 60)?;
        let deletions =
            scene.writes(|write| write.verb == "delete" && write.resource == "pods" && write.at > from)?;
        let deleted = deletions
            .iter()
            .map(|write| write.at)
            .min()
            .ok_or("the operator deleted nothing")?;
        let waited = deleted.duration_since(from).as_secs();
        // Kubernetes stores in whole seconds when it tainted the node.
        wait::ensure(waited >= 18, || {
            format!("the sandbox went after {waited} s of a deadline of 20")
        })?;
        let mut said_while_it_was_there = false;
        replay(&scene.history_up_to_now()?, |world, event| {
            let said = condition(&event.object, "Progressing").map_or("", |c| text(c, "/message"));
            let is_said = event.kind == Kind::Pool && said.contains("need 2 sandboxes");
            let mut pods = world.pods.values();
            said_while_it_was_there |= is_said && pods.any(|pod| pod.counts("python") && pod.node == node);
        });
        wait::ensure(said_while_it_was_there, || {
            "the pool did not say what it takes before the sandbox went".into()
        })?;
        wait_until_at_rest(scene, 30)?;
        wait::until("the deadline was told of", 30, || {
            let told = scene.lab.api.list(EVENTS, &scene.namespace)?;
            let is_told = told
                .iter()
                .any(|event| event["reason"] == "DrainDeadlineExceeded");
            wait::ensure(is_told, || format!("{told:?}"))
        })
    })
}

pub fn a_claim_on_a_drained_node_says_so(scene: &Scene) -> Result<(), String> {
    on_nodes(scene, 2, |_| {
        full_pool(scene, 1, &json!({"capacity": {"maxTotal": 1}}))?;
        let node = node_of_the_only_sandbox(scene)?;
        cordon(scene, &node, true)?;
        let claims = burst(scene, "run", 1, "python", &json!({}))?;
        all_bound(scene, &claims)?;
        let said = super::says(scene, &claims[0], "Bound", "Bound")?;
        uncordon(scene, &node)?;
        wait::until("the claim takes it back", 30, || {
            let said = super::says(scene, &claims[0], "Bound", "Bound")?;
            wait::ensure(!said.contains("cordoned"), || said)
        })?;
        scene.delete_claim(&claims[0])?;
        wait::ensure(said.contains(&format!("its node is cordoned ({node})")), || said)
    })
}

/// Runs alone, with operators of its own.
pub fn an_operator_killed_between_a_replacement_and_the_deletion_makes_no_second_one(
    scene: &Scene,
) -> Result<(), String> {
    on_nodes(scene, 2, |_| {
        let operator = scene.lab.start_operator()?;
        full_pool(scene, 1, &json!({}))?;
        let node = node_of_the_only_sandbox(scene)?;
        // However late the kill is, the replacement is not available yet.
        let operator = scene.while_nodes_are_suspended(|| {
            cordon(scene, &node, false)?;
            wait::until("the replacement was made", 30, || {
                let made = super::pods_created(&scene.history());
                wait::ensure(made == 2, || format!("{made} pods were made"))
            })?;
            scene.while_operator_is_down(|| {
                operator.kill()?;
                scene.lab.start_operator()
            })
        })?;
        is_empty(scene, &node, 60)?;
        wait_until_at_rest(scene, 30)?;
        let made = super::pods_created(&scene.history_up_to_now()?);
        wait::ensure(made == 2, || format!("{made} pods were made"))?;
        operator.stop()
    })
}

/// Runs alone, with operators of its own. While none is there, somebody deletes the replacement, which is available.
pub fn a_replacement_deleted_while_the_operator_is_away_is_made_again_before_the_sandbox_goes(
    scene: &Scene,
) -> Result<(), String> {
    on_nodes(scene, 3, |_| {
        let operator = scene.lab.start_operator()?;
        let fields = json!({"updateStrategy": {"maxUnavailable": 0}});
        full_pool(scene, 1, &with(sim(&[("ready-after", "3s")]), &fields))?;
        let (node, from) = (node_of_the_only_sandbox(scene)?, version(scene)?);
        cordon(scene, &node, false)?;
        let replacement = wait::until("the replacement was made", 30, || {
            let state = ClusterState::read(scene)?;
            let unclaimed = state.unclaimed("python");
            let elsewhere = unclaimed.iter().find(|pod| text(pod, "/spec/nodeName") != node);
            let name = elsewhere.map(|pod| text(pod, "/metadata/name").to_string());
            name.ok_or_else(|| "it is not there".into())
        })?;
        let operator = scene.while_operator_is_down(|| {
            operator.kill()?;
            wait::until("the replacement was available", 30, || {
                let pod = scene.pod(&replacement)?;
                let ready = condition(&pod, "Ready").is_some_and(|c| c["status"] == "True");
                wait::ensure(ready, || pod["status"].to_string())
            })?;
            wait::ensure(unclaimed_on(scene, &node)? == 1, || {
                "the sandbox went before the operator did".into()
            })?;
            scene.lab.api.delete(PODS, &scene.namespace, &replacement)?;
            wait::until("the replacement was gone", 30, || {
                scene.expect_no_pod(&replacement)
            })?;
            scene.lab.start_operator()
        })?;
        is_empty(scene, &node, 60)?;
        wait_until_at_rest(scene, 30)?;
        let events = scene.history_up_to_now()?;
        let (seen, made) = (
            extremes::since(&events, &scene.requests()?, "python", from),
            super::pods_created(&events),
        );
        scene
            .lab
            .print_at_end(format!("a replacement deleted by hand: {seen}, {made} pods made"));
        wait::ensure(seen.least == 1 && made == 3, || {
            format!("{seen}, {made} pods were made")
        })?;
        wait::ensure(node_of_the_only_sandbox(scene)? != node, || {
            "it is on the node that was cordoned".into()
        })?;
        operator.stop()
    })
}

/// Runs alone: beside other stories the API server is what takes the time.
pub fn a_node_with_many_sandboxes_is_drained_in_little_more_than_its_rounds(
    scene: &Scene,
) -> Result<(), String> {
    const WARM_UP: f64 = 2.0;
    let replicas = scene.sized(40, 500);
    on_nodes(scene, 2, |nodes| {
        let operator = scene.lab.start_operator()?;
        let fields = json!({"updateStrategy": {"maxUnavailable": "25%"}});
        full_pool(scene, replicas, &with(sim(&[("ready-after", "2s")]), &fields))?;
        let (node, on_node) = (&nodes[0], unclaimed_on(scene, &nodes[0])?);
        let (from, began) = (version(scene)?, Timestamp::now());
        cordon(scene, node, false)?;
        // Counted by the watch: a list of so many pods each time would slow down what is measured.
        let left = || scene.count(Kind::Pod, |pod| text(pod, "/spec/nodeName") == node);
        wait::until("the node was empty", 120, || {
            wait::ensure(left() == 0, || format!("{} are there", left()))
        })?;
        let events = scene.history_up_to_now()?;
        let gone = events.iter().filter(|event| {
            let is_pod = event.kind == Kind::Pod && event.change == Change::Deleted;
            is_pod && text(&event.object, "/spec/nodeName") == node
        });
        let last = gone.map(|event| event.at).max().ok_or("no sandbox went")?;
        let took = last.duration_since(began).as_secs_f64();
        let width = usize::try_from(replicas / 4).unwrap_or(1);
        let rounds = on_node.div_ceil(width);
        let ideal = f64::from(u32::try_from(rounds).unwrap_or(u32::MAX)) * WARM_UP;
        let seen = extremes::since(&events, &scene.requests()?, "python", from);
        scene.lab.print_at_end(format!(
            "a node with {on_node} sandboxes, {width} at once: drained in {took:.1} s, ideal {rounds} rounds of {WARM_UP} s, \
             {:.2} times the ideal; {seen}",
            took / ideal
        ));
        wait_until_at_rest(scene, 60)?;
        let at_once = replicas + i64::try_from(width).unwrap_or(i64::MAX);
        wait::ensure(seen.least == replicas && seen.most == at_once, || {
            seen.to_string()
        })?;
        operator.stop()
    })
}
