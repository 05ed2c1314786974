//! Checks explanations of pools.

use super::{World, condition, plain, revision_of};
use serde_json::{Value, json};

#[test]
fn a_full_pool_has_nothing_to_do() {
    let status = json!({"currentRevision": revision_of("image:2")});
    let spec = json!({"updateStrategy": {"maxUnavailable": 1}});
    let world = World::new(1, &spec, &status).pod("p1", "image:2", &json!({}));
    let rollout = format!("Rollout: revision {} is complete.", revision_of("image:2"));
    assert_eq!(
        world.sentences("python").unwrap(),
        [
            "Pool python is full: 1 available, 1 wanted.",
            &rollout,
            "There is nothing to do now."
        ]
    );
}

#[test]
fn a_pool_that_sizes_itself_says_why_it_has_its_size_and_what_limits_it() {
    let message = "2 until a smaller size has been enough for stabilizationWindowSeconds";
    let status = json!({
        "currentRevision": revision_of("image:2"), "desiredReplicas": 2, "autoscaling": {"message": message},
    });
    let spec = json!({"autoscaling": {"maxReplicas": 4, "targetHitRate": "200%"}});
    World::new(1, &spec, &status).pod("p1", "image:2", &json!({})).explains(
        "pool/python",
        &[
            "Pool python is not full: 1 available, 2 wanted.",
            "Autoscaling chose its size: 2 until a smaller size has been enough for stabilizationWindowSeconds.",
            "It is limited: the pool keeps its size 2: spec.autoscaling.targetHitRate: \"200%\" is not a percentage above \
             0% and below 100%; write for example \"99%\".",
        ],
    );
}

#[test]
fn a_pool_that_warms_up_shows_its_counts_and_creations() {
    let world = plain(3).pod("p1", "image:2", &json!({})).warming("p2");
    let next = format!(
        "Next the operator would create a sandbox of revision {} to fill the pool up, once the revision is stored.",
        revision_of("image:2")
    );
    world.explains(
        "python",
        &[
            "Pool python is not full: 1 available, 3 wanted, 1 not available yet.",
            "1 sandbox is missing, and the operator creates 1 now.",
            &next,
        ],
    );
}

/// Three old sandboxes and a new template.
fn rolling(spec: &Value, condition: &Value) -> World {
    let status = json!({"currentRevision": revision_of("image:1"), "conditions": [condition]});
    let world = World::new(3, spec, &status).revision(1, "image:1");
    ["p1", "p2", "p3"]
        .iter()
        .fold(world, |world, name| world.pod(name, "image:1", &json!({})))
}

#[test]
fn a_paused_rollout_shows_the_command_that_resumes_it() {
    let paused = condition("Progressing", "Unknown", "Paused", "paused; 0 of 3 run it");
    rolling(&json!({"updateStrategy": {"paused": true}}), &paused).explains(
        "pool/python",
        &[
            "Rollout: paused; 0 of 3 run it.",
            "'kubectl warmpool rollout resume python -n ns' lets it go on.",
            "There is nothing to do now.",
        ],
    );
}

#[test]
fn the_stored_condition_is_quoted_only_for_the_observed_spec() {
    let words = "0 of 3; sandboxes of revision x failed to become available twice";
    let failing = condition("Progressing", "True", "Progressing", words);
    let mut world = rolling(&json!({}), &failing);
    let sentence = format!("Rollout: {words}.");
    world.explains("python", &[&sentence]);
    world.0[0]["metadata"]["generation"] = json!(3);
    let answer = world.why("python");
    assert!(!answer.contains(words), "{answer}");
    let lag = "The operator has not observed the latest change of the spec; if this does not change, check that the \
               operator is running.";
    world.explains("python", &[lag]);
}

