//! Checks explanations of claims.

use super::{CLAIM_UID, World, ago, condition, plain, revision_of};
use serde_json::json;

#[test]
fn a_bound_claim_names_its_sandbox_and_when_it_was_bound() {
    let sandbox = json!({
        "name": "p1", "uid": "p1-uid", "ip": "10.1.0.17", "revision": revision_of("image:1"),
        "boundTime": ago(312), "warm": true,
    });
    let status = json!({
        "phase": "Bound", "observedGeneration": 1, "pool": "python", "wait": "12ms", "sandboxes": [sandbox],
        "conditions": [condition("Bound", "True", "Bound", "b"), condition("Ready", "False", "SandboxNotReady", "r")],
    });
    let owner = json!([{
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "name": "run",
        "uid": CLAIM_UID.to_string() + "run", "controller": true,
    }]);
    let pod = json!({
        "metadata": {"labels": {"warmpool.dev/state": "claimed"}, "ownerReferences": owner},
        "status": {"conditions": null},
    });
    let world = plain(0)
        .pod("p1", "image:1", &pod)
        .claim("run", &json!({}), &status);
    let old = format!(
        "The sandbox runs revision {}, and the pool's latest is {}; no rollout touches a claimed sandbox.",
        revision_of("image:1"),
        revision_of("image:2")
    );
    world.explains(
        "claim/run",
        &[
            "Claim run is bound to sandbox p1 (10.1.0.17) of pool python since 2026-01-31T11:54:48Z (5m12s).",
            "It was available when the claim was created. The claim waited 12ms.",
            &old,
            "It is not Ready: sandbox p1 is not ready.",
        ],
    );
    world.explains(
        "pod/p1",
        &[
            "Sandbox p1 of pool python belongs to claim run.",
            "It is not Ready. It goes only with its claim, or when that expires.",
        ],
    );
}

#[test]
fn a_waiting_claim_shows_its_position_the_creations_and_its_deadline() {
    let world = plain(0)
        .claim("first", &json!({}), &json!({}))
        .claim("second", &json!({}), &json!({}));
    world.explains(
        "second",
        &[
            "Claim second has waited 30s for a sandbox of pool python: no sandbox is available yet; 1 claim is ahead.",
            "Pool python keeps no sandbox warm: its spec.replicas is 0.",
            "2 claims wait for this pool.",
            "2 sandboxes are missing, and the operator creates 2 now.",
            "It fails at 2026-01-31T12:04:31Z, in 4m31s, unless it is bound before (waitTimeoutSeconds).",
        ],
    );
}

#[test]
fn a_claim_that_only_waits_on_a_pool_of_none_shows_that_no_sandbox_will_come() {
    let world = plain(0).claim("run", &json!({"onEmpty": "Wait"}), &json!({}));
    world.explains(
        "run",
        &[
            "Claim run has waited 30s for a sandbox of pool python: no sandbox is available, and none will come from pool \
             python while its spec.replicas is 0 and onEmpty is Wait: raise replicas, or set onEmpty to Create; the claim is \
             first in line.",
            "1 claim waits for this pool.",
        ],
    );
    let answer = world.warming("p1").why("run");
    assert!(
        answer.contains(": no sandbox is available yet; the claim is first in line."),
        "{answer}"
    );
}

#[test]
fn a_limit_on_creations_is_named_with_its_field() {
    let limits = [
        (
            json!({"capacity": {"maxTotal": 1}}),
            "capacity.maxTotal is 1, claimed and terminating ones included, and allows 0 more.",
        ),
        (
            json!({"scaleStrategy": {"maxUnavailable": 1}}),
            "At most scaleStrategy.maxUnavailable (1) sandboxes warm up at once; the others are created as these become \
             available.",
        ),
    ];
    for (spec, sentence) in limits {
        let world = World::new(1, &spec, &json!({})).warming("p1");
        let world = world.claim("run", &json!({}), &json!({}));
        world.explains("run", &[sentence]);
        world.explains("pool/python", &[sentence]);
    }
    // A limit that is not reached is not named.
    let wide = json!({"capacity": {"maxTotal": 9}, "scaleStrategy": {"maxUnavailable": 9}});
    let world = World::new(1, &wide, &json!({})).warming("p1");
    let world = world.claim("run", &json!({}), &json!({}));
    let answer = world.why("run");
    assert!(
        !answer.contains("maxTotal") && !answer.contains("at once"),
        "{answer}"
    );
}

#[test]
fn rejections_by_the_api_server_are_quoted() {
    let rejected = condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota: pods=3");
    let world =
        World::new(2, &json!({}), &json!({"conditions": [rejected]})).claim("run", &json!({}), &json!({}));
    let sentence = "The API server rejects new sandboxes: exceeded quota: pods=3. The operator retries with a single \
                    sandbox, at least once a minute.";
    world.explains("claim/run", &[sentence]);
    world.explains("pool/python", &[sentence]);
}

