//! Checks the PodDisruptionBudgets that the operator keeps, as those see them who evict.

use super::events::wait_for_events;
use super::own_nodes::{declare_drain, node, only_there};
use super::{bound, in_phase, sandbox, says};
use crate::accounts::account;
use crate::api::{BUDGETS, NODES, QUOTAS};
use crate::check::event::{Change, Event, Kind, condition, text};
use crate::cluster_state::{is_terminating, wait_until_at_rest};
use crate::extremes;
use crate::objects::{pool, sim, with};
use crate::plugin::Call;
use crate::rbac::granted;
use crate::scene::Scene;
use crate::wait;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

const UNCLAIMED: &str = "python-unclaimed";
const CLAIMED: &str = "python-claimed";

fn budget(scene: &Scene, name: &str) -> Result<Option<Value>, String> {
    Ok(scene.lab.api.get(BUDGETS, &scene.namespace, name)?)
}

/// Waits until the budget asks for so many, and the disruption controller allows so many disruptions.
fn allows(scene: &Scene, name: &str, min_available: i64, allowed: i64) -> Result<(), String> {
    wait::until(
        &format!("{name} asked for {min_available} and allowed {allowed}"),
        30,
        || {
            let budget = budget(scene, name)?.ok_or("there is none")?;
            let is_as_expected = budget["spec"]["minAvailable"] == min_available
                && budget["status"]["disruptionsAllowed"] == allowed
                && budget["status"]["observedGeneration"] == budget["metadata"]["generation"];
            wait::ensure(is_as_expected, || budget.to_string())
        },
    )
}

fn is_gone(scene: &Scene, name: &str) -> Result<(), String> {
    wait::until(&format!("{name} was gone"), 30, || {
        let budget = budget(scene, name)?;
        wait::ensure(budget.is_none(), || format!("{budget:?}"))
    })
}

/// Calls the eviction API as a descheduler does.
fn evict(scene: &Scene, pod: &str) -> Result<String, String> {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", scene.namespace);
    scene.kubectl(
        &["create", "--raw", &path, "-f", "-"],
        Some(&eviction.to_string()),
    )
}

fn is_refused(scene: &Scene, pod: &str) -> Result<(), String> {
    match evict(scene, pod) {
        Err(said) if said.contains("would violate the pod's disruption budget") => Ok(()),
        other => Err(format!("the eviction of {pod} should be refused: {other:?}")),
    }
}

/// Names of the unclaimed sandboxes.
fn unclaimed(scene: &Scene) -> Result<Vec<String>, String> {
    let is_warm = |pod: &&Value| pod["metadata"]["labels"]["warmpool.dev/state"] == "warm";
    let pods = scene.pods()?;
    Ok(pods
        .iter()
        .filter(is_warm)
        .map(|pod| text(pod, "/metadata/name").to_string())
        .collect())
}

/// The message of the pool's condition `Available`.
fn remark(scene: &Scene) -> Result<String, String> {
    let pool = scene.pool("python")?;
    let message = condition(&pool, "Available").map(|c| text(c, "/message").to_string());
    message.ok_or_else(|| pool["status"].to_string())
}

pub fn budgets_follow_the_spec_and_the_size_of_the_pool(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 8, &json!({})))?;
    allows(scene, UNCLAIMED, 6, 2)?;
    allows(scene, CLAIMED, i64::from(i32::MAX), 0)?;
    scene.kubectl(&["scale", "pool", "python", "--replicas=4"], None)?;
    allows(scene, UNCLAIMED, 3, 1)?;
    // An edit by hand is undone, and so is a deletion.
    let widened = json!({"spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "python"}}}});
    let api = &scene.lab.api;
    api.merge(BUDGETS, &scene.namespace, UNCLAIMED, &widened)?;
    allows(scene, UNCLAIMED, 3, 1)?;
    let selector = budget(scene, UNCLAIMED)?.unwrap_or_default()["spec"]["selector"].clone();
    wait::ensure(selector["matchLabels"]["app"].is_null(), || selector.to_string())?;
    api.delete(BUDGETS, &scene.namespace, CLAIMED)?;
    allows(scene, CLAIMED, i64::from(i32::MAX), 0)?;
    // A pool of nothing has nothing to keep, and neither has one whose owner wants no budget.
    scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
    is_gone(scene, UNCLAIMED)?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 4}}))?;
    allows(scene, UNCLAIMED, 3, 1)?;
    let off = json!({"spec": {"disruption": {"podDisruptionBudget": false}}});
    scene.patch_pool("python", &off)?;
    is_gone(scene, UNCLAIMED)?;
    wait_until_at_rest(scene, 30)?;
    scene.kubectl(&["delete", "pool", "python"], None)?;
    is_gone(scene, CLAIMED)
}

