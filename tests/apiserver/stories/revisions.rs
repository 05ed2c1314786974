//! Checks stored revisions: their limit, their names and their labels.

use super::rollouts::everything_unclaimed_runs;
use super::{all_bound, bound, burst};
use crate::api::{Api, CLAIMS, POOLS, REVISIONS};
use crate::check::event::{Change, Kind, text};
use crate::cluster_state::{ClusterState, controller, label, wait_until_at_rest};
use crate::objects::{NEW_IMAGE, OLD_IMAGE, claim, pool, sim, with};
use crate::scene::{Scene, make_namespace};
use crate::wait;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::{Duration, Instant};
use warmpool::model::revision::{Template, hash};

/// Short hashes of the stored revisions.
fn stored(scene: &Scene) -> Result<Vec<String>, String> {
    let all = scene.lab.api.list(REVISIONS, &scene.namespace)?;
    let hash = |r: &Value| {
        r["metadata"]["labels"]["warmpool.dev/revision"]
            .as_str()
            .map(str::to_string)
    };
    Ok(all.iter().filter_map(hash).collect())
}

fn only_the_present_one_is_stored(scene: &Scene) -> Result<(), String> {
    wait::until("only the present revision was stored", 30, || {
        let present = text(&scene.pool("python")?, "/status/updateRevision").to_string();
        let all = stored(scene)?;
        wait::ensure(all == [present], || format!("{all:?}"))
    })
}

pub fn without_history_a_rollout_still_refills_from_the_old_revision(scene: &Scene) -> Result<(), String> {
    let none = json!({"revisionHistoryLimit": 0, "updateStrategy": {"maxUnavailable": 1}});
    scene.create_pool(&pool("python", 4, &none))?;
    wait_until_at_rest(scene, 30)?;
    let old = stored(scene)?;
    scene.patch_pool("python", &json!({"spec": sim(&[("hold", "true")])}))?;
    wait::until("the broken rollout had begun", 30, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["updated"] == 1 && status["available"] == 3, || {
            status.to_string()
        })
    })?;
    // What claims take comes back from a template that only its stored revision holds.
    all_bound(scene, &burst(scene, "run", 3, "python", &json!({}))?)?;
    wait::until("what the claims took was there again", 30, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["claimed"] == 3 && status["available"] == 3, || {
            status.to_string()
        })
    })?;
    let all = stored(scene)?;
    wait::ensure(all.len() == 2 && all.contains(&old[0]), || {
        format!("both live revisions should be stored: {all:?}")
    })?;
    let back = json!({"template": {"metadata": {"annotations": {"sim.warmpool.dev/hold": null}}}});
    scene.patch_pool("python", &json!({"spec": back}))?;
    wait_until_at_rest(scene, 60)?;
    only_the_present_one_is_stored(scene)?;
    let again = stored(scene)?;
    wait::ensure(again == old, || format!("{old:?} became {again:?}"))
}

pub fn without_history_an_old_template_is_written_anew_and_rolls(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 4, &json!({"revisionHistoryLimit": 0})))?;
    wait_until_at_rest(scene, 30)?;
    let first = stored(scene)?;
    scene.roll_to("python", NEW_IMAGE)?;
    wait_until_at_rest(scene, 60)?;
    only_the_present_one_is_stored(scene)?;
    scene.roll_to("python", OLD_IMAGE)?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", OLD_IMAGE)?;
    only_the_present_one_is_stored(scene)?;
    let again = stored(scene)?;
    wait::ensure(again == first, || {
        format!("the same template was revision {first:?} and is now {again:?}")
    })
}