#[test]
fn a_rollout_without_budget_shows_how_many_sandboxes_must_stay() {
    let progressing = condition("Progressing", "True", "Progressing", "0 of 3");
    let spec = json!({"updateStrategy": {"maxUnavailable": 1}});
    let mut world = rolling(&spec, &progressing);
    world.0.pop();
    world.warming("p4").explains(
        "python",
        &[
            "No old sandbox can be deleted now: 2 are available, and updateStrategy.maxUnavailable (1) requires 2 to stay available.",
        ],
    );
    let on_replenish = rolling(&json!({"updateStrategy": {"type": "OnReplenish"}}), &progressing);
    on_replenish.explains(
        "python",
        &["Its strategy is OnReplenish: old sandboxes are replaced only as claims take them."],
    );
    let answer = rolling(&spec, &progressing).why("python");
    assert!(
        answer.contains("delete p") && !answer.contains("No more old"),
        "within the budget the operator replaces an old sandbox: {answer}"
    );
}

#[test]
fn a_pod_with_a_foreign_state_label_shows_how_it_comes_back() {
    let foreign = json!({"metadata": {"labels": {"warmpool.dev/state": "debug"}}});
    let missing = json!({"metadata": {"labels": {"warmpool.dev/state": null}}});
    let world = plain(1)
        .pod("p1", "image:2", &json!({}))
        .pod("p3", "image:2", &foreign);
    let sentence = |pods: &str, pod: &str| {
        format!(
            "{pods} no label warmpool.dev/state that the operator writes for an unclaimed sandbox: it neither claims nor \
             deletes such a pod, and the pod counts toward capacity.maxTotal. Give {pod} back to the pool with 'kubectl label \
             pod {pod} -n ns --overwrite warmpool.dev/state=warm', or delete it."
        )
    };
    world.explains("python", &[&sentence("Pod p3 has", "p3")]);
    let world = world.pod("p2", "image:2", &missing);
    world.explains("python", &[&sentence("2 pods have", "p2")]);
}

#[test]
fn a_missing_template_is_the_only_explanation_of_a_stopped_pool() {
    let spec = json!({"template": null, "templateRef": {"name": "shared"}});
    let world = World::new(2, &spec, &json!({}));
    assert_eq!(
        world.why("python"),
        "Pool python has 0 sandboxes, 0 of them available.\n\
         Nothing is created or deleted: PodTemplate shared does not exist in namespace ns; create it, or name \
         another one in spec.templateRef. Warm sandboxes can still be claimed.\n\
         There is nothing to do now."
    );
}

#[test]
fn a_pool_whose_sandboxes_do_not_come_up_shows_each_reason_and_when_the_first_is_replaced() {
    let fails = |reason: &str, message: &str| {
        let waiting = json!({"waiting": {"reason": reason, "message": message}});
        let container = json!({"name": "main", "restartCount": 0, "state": waiting});
        json!({"status": {"phase": "Pending", "conditions": null, "containerStatuses": [container]}})
    };
    let spec = json!({"warmUpDeadlineSeconds": 100});
    let unready = json!({"status": {"phase": "Running", "conditions": null}});
    let world = World::new(4, &spec, &json!({}))
        .pod("p1", "image:2", &fails("ErrImagePull", "image:2: not found"))
        .pod("p2", "image:2", &fails("ImagePullBackOff", "image:2: not found"))
        .pod(
            "p3",
            "image:2",
            &fails("CreateContainerConfigError", "no secret \"db\""),
        )
        .pod("p4", "image:2", &unready)
        .revision(1, "image:2");
    world.explains(
        "python",
        &[
            "Pool python is not full: 0 available, 4 wanted, 4 not available yet.",
            "2 of 4 warming sandboxes: container main: ImagePullBackOff (image:2: not found); 'kubectl warmpool why pod/p1 -n \
             ns' says more.",
            "1 of 4 warming sandboxes: container main: CreateContainerConfigError (no secret \"db\"); 'kubectl warmpool why \
             pod/p3 -n ns' says more.",
            "1 sandbox starts up: 1 is Running and not Ready.",
            "The operator waits for the warming sandboxes, and replaces the first at 2026-01-31T12:00:10Z, in 10s, unless it is \
             available before (warmUpDeadlineSeconds).",
        ],
    );
}