pub fn budgets_are_written_once_and_not_for_each_claim(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 6, &json!({})))?;
    allows(scene, UNCLAIMED, 5, 1)?;
    allows(scene, CLAIMED, i64::from(i32::MAX), 0)?;
    for n in 0..12 {
        let name = format!("run-{n}");
        scene.create_claim(&name, "python", &json!({}))?;
        bound(scene, &name)?;
    }
    for n in 0..12 {
        scene.delete_claim(&format!("run-{n}"))?;
    }
    wait_until_at_rest(scene, 60)?;
    // Another operator finds them as they should be.
    let writes = scene.writes(|write| write.resource == "poddisruptionbudgets")?;
    wait::ensure(writes.len() == 2, || {
        format!("two creations are enough: {writes:?}")
    })
}

pub fn an_eviction_passes_within_the_budget_and_a_single_sandbox_is_kept(
    scene: &Scene,
) -> Result<(), String> {
    scene.create_pool(&pool("python", 1, &sim(&[("ready-after", "2s")])))?;
    allows(scene, UNCLAIMED, 1, 0)?;
    wait_until_at_rest(scene, 30)?;
    // The events of the pool's start are writes, too, and a busy machine sends them late.
    wait_for_events(scene, &["NewRevision", "RolloutComplete"])?;
    let only = unclaimed(scene)?.concat();
    let from = Timestamp::now();
    for _ in 0..10 {
        is_refused(scene, &only)?;
    }
    // The refusal leaves no trace that anybody could answer.
    let writes = scene.writes(|write| write.at > from)?;
    wait::ensure(writes.is_empty(), || format!("{writes:?}"))?;
    scene.kubectl(&["label", "pod", &only, "warmpool.dev/evict=true"], None)?;
    wait::until("the sandbox was replaced, and never missing", 30, || {
        let now = unclaimed(scene)?;
        let available = scene.pool("python")?["status"]["available"].clone();
        if available == 0 {
            return Err(format!("none is available: {now:?}"));
        }
        wait::ensure(now.len() == 1 && now != [only.clone()], || format!("{now:?}"))
    })?;
    wait_until_at_rest(scene, 30)?;
    // With a budget of one of four, one eviction passes and the next is refused until the evicted sandbox is replaced.
    scene.patch_pool("python", &json!({"spec": {"replicas": 4}}))?;
    allows(scene, UNCLAIMED, 3, 1)?;
    let victims = unclaimed(scene)?;
    // Until the quota is deleted, there is no replacement.
    scene.create_pod_quota(3)?;
    evict(scene, &victims[0])?;
    is_refused(scene, &victims[1])?;
    scene.lab.api.delete(QUOTAS, &scene.namespace, "narrow")?;
    wait_until_at_rest(scene, 90)?;
    allows(scene, UNCLAIMED, 3, 1)
}

fn drain(scene: &Scene, node: &str, seconds: u64) -> Result<String, String> {
    let timeout = format!("--timeout={seconds}s");
    declare_drain(scene, node, false);
    scene.kubectl(&["drain", node, "--ignore-daemonsets", &timeout], None)
}

