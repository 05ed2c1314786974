//! Checks crashes of the operator and the API server, and two operators.
//!
//! These stories run alone, with operators of their own.

use super::rollouts::{everything_unclaimed_runs, identities};
use super::templates::{says_throughout, uids};
use super::{all_bound, bound, burst, burst_in, pool_says};
use crate::api::TEMPLATES;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{NEW_IMAGE, pool, pool_of, sim, template, with};
use crate::operator::Operator;
use crate::scene::Scene;
use crate::wait;
use jiff::SignedDuration;
use serde_json::{Value, json};

/// Kills the operator, looks at what it leaves, and starts the next one.
pub fn replaced<T>(
    scene: &Scene,
    operator: Operator,
    look: impl FnOnce() -> Result<T, String>,
) -> Result<(Operator, T), String> {
    scene.while_operator_is_down(|| {
        operator.kill()?;
        let left = look()?;
        Ok((scene.lab.start_operator()?, left))
    })
}

/// Creates `count` claims, more than the pool has sandboxes, and calls `crash` once `some` of them have one. The nodes are
/// suspended meanwhile, so however long it takes, claims are left.
fn in_a_burst<T>(
    scene: &Scene,
    (prefix, count): (&str, usize),
    some: usize,
    crash: impl FnOnce() -> Result<T, String>,
) -> Result<(Vec<String>, T), String> {
    let (api, namespace) = (&scene.lab.api, scene.namespace.as_str());
    scene.while_nodes_are_suspended(|| {
        std::thread::scope(|scope| {
            let creation = scope.spawn(|| burst_in(api, namespace, prefix, count, "python", &json!({})));
            let outcome = served(scene, some).and_then(|()| crash());
            let claims = creation.join().map_err(|_| "the claims' creation panicked")??;
            Ok((claims, outcome?))
        })
    })
}

/// How many of `count` claims have no sandbox yet. A crash that leaves none shows nothing.
fn left(scene: &Scene, count: usize) -> Result<usize, String> {
    let state = ClusterState::read(scene)?;
    let is_bound = |claim: &&Value| claim["status"]["phase"] == "Bound";
    let bound = state.claims.iter().filter(is_bound).count();
    wait::ensure(bound < count, || {
        "every claim had a sandbox when it went away".into()
    })?;
    Ok(count - bound)
}

/// Waits until some claims have a sandbox.
fn served(scene: &Scene, some: usize) -> Result<(), String> {
    wait::until("a few claims were served", 30, || {
        let served = ClusterState::read(scene)?.claimed("python").len();
        wait::ensure(served >= some, || format!("{served} were"))
    })
}

fn pods_made(scene: &Scene) -> usize {
    super::pods_created(&scene.history())
}

pub fn killed_while_it_fills_a_pool(scene: &Scene) -> Result<(), String> {
    const REPLICAS: usize = 60;
    // So many may warm up at once, and the nodes are suspended: however late a kill is, pods are left to be made.
    let ceiling = json!({"scaleStrategy": {"maxUnavailable": 50}});
    let spec = with(sim(&[("ready-after", "200ms")]), &ceiling);
    let mut operator = scene.lab.start_operator()?;
    let pods = || Ok(scene.pods()?.len());
    let operator = scene.while_nodes_are_suspended(|| {
        scene.create_pool(&pool("python", REPLICAS as i64, &spec))?;
        for some in [1, 12, 25] {
            wait::until(&format!("{some} pods were made"), 30, || {
                wait::ensure(pods_made(scene) >= some, || format!("{}", pods_made(scene)))
            })?;
            let made;
            (operator, made) = replaced(scene, operator, pods)?;
            wait::ensure(made < REPLICAS, || {
                format!("{made} pods were made before the kill at {some}")
            })?;
        }
        Ok(operator)
    })?;
    wait_until_at_rest(scene, 60)?;
    wait::ensure(pods_made(scene) == REPLICAS, || {
        format!("{} pods were made for a pool of {REPLICAS}", pods_made(scene))
    })?;
    operator.stop()
}

