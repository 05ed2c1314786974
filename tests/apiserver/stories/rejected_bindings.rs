//! Checks bindings that the API server rejects.
//!
//! A policy rejects them, or a retry is rejected after the answer to the first try was lost.

use super::faults::expect_faults;
use super::{bound, says};
use crate::api::{PODS, POLICIES, POLICY_BINDINGS};
use crate::check::event::{Kind, text};
use crate::cluster_state::{label, wait_until_at_rest};
use crate::faults::{Fault, Rule};
use crate::objects::{claim, pool};
use crate::scene::Scene;
use crate::wait;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// Teams whose claims are refused, and that are their claims' names.
const TEAMS: [&str; 2] = ["forbidden", "unknown"];

/// The request that binds a sandbox.
const BINDING: &[&str] = &["patch pods"];

/// How long a claim may take to be served while another is refused, without waits for a processor.
const PROMPT: SignedDuration = SignedDuration::from_secs(3);

/// A policy that refuses pods of this story with the labels `team: forbidden` and `team: unknown`, the one as forbidden and
/// the other as invalid, and what puts it in force.
fn policy(scene: &Scene) -> [Value; 2] {
    let name = &scene.namespace;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"],
            }]},
            "validations": [{
                "expression": "object.metadata.?labels[?'team'].orValue('') != 'forbidden'",
                "message": "this team may not have a sandbox",
                "reason": "Forbidden",
            }, {
                "expression": "object.metadata.?labels[?'team'].orValue('') != 'unknown'",
                "message": "nobody knows this team",
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}},
        },
    });
    [policy, binding]
}

fn is_in_force(scene: &Scene) -> Result<(), String> {
    let pods = scene.pods()?;
    let pod = pods.first().map_or("", |pod| text(pod, "/metadata/name"));
    let label = |value: Value| {
        let patch = json!({"metadata": {"labels": {"team": value}}});
        scene.lab.api.merge(PODS, &scene.namespace, pod, &patch)
    };
    match label(json!("forbidden")) {
        Err(error) if error.message.contains("this team may not") => Ok(()),
        answer => {
            label(Value::Null)?;
            Err(format!("{:?}", answer.err()))
        }
    }
}

pub fn a_claim_that_a_policy_refuses_stops_no_other(scene: &Scene) -> Result<(), String> {
    // The rejected claims are older than the served ones, and available sandboxes exist that they may not have.
    expect_faults(scene);
    scene.create_pool(&pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let [policy, binding] = policy(scene);
    scene.lab.api.create(POLICIES, "", &policy)?;
    scene.lab.api.create(POLICY_BINDINGS, "", &binding)?;
    wait::until("the policy was in force", 60, || is_in_force(scene))?;
    for team in TEAMS {
        let metadata = json!({"podMetadata": {"labels": {"team": team}}, "waitTimeoutSeconds": 25});
        scene.create_claim(team, "python", &metadata)?;
    }
    let outcome = both_claims_say(scene, "BindingRefused")
        .and_then(|()| others_are_served(scene))
        .and_then(|()| both_claims_say(scene, "WaitTimeout"));
    for what in [POLICY_BINDINGS, POLICIES] {
        scene.lab.api.delete(what, "", &scene.namespace)?;
    }
    outcome?;
    wait_until_at_rest(scene, 60)
}

/// Both refused claims come to say this reason, in the words of the policy.
fn both_claims_say(scene: &Scene, reason: &str) -> Result<(), String> {
    for (team, words) in TEAMS
        .iter()
        .zip(["this team may not have a sandbox", "nobody knows this team"])
    {
        let said = says(scene, team, "Bound", reason)?;
        wait::ensure(said.contains(words), || said)?;
    }
    Ok(())
}

fn others_are_served(scene: &Scene) -> Result<(), String> {
    for n in 0..8 {
        let (name, came) = (format!("run-{n}"), Timestamp::now());
        scene.create(crate::api::CLAIMS, &claim(&name, "python", &json!({})))?;
        bound(scene, &name)?;
        let took = scene.elapsed(came, Timestamp::now());
        wait::ensure(took < PROMPT, || format!("{name} was bound after {took:?}"))?;
        // Two rounds of the refused one go by.
        std::thread::sleep(Duration::from_millis(1500));
    }
    let refused = scene.writes(|w| w.verb == "patch" && w.resource == "pods" && w.code >= 400)?;
    wait::ensure(refused.len() >= 2, || "the policy refused nothing".into())?;
    wait::ensure(refused.len() <= 24, || {
        format!("{} tries were refused", refused.len())
    })
}

/// A policy that comes into force between two tries rejects the second, although the first has bound the pod. The second try
/// needs a late watch, because the operator does not bind a pod again that the watch has shown bound.
pub fn a_binding_is_made_although_a_later_try_is_refused(scene: &Scene) -> Result<(), String> {
    expect_faults(scene);
    let operator = scene.lab.start_operator_behind_faults(&[])?;
    scene.create_pool(&pool("python", 4, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let faults = &scene.lab.proxy()?.faults;
    let here = |rule: Rule| rule.on("pods").within(&scene.namespace);
    let (late, refused) = (Fault::EventLate(Duration::from_secs(2)), Fault::Refused(403));
    faults.add([
        Rule::of(late, 1.0, &["watch"]).on("pods"),
        // The first try meets this, and each later one what follows.
        here(Rule::of(Fault::ReplyLost, 0.0, &["patch"])).and_first(BINDING),
        here(Rule::of(refused, 1.0, &["patch", "get"])),
    ]);
    scene.create_claim("run", "python", &json!({}))?;
    let struck = |fault| faults.has_struck_each(&scene.namespace, fault, BINDING);
    let both_struck = wait::until("a reply was lost and a later try refused", 20, || {
        struck(Fault::ReplyLost)?;
        struck(refused)
    });
    std::thread::sleep(Duration::from_secs(3));
    faults.stop(None);
    both_struck?;
    bound(scene, "run")?;
    let held = scene.count(Kind::Pod, |pod| label(pod, "claim") == "run");
    wait::ensure(held == 1, || format!("it holds {held} sandboxes"))?;
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}
