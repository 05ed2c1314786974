//! The small worlds that are searched through. Each is there for what may happen in it.

use crate::api_server::Kind;
use crate::scene::{Scene, TEMPLATE};
use serde_json::{Value, json};

const PODS_AND_CLAIMS: &[Kind] = &[Kind::Pods, Kind::Claims];
const PODS_AND_POOLS: &[Kind] = &[Kind::Pods, Kind::Pools];

/// A world in which the status of the pool decides nothing.
fn binding(name: &'static str, replicas: usize, change: impl FnOnce(&mut Scene)) -> &'static Scene {
    Scene::new(name, replicas).with(|scene| {
        scene.quiet = true;
        scene.lagging = PODS_AND_CLAIMS;
        change(scene);
    })
}

/// A world in which the pool is edited.
fn rolling(name: &'static str, replicas: usize, change: impl FnOnce(&mut Scene)) -> &'static Scene {
    Scene::new(name, replicas).with(|scene| {
        scene.prompt = true;
        scene.lagging = PODS_AND_POOLS;
        change(scene);
    })
}

pub fn image(image: &str) -> Value {
    json!({"template": {"spec": {"containers": [{"name": "sandbox", "image": image}]}}})
}

/// The change of a PodTemplate to this image.
fn template_of(image: &str) -> Value {
    self::image(image)["template"].clone()
}

/// The handler of preDelete is a label that the template gives and that a user changes later.
pub fn pre_delete() -> Value {
    json!({
        "lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}}},
        "template": {"metadata": {"labels": {"hold": "yes"}}},
    })
}

pub fn a_claim_and_a_crash() -> &'static Scene {
    binding("a claim and a crash", 1, |scene| {
        scene.claims([json!({})]);
        scene.left.crashes = 1;
        scene.late = true;
    })
}

/// The size that the claims call for outlives the operator that chose it.
pub fn a_pool_that_sizes_itself_and_a_crash() -> &'static Scene {
    binding("a pool that sizes itself, and a crash", 0, |scene| {
        scene.pools[0].1["autoscaling"] = json!({"maxReplicas": 1});
        scene.claims([json!({})]);
        scene.left.crashes = 1;
        scene.prompt = true;
        scene.lagging = &[Kind::Claims];
    })
}

pub fn a_claim_and_a_lost_answer() -> &'static Scene {
    binding("a claim and a lost answer", 2, |scene| {
        scene.claims([json!({})]);
        scene.left.losses = 1;
        scene.late = true;
    })
}

pub fn two_claims_on_one_sandbox() -> &'static Scene {
    binding("two claims on one sandbox", 1, |scene| {
        scene.claims([json!({}), json!({})]);
        scene.prompt = true;
    })
}

/// The watch may lag when a claim seems to have lost its sandbox, so the pod is read first.
pub fn a_claim_that_loses_its_sandbox() -> &'static Scene {
    binding("a claim that loses its sandbox", 1, |scene| {
        scene.claims([json!({"onSandboxLost": "Replace"})]);
        scene.left.removals = 1;
        scene.prompt = true;
    })
}

/// One leader may publish what the other takes for surplus.
pub fn a_claim_that_loses_its_sandbox_and_two_operators() -> &'static Scene {
    replaced("a claim that loses its sandbox, and two operators", &[], false)
}

pub fn a_lost_sandbox_that_two_operators_learn_of_late() -> &'static Scene {
    replaced(
        "a lost sandbox that two operators learn of late",
        PODS_AND_CLAIMS,
        false,
    )
}

/// One leader is about to release the surplus sandbox by which the other may replace the lost one.
pub fn a_lost_sandbox_beside_a_surplus_one_and_two_operators() -> &'static Scene {
    replaced(
        "a lost sandbox beside a surplus one, and two operators",
        &[],
        true,
    )
}

/// Two leaders, of which each may replace the sandbox that a claim loses.
fn replaced(name: &'static str, lagging: &'static [Kind], surplus: bool) -> &'static Scene {
    binding(name, 1, |scene| {
        scene.surplus = surplus;
        scene.claims([json!({"onSandboxLost": "Replace"})]);
        scene.served = true;
        scene.left.removals = 1;
        scene.operators = 2;
        scene.prompt = true;
        scene.lagging = lagging;
    })
}