#[test]
fn a_claim_on_a_missing_pool_names_the_pool_and_the_deadline() {
    let world = plain(0).claim("run", &json!({"poolRef": {"name": "node"}}), &json!({}));
    assert_eq!(
        world.why("run"),
        "Claim run has waited 30s: pool node does not exist in namespace ns.\n\
         It fails at 2026-01-31T12:04:31Z, in 4m31s, unless it is bound before (waitTimeoutSeconds)."
    );
}

#[test]
fn a_claim_for_the_latest_revision_shows_that_the_rollout_is_paused() {
    let paused = json!({"updateStrategy": {"paused": true}});
    let world = World::new(1, &paused, &json!({"currentRevision": revision_of("image:1")}))
        .revision(1, "image:1")
        .pod("p1", "image:1", &json!({}))
        .claim("run", &json!({"revisionPolicy": "Latest"}), &json!({}));
    let answer = world.why("run");
    let words = format!(
        "the pool's rollout to revision {} is paused",
        revision_of("image:2")
    );
    assert!(answer.contains(&words), "{answer}");
}

#[test]
fn a_claim_that_is_next_names_the_sandbox_to_bind() {
    let world = plain(1)
        .pod("p1", "image:2", &json!({}))
        .claim("run", &json!({}), &json!({}));
    assert_eq!(
        world.why("run"),
        "Claim run is next: the operator would bind it to sandbox p1 now."
    );
    world.explains(
        "pod/p1",
        &["Next the operator would bind it to claim run because it is available and the claim is next."],
    );
}

#[test]
fn a_claim_whose_binding_is_rejected_quotes_the_api_server() {
    let rejection = "the API server rejects the binding: this team may not have a sandbox";
    let status = json!({
        "phase": "Pending", "observedGeneration": 1, "pool": "python",
        "conditions": [condition("Bound", "False", "BindingRefused", rejection)],
    });
    let world = plain(1)
        .pod("p1", "image:2", &json!({}))
        .claim("run", &json!({}), &status);
    assert_eq!(
        world.why("run"),
        "Claim run is next: the operator would bind it to sandbox p1 now, but the API server rejects the binding: this \
         team may not have a sandbox.\n\
         It fails at 2026-01-31T12:04:31Z, in 4m31s, unless it is bound before (waitTimeoutSeconds)."
    );
}

#[test]
fn a_failed_claim_does_not_wait() {
    let status = json!({
        "phase": "Failed", "observedGeneration": 1, "pool": "python",
        "conditions": [condition("Bound", "False", "WaitTimeout", "too late")],
    });
    let world = plain(0).claim("run", &json!({}), &status);
    assert_eq!(
        world.why("run"),
        "Claim run is Failed: too late.\n\
         It does not wait any more; 'kubectl delete sandboxclaim run -n ns' removes it."
    );
}

#[test]
fn a_claim_on_a_pool_that_is_being_deleted_gets_no_sandbox() {
    let mut world = plain(1)
        .pod("p1", "image:2", &json!({}))
        .claim("run", &json!({}), &json!({}));
    world.0[0]["metadata"]["deletionTimestamp"] = json!(ago(5));
    assert_eq!(
        world.sentences("run").unwrap(),
        [
            "Claim run has waited 30s. Pool python is being deleted: it creates no sandbox and serves no claim.",
            "It fails at 2026-01-31T12:04:31Z, in 4m31s, unless it is bound before (waitTimeoutSeconds).",
        ]
    );
    assert_eq!(
        world.sentences("pod/p1").unwrap(),
        [
            "Sandbox p1 of pool python is unclaimed.",
            "Its pool is being deleted, so Kubernetes' garbage collector deletes the sandbox.",
        ]
    );
}

#[test]
fn a_claim_that_waits_for_a_replacement_waits_since_the_loss() {
    let status = json!({
        "phase": "Pending", "observedGeneration": 1, "pool": "python", "waitSeconds": 0.1, "boundTime": ago(25),
        "conditions": [condition("Bound", "False", "SandboxLost", "sandbox p1 is gone and is being replaced")],
    });
    let world = plain(0).claim("run", &json!({"onSandboxLost": "Replace"}), &status);
    let answer = world.why("run");
    assert!(answer.starts_with("Claim run has waited 20s for"), "{answer}");
}

#[test]
fn a_claim_that_expires_before_its_deadline_shows_when_it_expires() {
    let claim = json!({"shutdownTime": "2026-01-31T12:00:10Z"});
    for world in [plain(0), World::new(0, &json!({"replicas": "many"}), &json!({}))] {
        let answer = world.claim("run", &claim, &json!({})).why("run");
        let sentence = "It expires at 2026-01-31T12:00:10Z, in 10s, bound or not.";
        assert!(
            answer.ends_with(sentence) && !answer.contains("It fails"),
            "{answer}"
        );
    }
}
