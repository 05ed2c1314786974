//! Checks explanations of sandboxes.

use super::{World, ago, plain, revision_of};
use serde_json::json;

#[test]
fn each_unmet_condition_of_availability_is_named() {
    let hook =
        json!({"labelsHandler": {"example.com/checked": "yes"}, "finalizersHandler": ["example.com/held"]});
    let spec = json!({"minReadySeconds": 90, "lifecycle": {"preNormal": hook}});
    let ready = json!({
        "metadata": {"labels": {"example.com/checked": "yes"}, "finalizers": ["example.com/held"]},
    });
    let cases = [
        (
            json!({"spec": {"nodeName": null}, "status": {"phase": "Pending", "conditions": null}}),
            "It is not available: it is not scheduled to a node; it has not been Ready yet; these preNormal \
             handlers are missing: label example.com/checked=yes, finalizer example.com/held.",
        ),
        (
            json!({
                "metadata": ready["metadata"],
                "status": {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": ago(10)}]},
            }),
            "It is not available: it has not been Ready since 2026-01-31T11:59:50Z.",
        ),
        (
            json!({"metadata": {"labels": {"example.com/checked": "yes"}}}),
            "It is not available: these preNormal handlers are missing: finalizer example.com/held.",
        ),
        (
            ready,
            "It is Ready and not available yet: minReadySeconds end in 30s, at 2026-01-31T12:00:30Z.",
        ),
    ];
    for (more, sentence) in cases {
        let world = World::new(1, &spec, &json!({})).pod("p1", "image:2", &more);
        world.explains("pod/p1", &["Sandbox p1 of pool python is unclaimed.", sentence]);
    }
}

#[test]
fn reasons_of_kubelet_and_scheduler_are_quoted() {
    let waits =
        |reason: &str| json!([{"name": "main", "restartCount": 0, "state": {"waiting": {"reason": reason}}}]);
    let unscheduled = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
    let cases = [
        (
            json!({"containerStatuses": waits("ImagePullBackOff")}),
            "container main: ImagePullBackOff; ",
        ),
        (
            json!({"initContainerStatuses": waits("CrashLoopBackOff")}),
            "container main: CrashLoopBackOff; ",
        ),
        (json!({"containerStatuses": waits("ContainerCreating")}), ""),
        (json!({"conditions": unscheduled}), "Unschedulable; "),
    ];
    for (status, reasons) in cases {
        let mut more = json!({"status": {"phase": "Pending", "conditions": null}});
        json_patch::merge(&mut more["status"], &status);
        let sentence =
            format!("It is not available: its phase is Pending; {reasons}it has not been Ready yet.");
        plain(1).pod("p1", "image:2", &more).explains("p1", &[&sentence]);
    }
}

#[test]
fn a_sandbox_that_does_not_become_available_shows_when_it_is_replaced() {
    let world = World::new(1, &json!({"warmUpDeadlineSeconds": 100}), &json!({})).warming("p1");
    world.explains(
        "p1",
        &["It is replaced at 2026-01-31T12:00:10Z, in 10s, unless it becomes available before (warmUpDeadlineSeconds)."],
    );
    let world = World::new(1, &json!({"warmUpDeadlineSeconds": 60}), &json!({})).warming("p1");
    world.explains(
        "p1",
        &[
            "Its warm-up deadline passed at 2026-01-31T11:59:30Z (warmUpDeadlineSeconds).",
            "Next the operator would delete it because it did not become available within warmUpDeadlineSeconds.",
        ],
    );
}

#[test]
fn a_sandbox_with_an_unknown_state_is_neither_claimed_nor_deleted() {
    let by_hand = json!({"metadata": {"labels": {"warmpool.dev/state": "mine"}}});
    let world = plain(1).pod("p1", "image:2", &by_hand);
    world.explains(
        "p1",
        &[
            "Its label warmpool.dev/state is \"mine\", which the operator does not write. The operator does not claim or \
             delete the sandbox until you set the label to \"warm\".",
            "The operator would not touch it now.",
        ],
    );
}

#[test]
fn a_draining_sandbox_names_the_handlers_that_delay_it() {
    let spec = json!({"lifecycle": {"preDelete": {"labelsHandler": {"example.com/held": "yes"}}}});
    let labels = json!({"warmpool.dev/state": "draining", "example.com/held": "yes"});
    let world =
        World::new(0, &spec, &json!({})).pod("p1", "image:2", &json!({"metadata": {"labels": labels}}));
    world.explains(
        "p1",
        &["It is draining: it is deleted when these preDelete handlers are removed: label example.com/held=yes."],
    );
}

#[test]
fn the_ranks_for_claiming_and_removal_are_those_of_the_planner() {
    let cheap = json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}});
    let evicted = json!({"metadata": {"labels": {"warmpool.dev/evict": "true"}}});
    let spec = json!({"updateStrategy": {"paused": true}, "capacity": {"maxWarm": 5}});
    let world = World::new(2, &spec, &json!({"currentRevision": revision_of("image:1")}))
        .revision(1, "image:1")
        .pod("old", "image:1", &json!({}))
        .pod("cheap", "image:2", &cheap)
        .pod("wished", "image:2", &evicted)
        .warming("warming");
    let ranks = [
        ("warming", None, "1st"),
        ("cheap", Some("1st"), "2nd"),
        ("old", Some("2nd"), "3rd"),
        ("wished", None, "4th"),
    ];
    for (name, claiming, removal) in ranks {
        let answer = world.sentences(&format!("pod/{name}")).unwrap();
        let claimed = claiming.map(|rank| format!("It is the {rank} of 2 to be claimed."));
        assert_eq!(
            answer.iter().find(|s| s.ends_with("to be claimed.")),
            claimed.as_ref()
        );
        let removed = format!("It is the {removal} of 4 to be deleted when the pool has too many.");
        assert!(answer.contains(&removed), "{name}: {answer:#?}");
    }
    let old = format!(
        "It runs the old revision {}; the pool's latest is {}.",
        revision_of("image:1"),
        revision_of("image:2")
    );
    world.explains("old", &["It is available since 2026-01-31T11:59:00Z (1m).", &old]);
    world.explains(
        "wished",
        &[
            "Its label warmpool.dev/evict=true requests its replacement: no claim gets it, and it is deleted as soon as \
             enough others are available.",
            "Next the operator would delete it because its label warmpool.dev/evict asks for that.",
        ],
    );
}