pub fn a_claim_whose_binding_is_rejected() -> &'static Scene {
    binding("a claim whose binding is rejected", 2, |scene| {
        scene.claims([json!({})]);
        scene.left.rejections = 2;
        scene.left.crashes = 1;
        scene.prompt = true;
        scene.lagging = &[Kind::Pods];
    })
}

/// The younger claim may go first while the older one pauses.
pub fn two_claims_and_a_rejected_binding() -> &'static Scene {
    binding("two claims and a rejected binding", 1, |scene| {
        scene.claims([json!({}), json!({})]);
        scene.left.rejections = 1;
        scene.prompt = true;
        scene.lagging = &[Kind::Claims];
    })
}

/// A try that was lost may have bound the sandbox, although the next one is rejected.
pub fn a_lost_answer_and_a_rejected_binding() -> &'static Scene {
    binding("a lost answer and a rejected binding", 2, |scene| {
        scene.claims([json!({})]);
        scene.left.losses = 1;
        scene.left.rejections = 1;
        scene.late = true;
    })
}

/// A pool whose template is a PodTemplate.
fn templated(name: &'static str, change: impl FnOnce(&mut Scene)) -> &'static Scene {
    Scene::new(name, 2).with(|scene| {
        scene.move_template();
        scene.quiet = true;
        scene.prompt = true;
        scene.lagging = &[Kind::Templates];
        change(scene);
    })
}

pub fn a_pod_template_that_changes_and_a_crash() -> &'static Scene {
    templated("a PodTemplate that changes, and a crash", |scene| {
        scene.left.edits = vec![(TEMPLATE, template_of("two"))].leak();
        scene.left.crashes = 1;
        scene.strict = true;
        scene.lagging = &[Kind::Pods, Kind::Templates];
    })
}

/// The pool keeps what it has until the PodTemplate is back.
pub fn a_pod_template_deleted_in_a_rollout() -> &'static Scene {
    templated("a PodTemplate deleted in a rollout", |scene| {
        let edits = [template_of("two"), Value::Null, Value::Bool(true)];
        scene.left.edits = edits.map(|edit| (TEMPLATE, edit)).to_vec().leak();
        scene.strict = true;
    })
}

/// The pool serves the claim with what it has.
pub fn a_missing_pod_template_and_a_crash() -> &'static Scene {
    templated("a missing PodTemplate and a crash", |scene| {
        scene.left.edits = vec![(TEMPLATE, Value::Null)].leak();
        scene.claims([json!({})]);
        scene.left.crashes = 1;
    })
}

pub fn a_claim_on_either_of_two_pools() -> &'static Scene {
    binding("a claim on either of two pools", 0, |scene| {
        scene.another_pool(json!({"replicas": 1}));
        let any = json!({"poolRef": null, "poolSelector": {"matchLabels": {"lang": "any"}}});
        scene.claims([any]);
        scene.left.edits = vec![("po", Value::Null)].leak();
        scene.left.crashes = 1;
        scene.prompt = true;
        scene.lagging = &[Kind::Pods, Kind::Claims, Kind::Pools];
    })
}

/// The first claim takes what the second one misses, and so the third had better not wait there.
pub fn a_claim_beside_a_batch_that_waits() -> &'static Scene {
    binding("a claim beside a batch that waits", 2, |scene| {
        scene.pool(json!({"capacity": {"maxTotal": 3}}));
        scene.another_pool(json!({"replicas": 1, "capacity": null}));
        let any = json!({"poolRef": null, "poolSelector": {"matchLabels": {"lang": "any"}}});
        scene.claims([json!({}), json!({"replicas": 3}), any]);
        scene.prompt = true;
        scene.lagging = &[];
    })
}

pub fn an_eviction_of_the_partition() -> &'static Scene {
    rolling("an eviction of the partition", 1, |scene| {
        scene.pool(json!({"updateStrategy": {"partition": 1, "maxUnavailable": 0, "maxSurge": 1}}));
        scene.edits([image("two")]);
        scene.claims([json!({})]);
        scene.left.evictions = 1;
        scene.quiet = true;
        scene.lagging = &[];
    })
}

pub fn a_claim_and_two_operators() -> &'static Scene {
    binding("a claim and two operators", 1, |scene| {
        scene.claims([json!({})]);
        scene.operators = 2;
        scene.prompt = true;
    })
}