pub fn a_drain_is_refused_by_a_claim_that_blocks_and_passes_one_that_allows(
    scene: &Scene,
) -> Result<(), String> {
    let api = &scene.lab.api;
    api.create(NODES, "", &node(scene, "drained"))?;
    let all_may_go = json!({"updateStrategy": {"maxUnavailable": "100%"}});
    scene.create_pool(&pool("python", 2, &with(only_there(scene), &all_may_go)))?;
    wait_until_at_rest(scene, 30)?;
    scene.create_claim("blocks", "python", &json!({}))?;
    scene.create_claim("allows", "python", &json!({"disruption": "Allow"}))?;
    let blocks = sandbox(&bound(scene, "blocks")?).0;
    let allows = sandbox(&bound(scene, "allows")?).0;
    wait_until_at_rest(scene, 30)?;
    // The tenant's sandbox is kept even while it is not ready.
    let unready = json!({"metadata": {"annotations": {"sim.warmpool.dev/unready": "true"}}});
    api.merge(crate::api::PODS, &scene.namespace, &blocks, &unready)?;
    api.create(NODES, "", &node(scene, "spare"))?;
    let forecast = Call::of(scene, &["drain", "drained", "--dry-run"]).run()?;
    let lines = [
        "evicted (disruption Allow)",
        "blocks the drain until the claim is deleted (disruption Block)",
        "A drain of node drained does not end by itself: 1 sandbox blocks it.",
    ];
    let is_told = lines.iter().all(|line| forecast.out.contains(line));
    wait::ensure(forecast.code == Some(2) && is_told, || format!("{forecast:?}"))?;
    let said = match drain(scene, "drained", 12) {
        Err(said) => said,
        Ok(said) => return Err(format!("the drain should be refused: {said}")),
    };
    let names_the_budget = said.contains(&blocks) && said.contains("violate the pod's disruption budget");
    wait::ensure(names_the_budget, || said.clone())?;
    disruption_of(scene, "blocks", "disruption is Block, so nothing evicts it")?;
    in_phase(scene, "allows", "Failed", 10)?;
    scene.expect_no_pod(&allows)?;
    let kept = scene.pod(&blocks)?;
    wait::ensure(kept["metadata"]["deletionTimestamp"].is_null(), || {
        kept.to_string()
    })?;
    // It is in the hands of the claim's owner.
    scene.delete_claim("blocks")?;
    wait::until("the forecast knew of nothing that blocks", 30, || {
        let forecast = Call::of(scene, &["drain", "drained", "--dry-run"]).run()?;
        wait::ensure(forecast.code == Some(0), || format!("{forecast:?}"))
    })?;
    drain(scene, "drained", 60)?;
    scene.delete_claim("allows")?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
    wait_until_at_rest(scene, 30)?;
    api.delete(NODES, "", "drained")?;
    Ok(api.delete(NODES, "", "spare")?)
}

pub fn a_plain_drain_of_a_pool_of_one_waits_for_its_replacement(scene: &Scene) -> Result<(), String> {
    let api = &scene.lab.api;
    let nodes = ["drained-at-once", "spare-for-drained"];
    api.create(NODES, "", &node(scene, nodes[0]))?;
    scene.create_pool(&pool("python", 1, &only_there(scene)))?;
    wait_until_at_rest(scene, 30)?;
    allows(scene, UNCLAIMED, 1, 0)?;
    api.create(NODES, "", &node(scene, nodes[1]))?;
    let from = Timestamp::now();
    drain(scene, nodes[0], 60)?;
    wait_until_at_rest(scene, 30)?;
    let statuses = scene.history_up_to_now()?;
    let statuses = statuses.iter().filter(|e| e.kind == Kind::Pool && e.at > from);
    let least = statuses
        .filter_map(|e| e.object["status"]["available"].as_i64())
        .min();
    wait::ensure(least.is_none_or(|least| least >= 1), || {
        format!("{least:?} was available")
    })?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
    wait_until_at_rest(scene, 30)?;
    nodes.iter().try_for_each(|node| Ok(api.delete(NODES, "", node)?))
}