pub fn a_revision_whose_name_is_taken_gets_another(scene: &Scene) -> Result<(), String> {
    let pool = pool("python", 2, &json!({}));
    let hash = hash(&Template::new(pool["spec"]["template"].clone()).canonical, 0);
    let stray = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": format!("python-{hash}"),
            "labels": {"warmpool.dev/pool": "python", "warmpool.dev/revision": hash},
        },
        "revision": 1,
        "data": {"spec": {"template": {"spec": {"containers": []}}}},
    });
    let before = scene.create(REVISIONS, &stray)?;
    scene.create_pool(&pool)?;
    wait_until_at_rest(scene, 30)?;
    let status = scene.pool("python")?["status"].clone();
    let other = status["updateRevision"] != hash.as_str() && status["collisionCount"] == 1;
    wait::ensure(other, || format!("{hash} is taken, and the pool says {status}"))?;
    let name = text(&before, "/metadata/name");
    let after = scene.lab.api.get(REVISIONS, &scene.namespace, name)?;
    wait::ensure(after.as_ref() == Some(&before), || {
        format!("{before} became {after:?}")
    })
}

pub fn a_revision_gets_back_the_label_that_was_taken_off(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let first = stored(scene)?;
    let name = format!("python-{}", first[0]);
    let before = Written::by_operator(scene)?;
    scene.kubectl(
        &["label", "controllerrevision", &name, "warmpool.dev/pool-"],
        None,
    )?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    wait_until_at_rest(scene, 30)?;
    wait::until("the label was back", 30, || {
        let back = scene.lab.api.get(REVISIONS, &scene.namespace, &name)?;
        let back = back.unwrap_or_default();
        wait::ensure(label(&back, "pool") == "python", || back.to_string())
    })?;
    // It cannot be created, since it is there, and is marked then.
    let spent = Written::by_operator(scene)?.less(&before).revisions;
    wait::ensure(spent == 2, || format!("{spent} writes of revisions"))
}

const FLIPS: usize = 10;
const WARM: usize = 8;
const MAX_UNAVAILABLE: usize = 2;
const READY_AFTER: Duration = Duration::from_millis(300);

/// How many sandboxes may be replaced when flips go on for this time. Each flip, and each warm-up meanwhile, may cost what
/// the budget lets go, and the last flip a whole rollout.
fn most_replaced(flipping: Duration) -> usize {
    let warm_ups = (flipping.as_millis() / READY_AFTER.as_millis()) as usize;
    MAX_UNAVAILABLE * (FLIPS + warm_ups) + WARM
}

pub fn a_template_flipped_ten_times_costs_a_bounded_number_of_writes(scene: &Scene) -> Result<(), String> {
    let ready_after = format!("{}ms", READY_AFTER.as_millis());
    let spec = with(
        sim(&[("ready-after", &ready_after)]),
        &json!({"updateStrategy": {"maxUnavailable": MAX_UNAVAILABLE}}),
    );
    scene.create_pool(&pool("python", WARM as i64, &spec))?;
    wait_until_at_rest(scene, 30)?;
    let before = Written::by_operator(scene)?;
    let since = Instant::now();
    for flip in 1..=FLIPS {
        scene.roll_to("python", if flip % 2 == 0 { "sandbox:3" } else { NEW_IMAGE })?;
        sleep(Duration::from_millis(100));
    }
    let flipping = since.elapsed();
    wait_until_at_rest(scene, 60)?;
    let seconds = since.elapsed().as_secs_f64();
    everything_unclaimed_runs(scene, "python", "sandbox:3")?;
    let spent = Written::by_operator(scene)?.less(&before);
    let summary = format!(
        "template flipped {FLIPS} times within {:.1} s, {WARM} sandboxes: {spent:?} in {seconds:.1} s",
        flipping.as_secs_f64()
    );
    scene.lab.print_at_end(summary.clone());
    // Two templates are stored once each; every later flip only makes the other one the newest.
    let bounded = spent.created <= most_replaced(flipping)
        && spent.deleted == spent.created
        // One whose answer comes after the next flip may be written again.
        && spent.revisions <= FLIPS + 2
        && spent.statuses as f64 <= seconds + 2.0
        && spent.events <= 2 * spent.statuses
        && spent.others == 0;
    wait::ensure(bounded, || summary)?;
    each_refused_deletion_met_a_change(scene)?;
    let all = stored(scene)?;
    wait::ensure(all.len() == 3, || format!("the templates were three: {all:?}"))
}