pub fn a_sandbox_that_fails_or_falters() -> &'static Scene {
    binding("a sandbox that fails or falters", 1, |scene| {
        scene.claims([json!({})]);
        scene.left.deaths = 1;
        scene.left.unready = 1;
        scene.prompt = true;
    })
}

pub fn a_claim_that_is_given_up() -> &'static Scene {
    binding("a claim that is given up", 1, |scene| {
        scene.claims([json!({})]);
        scene.left.unclaims = 1;
        scene.left.crashes = 1;
        scene.prompt = true;
    })
}

pub fn a_broken_watch() -> &'static Scene {
    binding("a broken watch", 1, |scene| {
        scene.claims([json!({})]);
        scene.left.relists = 1;
        scene.left.removals = 1;
        scene.prompt = true;
    })
}

pub fn a_batch_and_a_crash() -> &'static Scene {
    binding("a batch and a crash", 2, |scene| {
        scene.claims([json!({"replicas": 2})]);
        scene.left.crashes = 1;
        scene.prompt = true;
    })
}

pub fn two_claims_that_fill_a_pool() -> &'static Scene {
    binding("two claims that fill a pool", 2, |scene| {
        scene.pool(json!({"capacity": {"maxTotal": 3}}));
        scene.claims([json!({}), json!({})]);
        scene.prompt = true;
        scene.strict = true;
    })
}

/// The pool is the first that the new operator lists.
pub fn an_edit_and_a_crash() -> &'static Scene {
    binding("an edit and a crash", 2, |scene| {
        scene.pool(json!({"capacity": {"maxTotal": 2}}));
        scene.edits([json!({"revisionHistoryLimit": 5})]);
        scene.left.crashes = 1;
        scene.left.removals = 1;
        scene.strict = true;
    })
}

/// What was refused may be wanted no more when there is room for it.
pub fn a_claim_and_a_quota() -> &'static Scene {
    binding("a claim and a quota", 0, |scene| {
        scene.claims([json!({})]);
        scene.left.quotas = 1;
        scene.left.unclaims = 1;
        scene.lagging = &[Kind::Pods];
        scene.prompt = true;
    })
}

/// The last event of a revision may be that it was stored.
pub fn two_edits_and_a_deleted_revision() -> &'static Scene {
    Scene::new("two edits and a deleted revision", 0).with(|scene| {
        scene.pool(json!({"revisionHistoryLimit": 0}));
        scene.edits([image("two"), image("three")]);
        scene.left.prunes = 1;
        scene.left.relists = 1;
        scene.quiet = true;
        scene.lagging = &[Kind::Revisions];
    })
}

pub fn a_full_pool_and_a_crash() -> &'static Scene {
    binding("a full pool and a crash", 1, |scene| {
        scene.pool(json!({"capacity": {"maxTotal": 2}}));
        scene.claims([json!({})]);
        scene.left.crashes = 1;
        scene.left.removals = 1;
        scene.prompt = true;
        scene.strict = true;
    })
}

pub fn a_rollout_and_a_crash() -> &'static Scene {
    rolling("a rollout and a crash", 2, |scene| {
        scene.edits([image("two")]);
        scene.left.crashes = 1;
        scene.strict = true;
    })
}

/// What has been deleted although its answer was lost is not available.
pub fn a_rollout_and_a_lost_answer() -> &'static Scene {
    rolling("a rollout and a lost answer", 2, |scene| {
        scene.edits([image("two")]);
        scene.left.losses = 1;
        scene.prompt = false;
        scene.quiet = true;
        scene.strict = true;
        scene.lagging = &[Kind::Pods];
    })
}

pub fn two_evictions_and_a_lost_answer() -> &'static Scene {
    binding("two evictions and a lost answer", 2, |scene| {
        scene.left.evictions = 2;
        scene.left.losses = 1;
        scene.strict = true;
        scene.lagging = &[Kind::Pods];
    })
}

pub fn a_surge_and_a_broken_watch() -> &'static Scene {
    rolling("a surge and a broken watch", 2, |scene| {
        scene.pool(json!({"updateStrategy": {"maxUnavailable": 0, "maxSurge": 1}}));
        scene.edits([image("two")]);
        scene.left.relists = 1;
        scene.strict = true;
    })
}

pub fn a_rollout_and_a_claim() -> &'static Scene {
    rolling("a rollout and a claim", 2, |scene| {
        scene.edits([image("two")]);
        scene.claims([json!({})]);
        scene.quiet = true;
        scene.strict = true;
        scene.lagging = &[Kind::Pods];
    })
}