/// A descheduler evicts what it chose again and again, and takes a refusal for an answer each time.
pub fn a_descheduler_evicts_the_sandbox_of_a_pool_of_one_once_its_cordon_has_it_replaced(
    scene: &Scene,
) -> Result<(), String> {
    const WARM_UP: i64 = 3;
    let warm_up = SignedDuration::from_secs(WARM_UP);
    let api = &scene.lab.api;
    let nodes = ["descheduled", "spare-for-descheduled"];
    api.create(NODES, "", &node(scene, nodes[0]))?;
    let slow = sim(&[("ready-after", &format!("{WARM_UP}s"))]);
    scene.create_pool(&pool("python", 1, &with(only_there(scene), &slow)))?;
    wait_until_at_rest(scene, 30)?;
    allows(scene, UNCLAIMED, 1, 0)?;
    api.create(NODES, "", &node(scene, nodes[1]))?;
    let only = unclaimed(scene)?.concat();
    // Without a cordon nothing shows that anybody wants it gone.
    for _ in 0..3 {
        is_refused(scene, &only)?;
        sleep(Duration::from_secs(1));
    }
    wait::ensure(unclaimed(scene)? == [only.clone()], || "it was replaced".into())?;
    let version = text(&scene.pool("python")?, "/metadata/resourceVersion").parse();
    declare_drain(scene, nodes[0], false);
    let began = Timestamp::now();
    scene.kubectl(&["cordon", nodes[0]], None)?;
    let (mut refused, mut first_answer) = (0, None);
    loop {
        let answer = evict(scene, &only);
        first_answer.get_or_insert_with(Timestamp::now);
        match answer {
            Err(said) if said.contains("would violate the pod's disruption budget") => refused += 1,
            Err(said) if !said.contains("NotFound") => return Err(said),
            // Who is first does not matter: the budget allows one eviction, and the operator has replaced it.
            Ok(_) | Err(_) => break,
        }
        sleep(Duration::from_millis(500));
    }
    wait_until_at_rest(scene, 30)?;
    let events = scene.history_up_to_now()?;
    let seen = extremes::since(&events, &scene.requests()?, "python", version.unwrap_or(0));
    let made = super::pods_created(&events);
    let goes = |event: &&Event| {
        let is_going = event.change == Change::Deleted || is_terminating(&event.object);
        event.kind == Kind::Pod && event.name() == only && is_going
    };
    let gone = events.iter().find(goes).ok_or("the sandbox is still there")?.at;
    let took = scene.elapsed(began, gone);
    scene.lab.print_at_end(format!(
        "a descheduler was refused {refused} times in {:.1} s of a warm-up of {WARM_UP} s: {seen}, {made} pods made",
        took.as_secs_f64()
    ));
    // A descheduler that stands still for a whole warm-up finds it replaced.
    let came_late = first_answer.is_some_and(|at| at.duration_since(began) >= warm_up);
    let is_as_expected = (refused > 0 || came_late) && made == 2 && seen.least == 1;
    wait::ensure(is_as_expected, || {
        format!("refused {refused} times, {seen}, {made} pods were made")
    })?;
    wait::ensure(took < warm_up * 2 + SignedDuration::from_secs(4), || {
        format!("it took {took:?}")
    })?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
    wait_until_at_rest(scene, 30)?;
    nodes.iter().try_for_each(|node| Ok(api.delete(NODES, "", node)?))
}

/// Waits until the claim says why the node of its sandbox has to go, and returns the message.
fn disruption_of(scene: &Scene, claim: &str, part: &str) -> Result<String, String> {
    wait::until(&format!("claim {claim} said {part:?}"), 30, || {
        let message = says(scene, claim, "DisruptionPending", "NodeCordoned")?;
        wait::ensure(message.contains(part), || message.clone())?;
        Ok(message)
    })
}