#[test]
fn a_pod_with_the_label_but_without_an_owner_is_not_touched() {
    let orphan = json!({"metadata": {"ownerReferences": null}});
    assert_eq!(
        plain(0).pod("p1", "image:2", &orphan).why("pod/p1"),
        "Pod p1 has the label of pool python, but no pool or claim owns it; the operator does not touch it."
    );
}

#[test]
fn a_sandbox_of_a_pool_with_an_error_has_no_deadline() {
    let spec = json!({"template": null, "templateRef": {"name": "shared"}, "warmUpDeadlineSeconds": 60});
    let world = World::new(1, &spec, &json!({})).warming("p1");
    let answer = world.why("p1");
    let stopped = "\nNothing is created or deleted: PodTemplate shared does not exist";
    assert!(
        answer.contains(stopped) && !answer.contains("warmUpDeadlineSeconds"),
        "{answer}"
    );
}

#[test]
fn without_min_ready_seconds_the_clock_of_the_node_does_not_matter() {
    let ahead = json!([{"type": "Ready", "status": "True", "lastTransitionTime": ago(-2)}]);
    let world = plain(1).pod("p1", "image:2", &json!({"status": {"conditions": ahead}}));
    world.explains("p1", &["It is available since 2026-01-31T12:00:02Z (0s)."]);
}

#[test]
fn a_sandbox_that_cannot_stay_on_its_node_says_why_and_until_when() {
    let cordoned = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"},
        "spec": {"unschedulable": true, "taints": [{
            "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": ago(20),
        }]},
    });
    let request = json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "EvictionRequest",
        "metadata": {"name": "move", "namespace": "ns", "creationTimestamp": ago(20)},
        "spec": {"target": {"pod": {"name": "p1", "uid": "p1-uid"}}, "requester": "example.com/a", "intent": "Eviction"},
    });
    for (object, reason) in [
        (cordoned, "its node is cordoned"),
        (request, "an EvictionRequest names it"),
    ] {
        let mut world = plain(1).revision(1, "image:2").pod("p1", "image:2", &json!({}));
        world.0.push(object);
        let sentence = format!(
            "It cannot stay on node node-1, {reason}: it goes once its replacement is available, and at \
             2026-01-31T12:09:40Z at the latest (disruption.drainDeadlineSeconds)."
        );
        world.explains("pod/p1", &[&sentence]);
    }
}