pub fn killed_in_a_burst_of_claims(scene: &Scene) -> Result<(), String> {
    let mut operator = scene.lab.start_operator()?;
    scene.create_pool(&pool("python", 20, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    for round in ["a", "b", "c"] {
        let (claims, (next, _)) = in_a_burst(scene, (round, 30), 3, || {
            replaced(scene, operator, || left(scene, 30))
        })?;
        operator = next;
        all_bound(scene, &claims)?;
        wait_until_at_rest(scene, 60)?;
        claims.iter().try_for_each(|claim| scene.delete_claim(claim))?;
        wait_until_at_rest(scene, 60)?;
    }
    operator.stop()
}

pub fn killed_in_the_middle_of_a_rollout(scene: &Scene) -> Result<(), String> {
    let mut operator = scene.lab.start_operator()?;
    let spec = with(
        sim(&[("ready-after", "300ms")]),
        &json!({"updateStrategy": {"maxUnavailable": "25%"}}),
    );
    scene.create_pool(&pool("python", 12, &spec))?;
    wait_until_at_rest(scene, 60)?;
    all_bound(scene, &burst(scene, "run", 3, "python", &json!({}))?)?;
    wait_until_at_rest(scene, 60)?;
    let before = identities(scene, "python")?;
    scene.roll_to("python", NEW_IMAGE)?;
    for updated in [1, 5, 9] {
        wait::until(&format!("{updated} sandboxes were new"), 30, || {
            let state = ClusterState::read(scene)?;
            let unclaimed = state.unclaimed("python");
            let new = unclaimed
                .iter()
                .filter(|p| p["spec"]["containers"][0]["image"] == NEW_IMAGE)
                .count();
            wait::ensure(new >= updated, || format!("{new} are"))
        })?;
        (operator, ()) = replaced(scene, operator, || Ok(()))?;
    }
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    let after = identities(scene, "python")?;
    wait::ensure(before == after, || {
        format!("the claimed sandboxes were {before:?} and are {after:?}")
    })?;
    operator.stop()
}

pub fn told_to_end_in_a_burst_of_claims(scene: &Scene) -> Result<(), String> {
    let operator = scene.lab.start_operator()?;
    scene.create_pool(&pool("python", 60, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let (claims, operator) = in_a_burst(scene, ("run", 100), 5, || {
        scene.while_operator_is_down(|| {
            operator.stop()?;
            let left = left(scene, 100)?;
            scene.lab.print_at_end(format!(
                "claims left to the next operator by SIGTERM in a burst of 100: {left}"
            ));
            // The operator finished the bindings it had begun: every claim that holds a sandbox lists it in its status.
            ClusterState::read(scene)?.nothing_leaked()?;
            scene.lab.start_operator()
        })
    })?;
    all_bound(scene, &claims)?;
    wait_until_at_rest(scene, 90)?;
    operator.stop()
}

pub fn changes_made_while_it_was_down_are_caught_up_with(scene: &Scene) -> Result<(), String> {
    let operator = scene.lab.start_operator()?;
    scene.create_pool(&pool("python", 6, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let claims = burst(scene, "gone", 2, "python", &json!({}))?;
    all_bound(scene, &claims)?;
    wait_until_at_rest(scene, 60)?;
    let operator = scene.while_operator_is_down(|| {
        operator.stop()?;
        claims.iter().try_for_each(|claim| scene.delete_claim(claim))?;
        burst(scene, "new", 3, "python", &json!({}))?;
        let warm = ClusterState::read(scene)?
            .unclaimed("python")
            .iter()
            .map(|p| p["metadata"]["name"].clone())
            .next();
        scene.kubectl(
            &[
                "delete",
                "pod",
                warm.as_ref().and_then(|n| n.as_str()).unwrap_or_default(),
            ],
            None,
        )?;
        scene.patch_pool("python", &json!({"spec": {"replicas": 4}}))?;
        scene.roll_to("python", NEW_IMAGE)?;
        scene.lab.start_operator()
    })?;
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}

pub fn a_template_missing_over_a_restart_changes_nothing(scene: &Scene) -> Result<(), String> {
    let operator = scene.lab.start_operator()?;
    let shared = template("shared", &json!({}));
    scene.create(TEMPLATES, &shared)?;
    scene.create_pool(&pool_of("shared", "python", 4, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let (full, before) = (scene.pool("python")?, uids(scene)?);
    operator.stop()?;
    scene.lab.api.delete(TEMPLATES, &scene.namespace, "shared")?;
    let operator = scene.lab.start_operator()?;
    pool_says(scene, "python", "Progressing", "TemplateNotFound")?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    // The claim has taken a sandbox, and the pool creates no replacement without a template.
    says_throughout(scene, "python", "TemplateNotFound", 3)?;
    wait::ensure(uids(scene)? == before, || {
        format!("the pods were {before:?} and are {:?}", uids(scene))
    })?;
    let status = scene.pool("python")?["status"].clone();
    for field in ["updateRevision", "currentRevision"] {
        wait::ensure(status[field] == full["status"][field], || {
            format!("{field} was {} and is {status}", full["status"][field])
        })?;
    }
    operator.stop()?;
    let operator = scene.lab.start_operator()?;
    scene.create(TEMPLATES, &shared)?;
    wait_until_at_rest(scene, 60)?;
    let after = uids(scene)?;
    wait::ensure(before.iter().all(|uid| after.contains(uid)), || {
        format!("the same template rolled {before:?} to {after:?}")
    })?;
    operator.stop()
}

pub fn expect_two_operators(scene: &Scene) {
    scene.declare(|rules| {
        rules.two_operators = true;
        // Neither operator knows what the other did a moment ago. Where both bind the last sandboxes, a claim may
        // wait for the next one, so two operators keep no order.
        rules.unseen = SignedDuration::from_secs(1);
        rules.passed_over = SignedDuration::from_secs(60);
        rules.late = usize::MAX;
    });
}

pub fn two_operators_at_once_do_no_harm(scene: &Scene) -> Result<(), String> {
    expect_two_operators(scene);
    let (first, second) = (scene.lab.start_operator()?, scene.lab.start_operator()?);
    scene.create_pool(&pool("python", 20, &sim(&[("ready-after", "200ms")])))?;
    wait_until_at_rest(scene, 60)?;
    let claims = burst(scene, "run", 60, "python", &json!({}))?;
    scene.roll_to("python", NEW_IMAGE)?;
    all_bound(scene, &claims)?;
    wait_until_at_rest(scene, 90)?;
    claims.iter().try_for_each(|claim| scene.delete_claim(claim))?;
    wait_until_at_rest(scene, 60)?;
    first.stop()?;
    second.stop()
}

pub fn a_second_operator_takes_over_from_a_killed_one(scene: &Scene) -> Result<(), String> {
    expect_two_operators(scene);
    let (first, second) = (scene.lab.start_operator()?, scene.lab.start_operator()?);
    scene.create_pool(&pool("python", 10, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let (claims, _) = in_a_burst(scene, ("run", 20), 1, || {
        first.kill()?;
        left(scene, 20)
    })?;
    all_bound(scene, &claims)?;
    wait_until_at_rest(scene, 60)?;
    second.stop()
}

fn api_server_goes_away(scene: &Scene, how: &str) -> Result<(), String> {
    scene.declare(|rules| rules.gaps = true);
    let mut operator = scene.lab.start_operator()?;
    operator.server_restarts = true;
    scene.create_pool(&pool("python", 12, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let mut claims = scene.while_nodes_are_suspended(|| {
        let claims = burst(scene, "before", 20, "python", &json!({}))?;
        scene.while_operator_is_down(|| {
            left(scene, 20)?;
            scene.lab.cluster.tool(&[how, "apiserver"])?;
            scene.lab.cluster.tool(&["start", "apiserver"])
        })?;
        Ok(claims)
    })?;
    scene.await_scheduler()?;
    scene.wake_pods()?;
    claims.extend(burst(scene, "after", 5, "python", &json!({}))?);
    all_bound(scene, &claims)?;
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}

pub fn the_api_server_restarts_in_a_burst_of_claims(scene: &Scene) -> Result<(), String> {
    api_server_goes_away(scene, "stop")
}

pub fn the_api_server_crashes_in_a_burst_of_claims(scene: &Scene) -> Result<(), String> {
    api_server_goes_away(scene, "kill")
}