pub fn a_notified_claim_keeps_its_sandbox_for_its_grace_and_then_lets_it_go(
    scene: &Scene,
) -> Result<(), String> {
    let api = &scene.lab.api;
    api.create(NODES, "", &node(scene, "notified"))?;
    scene.create_pool(&pool("python", 2, &only_there(scene)))?;
    wait_until_at_rest(scene, 30)?;
    let notify = |grace: u32| json!({"disruption": "Notify", "disruptionGracePeriodSeconds": grace});
    // What a claim keeps after its end holds up a drain as little.
    let retain = json!({"lifetimeSeconds": 1, "releasePolicy": "Retain"});
    let mut pods = Vec::new();
    for (claim, ended, grace) in [("run", "ended", 8), ("patient", "patient-ended", 3600)] {
        scene.create_claim(claim, "python", &notify(grace))?;
        pods.push(sandbox(&bound(scene, claim)?).0);
        scene.create_claim(ended, "python", &with(retain.clone(), &notify(grace)))?;
        pods.push(sandbox(&bound(scene, ended)?).0);
        in_phase(scene, ended, "Expired", 30)?;
    }
    api.create(NODES, "", &node(scene, "spare-for-notified"))?;
    let mark = |pod: &Value| pod["metadata"]["annotations"]["warmpool.dev/disruption-deadline"].clone();
    scene.kubectl(&["cordon", "notified"], None)?;
    for (claim, pod) in ["patient", "patient-ended"].iter().zip(&pods[2..]) {
        disruption_of(scene, claim, "it may be evicted from")?;
        wait::ensure(mark(&scene.pod(pod)?).is_string(), || "no annotation".into())?;
        is_refused(scene, pod)?;
    }
    // A cordon that is taken back takes the notice back.
    scene.kubectl(&["uncordon", "notified"], None)?;
    wait::until("the notices were taken back", 30, || {
        let claims = scene.claims()?;
        let said = claims
            .iter()
            .find(|claim| condition(claim, "DisruptionPending").is_some());
        wait::ensure(said.is_none(), || format!("{said:?}"))?;
        pods.iter().try_for_each(|pod| {
            let mark = mark(&scene.pod(pod)?);
            wait::ensure(mark.is_null(), || format!("{pod}: {mark}"))
        })
    })?;
    scene.delete_claim("patient")?;
    scene.delete_claim("patient-ended")?;
    wait::until("their sandboxes were gone", 30, || {
        pods[2..].iter().try_for_each(|pod| scene.expect_no_pod(pod))
    })?;
    let from = Timestamp::now();
    scene.kubectl(&["cordon", "notified"], None)?;
    disruption_of(scene, "run", "it may be evicted from")?;
    disruption_of(scene, "ended", "it may be evicted from")?;
    drain(scene, "notified", 60)?;
    let seconds = Timestamp::now().duration_since(from).as_secs();
    wait::ensure(seconds >= 7, || {
        format!("the drain took {seconds} s of a grace of 8")
    })?;
    in_phase(scene, "run", "Failed", 30)?;
    let marks = scene.writes(|write| {
        write.resource == "pods" && write.verb == "patch" && write.at > from && pods.contains(&write.name)
    })?;
    wait::ensure(marks.len() == 4, || {
        format!("two writes for each tell of it: {marks:?}")
    })?;
    scene.expect_no_pod(&pods[1])?;
    scene.delete_claim("run")?;
    scene.delete_claim("ended")?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
    wait_until_at_rest(scene, 30)?;
    api.delete(NODES, "", "notified")?;
    Ok(api.delete(NODES, "", "spare-for-notified")?)
}

pub fn a_budget_of_a_user_takes_the_place_of_ours_and_evictions_go_by_it(
    scene: &Scene,
) -> Result<(), String> {
    scene.create_pool(&pool("python", 4, &json!({})))?;
    allows(scene, UNCLAIMED, 3, 1)?;
    wait_until_at_rest(scene, 30)?;
    let mine = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "mine"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"warmpool.dev/state": "warm"}}},
    });
    scene.create(BUDGETS, &mine)?;
    is_gone(scene, UNCLAIMED)?;
    allows(scene, "mine", 2, 2)?;
    allows(scene, CLAIMED, i64::from(i32::MAX), 0)?;
    let said = wait::until("the pool said whose budget it is", 30, || {
        let said = remark(scene)?;
        wait::ensure(said.contains("PodDisruptionBudget mine does"), || said.clone())?;
        Ok(said)
    })?;
    wait::ensure(said.contains("4 unclaimed sandboxes are available"), || {
        said.clone()
    })?;
    evict(scene, &unclaimed(scene)?[0])?;
    wait_until_at_rest(scene, 30)?;
    scene.kubectl(&["delete", "pdb", "mine"], None)?;
    allows(scene, UNCLAIMED, 3, 1)?;
    wait::until("the pool said nothing of it any more", 30, || {
        let said = remark(scene)?;
        wait::ensure(!said.contains("PodDisruptionBudget"), || said.clone())
    })?;
    wait_until_at_rest(scene, 30)
}

