//! Checks two operators that serve disjoint shards of the pools of one namespace.

use super::{all_bound, bound, burst, in_phase, names, says};
use crate::api::LEASES;
use crate::check::BINDINGS;
use crate::check::event::{Kind, text};
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{NEW_IMAGE, pool};
use crate::operator::{LONG_LEASE, Operator};
use crate::plugin::Call;
use crate::scene::Scene;
use crate::wait;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;
use warmpool::model::shard_selector::ShardSelector;

/// Namespace of the operators and of their leases.
const HOME: &str = "warmpool-system";
const FIRST: &str = "shard=first";
const SECOND: &str = "shard=second";
/// A claim that no operator has answered for this long may be told so by any.
const UNANSWERED: SignedDuration = SignedDuration::from_secs(60);

fn lease(selector: &str) -> Result<String, String> {
    let selector: ShardSelector = selector.parse()?;
    Ok(format!("warmpool-{}", selector.hash()))
}

/// Lets the account of the operator hold the leases of both shards: the chart's role grants those that the chart names.
fn grant_leases(scene: &Scene) -> Result<(), String> {
    let role = "shard-leases";
    let rules = json!([{
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "resourceNames": [lease(FIRST)?, lease(SECOND)?], "verbs": ["get", "list", "watch", "update"],
    }]);
    let metadata = json!({"name": role, "namespace": HOME});
    let api = "rbac.authorization.k8s.io/v1";
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rules},
        {"apiVersion": api, "kind": "RoleBinding", "metadata": metadata,
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
         "subjects": [{"kind": "ServiceAccount", "name": "warmpool", "namespace": HOME}]},
    ]});
    let cluster = &scene.lab.cluster;
    cluster
        .kubectl(&["apply", "-f", "-"], Some(&objects.to_string()))
        .map(drop)
}

/// An operator of a shard that leads it.
fn operator(scene: &Scene, selector: &str) -> Result<Operator, String> {
    scene.declare(|rules| rules.late = rules.late.saturating_add(BINDINGS));
    let arguments = [&["--pool-selector", selector][..], &LONG_LEASE].concat();
    let operator = scene.lab.start_operator_with(&arguments)?;
    // One that was killed has not released the lease.
    operator.says("leading", 60)?;
    Ok(operator)
}

/// A pool whose label `shard` has its name.
fn of_shard(name: &str) -> Value {
    let mut pool = pool(name, 6, &json!({}));
    pool["metadata"]["labels"] = json!({"shard": name, "lang": "python"});
    pool
}

/// Fails when the operator has written anything for a pool of the other shard.
fn left_alone(operator: &Operator, other: &str) -> Result<(), String> {
    let log = operator.text()?;
    // Any operator may tell a claim that nobody has answered.
    let is_told = |line: &&str| line.contains("no operator serves");
    let mut touched = log.lines().filter(|line| line.contains(&format!("/{other}")));
    let touched = touched.find(|line| !is_told(line));
    wait::ensure(touched.is_none(), || {
        format!("the operator of the other shard logged: {touched:?}")
    })
}

pub fn two_operators_serve_a_shard_each_and_the_other_goes_on_when_one_is_killed(
    scene: &Scene,
) -> Result<(), String> {
    grant_leases(scene)?;
    let (first, second) = (operator(scene, FIRST)?, operator(scene, SECOND)?);
    for selector in [FIRST, SECOND] {
        let lease = scene
            .lab
            .api
            .get(LEASES, HOME, &lease(selector)?)?
            .unwrap_or_default();
        let is_held = !text(&lease, "/spec/holderIdentity").is_empty();
        wait::ensure(is_held, || {
            format!("nobody holds the lease of {selector}: {lease}")
        })?;
    }
    for name in ["first", "second"] {
        scene.create_pool(&of_shard(name))?;
    }
    wait_until_at_rest(scene, 60)?;
    let claims = [
        burst(scene, "one", 5, "first", &json!({}))?,
        burst(scene, "two", 5, "second", &json!({}))?,
    ]
    .concat();
    all_bound(scene, &claims)?;
    // A claim that both pools would do for is served once, in the shard of the first pool by name.
    let spanning = json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "metadata": {"name": "spans"},
        "spec": {"poolSelector": {"matchLabels": {"lang": "python"}}},
    });
    scene.create(crate::api::CLAIMS, &spanning)?;
    let spans = bound(scene, "spans")?;
    wait::ensure(spans["status"]["pool"] == "first", || spans["status"].to_string())?;
    wait_until_at_rest(scene, 60)?;
    left_alone(&first, "second")?;
    let again = scene.while_operator_is_down(|| {
        first.kill()?;
        all_bound(scene, &burst(scene, "goes-on", 5, "second", &json!({}))?)?;
        let orphans = burst(scene, "waits", 3, "first", &json!({}))?;
        sleep(Duration::from_secs(3));
        for name in &orphans {
            let claim = scene.claim(name)?;
            wait::ensure(claim["status"].is_null(), || {
                format!("{name} was touched: {claim}")
            })?;
        }
        operator(scene, FIRST)
    })?;
    for name in names("waits", 3) {
        in_phase(scene, &name, "Bound", 30)?;
    }
    for pool in ["first", "second"] {
        scene.roll_to(pool, NEW_IMAGE)?;
    }
    all_bound(scene, &burst(scene, "rolls", 3, "first", &json!({}))?)?;
    wait_until_at_rest(scene, 60)?;
    left_alone(&again, "second")?;
    left_alone(&second, "first")?;
    again.stop()?;
    let gone = format!("No operator has held the lease {HOME}/{}", lease(FIRST)?);
    for (pool, is_told) in [("first", true), ("second", false)] {
        let said = Call::of(scene, &["why", &format!("pool/{pool}")]).run()?;
        let right = said.out.contains(&gone) == is_told && said.out.contains("No operator") == is_told;
        wait::ensure(right, || format!("{said:?}"))?;
    }
    second.stop()
}

pub fn a_pool_in_no_shard_has_its_claims_told_so_until_a_label_puts_it_into_one(
    scene: &Scene,
) -> Result<(), String> {
    grant_leases(scene)?;
    let (first, second) = (operator(scene, FIRST)?, operator(scene, SECOND)?);
    let mut nowhere = of_shard("nowhere");
    nowhere["metadata"]["labels"] = json!({});
    scene.create_pool(&nowhere)?;
    // For this claim no operator runs.
    scene.while_operator_is_down(|| {
        let came = Timestamp::now();
        scene.create_claim("run", "nowhere", &json!({}))?;
        sleep(Duration::from_secs(55));
        let why = says(scene, "run", "Bound", "PoolNotServed")?;
        wait::ensure(why.contains("--pool-selector"), || why.clone())?;
        let events = scene.history_up_to_now()?;
        let mut of_claim = events.iter().filter(|e| e.kind == Kind::Claim);
        let told = of_claim.find(|e| !e.object["status"].is_null());
        let waited = told.map(|e| e.at.duration_since(came));
        wait::ensure(waited >= Some(UNANSWERED), || {
            format!("it was told so after {waited:?}")
        })
    })?;
    scene.patch_pool("nowhere", &json!({"metadata": {"labels": {"shard": "second"}}}))?;
    in_phase(scene, "run", "Bound", 30)?;
    wait_until_at_rest(scene, 60)?;
    left_alone(&first, "nowhere")?;
    first.stop()?;
    second.stop()
}