pub fn a_rollout_that_never_comes_up() -> &'static Scene {
    rolling("a rollout that never comes up", 2, |scene| {
        scene.edits([image("broken")]);
        scene.left.crashes = 1;
        scene.strict = true;
        scene.quiet = true;
    })
}

pub fn a_scale_down_and_a_claim() -> &'static Scene {
    rolling("a scale down and a claim", 2, |scene| {
        scene.edits([json!({"replicas": 1})]);
        scene.claims([json!({})]);
        scene.quiet = true;
        scene.lagging = PODS_AND_CLAIMS;
        scene.prompt = false;
    })
}

/// What drains above `maxTotal` must not be wanted back for the sake of `replicas`.
pub fn less_room_than_replicas_and_a_crash() -> &'static Scene {
    rolling("less room than replicas, and a crash", 2, |scene| {
        scene.pool(pre_delete());
        scene.edits([json!({"capacity": {"maxTotal": 1}}), json!({"capacity": null})]);
        scene.left.crashes = 1;
        scene.quiet = true;
    })
}

pub fn two_evictions() -> &'static Scene {
    binding("two evictions", 2, |scene| {
        scene.left.evictions = 2;
        scene.left.crashes = 1;
        scene.prompt = true;
        scene.strict = true;
    })
}

/// Replaced first, and not forgotten by the operator that starts anew.
pub fn a_cordoned_node_and_a_crash() -> &'static Scene {
    draining("a cordoned node and a crash", 1, |scene| {
        scene.left.cordons = 1;
        scene.left.crashes = 1;
    })
}

/// Of a sandbox and its replacement one stays.
pub fn a_cordon_that_is_taken_back() -> &'static Scene {
    draining("a cordon that is taken back", 2, |scene| {
        scene.pool(json!({"updateStrategy": {"maxUnavailable": 0, "maxSurge": 1}}));
        scene.left.cordons = 1;
        scene.left.uncordons = 1;
        scene.lagging = &[Kind::Nodes];
    })
}

/// The claim takes the sandbox that stays.
pub fn a_cordoned_node_and_a_claim() -> &'static Scene {
    draining("a cordoned node and a claim", 2, |scene| {
        scene.claims([json!({})]);
        scene.left.cordons = 1;
        scene.left.lost_nodes = 1;
        scene.lagging = PODS_AND_CLAIMS;
    })
}

/// A world in which nodes are drained.
fn draining(name: &'static str, replicas: usize, change: impl FnOnce(&mut Scene)) -> &'static Scene {
    Scene::new(name, replicas).with(|scene| {
        scene.on_nodes(&["node-a", "node-b"]);
        scene.quiet = true;
        scene.prompt = true;
        scene.strict = true;
        scene.lagging = &[Kind::Pods, Kind::Nodes];
        change(scene);
    })
}

pub fn an_eviction_and_a_claim() -> &'static Scene {
    binding("an eviction and a claim", 1, |scene| {
        scene.claims([json!({})]);
        scene.left.evictions = 1;
        scene.prompt = true;
    })
}

pub fn two_claims_a_crash_and_a_lost_answer() -> &'static Scene {
    binding("two claims, a crash and a lost answer", 2, |scene| {
        scene.claims([json!({}), json!({})]);
        scene.left.crashes = 1;
        scene.left.losses = 1;
        scene.late = true;
        scene.prompt = true;
    })
}

pub fn two_claims_and_two_operators() -> &'static Scene {
    binding("two claims and two operators", 2, |scene| {
        scene.claims([json!({}), json!({})]);
        scene.operators = 2;
        scene.prompt = true;
    })
}

pub fn a_claim_two_operators_and_a_crash() -> &'static Scene {
    binding("a claim, two operators and a crash", 1, |scene| {
        scene.claims([json!({})]);
        scene.operators = 2;
        scene.left.crashes = 1;
        scene.late = true;
        scene.prompt = true;
    })
}

pub fn two_rollouts_a_crash_and_a_claim() -> &'static Scene {
    rolling("two rollouts, a crash and a claim", 3, |scene| {
        scene.edits([image("two"), image("three")]);
        scene.claims([json!({})]);
        scene.left.crashes = 1;
        scene.strict = true;
        scene.quiet = true;
        scene.lagging = &[Kind::Pods];
    })
}