pub fn a_claim_that_outlives_its_pool_is_guarded_until_it_ends_or_a_pool_is_there_again(
    scene: &Scene,
) -> Result<(), String> {
    const ORPHANED: &str = "blocks-orphaned";
    let (most, python) = (i64::from(i32::MAX), pool("python", 2, &json!({})));
    scene.create_pool(&python)?;
    wait_until_at_rest(scene, 30)?;
    scene.create_claim("blocks", "python", &json!({}))?;
    scene.create_claim("allows", "python", &json!({"disruption": "Allow"}))?;
    let blocks = sandbox(&bound(scene, "blocks")?).0;
    let lets_go = sandbox(&bound(scene, "allows")?).0;
    allows(scene, CLAIMED, most, 0)?;
    scene.kubectl(&["delete", "pool", "python"], None)?;
    allows(scene, ORPHANED, most, 0)?;
    is_gone(scene, CLAIMED)?;
    is_refused(scene, &blocks)?;
    evict(scene, &lets_go)?;
    in_phase(scene, "allows", "Failed", 30)?;
    wait::ensure(budget(scene, "allows-orphaned")?.is_none(), || {
        "a claim that allows evictions has a budget".into()
    })?;
    // The budget of a pool of that name covers the sandbox again, and the claim has its own no more.
    scene.create_pool(&python)?;
    allows(scene, CLAIMED, most, 0)?;
    is_gone(scene, ORPHANED)?;
    is_refused(scene, &blocks)?;
    scene.kubectl(&["delete", "pool", "python"], None)?;
    allows(scene, ORPHANED, most, 0)?;
    scene.delete_claim("allows")?;
    scene.delete_claim("blocks")?;
    is_gone(scene, ORPHANED)
}

pub fn without_the_right_to_budgets_it_keeps_none_and_says_so_once(scene: &Scene) -> Result<(), String> {
    let rules = granted("clusterrole.yaml")?.into_iter();
    let rules: Vec<Value> = rules
        .filter(|rule| rule["apiGroups"] != json!(["policy"]))
        .collect();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "no-budgets"}, "rules": rules,
    });
    scene.kubectl(&["create", "-f", "-"], Some(&role.to_string()))?;
    let kubeconfig = account(scene.lab, &scene.namespace, "no-budgets")?;
    let subject = format!("--serviceaccount={}:no-budgets", scene.namespace);
    scene.kubectl(
        &[
            "create",
            "rolebinding",
            "no-budgets",
            "--role=no-budgets",
            &subject,
        ],
        None,
    )?;
    let settings = ["--leader-elect=false", "--namespace", &scene.namespace];
    let operator = scene.lab.start_operator_as(&kubeconfig, &settings)?;
    scene.create_pool(&pool("python", 3, &json!({})))?;
    wait::until("the pool said what is missing", 30, || {
        let said = remark(scene)?;
        let is_full = said.starts_with("3 of 3");
        let is_said = said.contains("the operator may not list poddisruptionbudgets");
        wait::ensure(is_full && is_said, || said.clone())
    })?;
    operator.says("the operator may not list and watch poddisruptionbudgets", 5)?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    wait_until_at_rest(scene, 30)?;
    let log = operator.text()?;
    let times = log.matches("poddisruptionbudgets").count();
    wait::ensure(times == 1, || format!("the log names it {times} times\n{log}"))?;
    wait::ensure(budget(scene, UNCLAIMED)?.is_none(), || "there is a budget".into())?;
    // What an operator without all rights says is no fault of its own.
    drop(operator);
    Ok(())
}