/// A deletion is refused if the pod has changed since the operator saw it. Unless it has changed once more, it is not refused
/// again.
fn each_refused_deletion_met_a_change(scene: &Scene) -> Result<(), String> {
    let refused = scene.writes(|w| w.verb == "delete" && w.resource == "pods" && w.code == 409)?;
    let history = scene.history_up_to_now()?;
    for write in &refused {
        let name = &write.name;
        let changes = history
            .iter()
            .filter(|event| {
                event.kind == Kind::Pod && event.change == Change::Modified && event.name() == name
            })
            .count();
        let refusals = refused.iter().filter(|other| other.name == *name).count();
        wait::ensure(refusals <= changes, || {
            format!("the deletion of {name} was refused {refusals} times, and it changed {changes} times")
        })?;
    }
    Ok(())
}

/// The operator's writes, by what they are about.
#[derive(Debug, Default)]
struct Written {
    created: usize,
    deleted: usize,
    revisions: usize,
    statuses: usize,
    /// Deletions of a pod that had changed meanwhile.
    refused: usize,
    events: usize,
    others: usize,
}

impl Written {
    fn by_operator(scene: &Scene) -> Result<Self, String> {
        let mut written = Self::default();
        for write in scene.writes(|_| true)? {
            let count = match (write.verb.as_str(), write.resource.as_str(), write.code) {
                ("create", "pods", 201) => &mut written.created,
                ("delete", "pods", 200) => &mut written.deleted,
                ("delete", "pods", 409) => &mut written.refused,
                (_, "controllerrevisions", _) => &mut written.revisions,
                ("patch", "pools/status", _) => &mut written.statuses,
                (_, "events", _) => &mut written.events,
                _ => &mut written.others,
            };
            *count += 1;
        }
        Ok(written)
    }

    fn less(self, before: &Self) -> Self {
        Self {
            created: self.created - before.created,
            deleted: self.deleted - before.deleted,
            revisions: self.revisions - before.revisions,
            statuses: self.statuses - before.statuses,
            refused: self.refused - before.refused,
            events: self.events - before.events,
            others: self.others - before.others,
        }
    }
}

/// Names of a namespace's pods, with their controllers.
fn pods_of(api: &Api, namespace: &str) -> Result<Vec<(String, String)>, String> {
    let all = api.list(crate::api::PODS, namespace)?;
    let mut pods: Vec<_> = all
        .iter()
        .map(|p| (text(p, "/metadata/uid").to_string(), controller(p).1.to_string()))
        .collect();
    pods.sort();
    Ok(pods)
}

pub fn pools_of_one_name_in_two_namespaces_do_not_touch_each_other(scene: &Scene) -> Result<(), String> {
    let (api, other) = (&scene.lab.api, "next-door");
    make_namespace(scene.lab, other)?;
    // The same template, so the revisions and the first part of every pod's name are the same, too.
    for namespace in [scene.namespace.as_str(), other] {
        api.create(POOLS, namespace, &pool("python", 4, &json!({})))?;
    }
    api.create(CLAIMS, other, &claim("run-0", "python", &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    wait::until("the other pool was at rest", 30, || {
        let seen = api.get(POOLS, other, "python")?.unwrap_or_default();
        let status = &seen["status"];
        wait::ensure(status["available"] == 4 && status["claimed"] == 1, || {
            status.to_string()
        })
    })?;
    let before = pods_of(api, other)?;
    // A claim of the same name, a rollout, a scale-down and an end: all on this side only.
    all_bound(scene, &burst(scene, "run", 6, "python", &json!({}))?)?;
    scene.roll_to("python", NEW_IMAGE)?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 2}}))?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    let claimed = ClusterState::read(scene)?.claimed("python").len();
    wait::ensure(claimed == 6, || format!("{claimed} are claimed here"))?;
    api.delete(POOLS, &scene.namespace, "python")?;
    wait::until("only the claimed sandboxes were left here", 30, || {
        let left = scene.pods()?.len();
        wait::ensure(left == 6, || format!("{left} are"))
    })?;
    let after = pods_of(api, other)?;
    wait::ensure(before == after, || {
        format!("next door there were {before:?} and are {after:?}")
    })?;
    Ok(api.delete(crate::api::NAMESPACES, "", other)?)
}
