//! Checks that pools fill and keep the size they are asked for.

use super::{all_bound, bound, burst};
use crate::api::POOLS;
use crate::check::event::{Kind, condition, items, text};
use crate::check::replay;
use crate::cluster::Recorded;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{self, sim, with};
use crate::scene::Scene;
use crate::wait;
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeSet;

/// Most creations that the operator has in flight.
const IN_FLIGHT: usize = 32;

pub fn a_pool_fills_and_says_so_truly(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 10, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let selector = text(&scene.pool("python")?, "/status/selector").to_string();
    let selected = scene.kubectl(&["get", "pods", "-o", "name", "-l", &selector], None)?;
    wait::ensure(selected.lines().count() == 10, || {
        format!("selector {selector} selects:\n{selected}")
    })
}

pub fn a_scaled_pool_has_exactly_what_is_asked(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 10, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    for replicas in ["3", "10", "0", "2"] {
        scene.kubectl(&["scale", "pool", "python", "--replicas", replicas], None)?;
        wait_until_at_rest(scene, 30)?;
    }
    Ok(())
}

pub fn the_cheapest_sandbox_goes_first_and_the_dearest_is_claimed(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 4, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let state = ClusterState::read(scene)?;
    // Against the order of names, which decides when nothing else does.
    let mut names: Vec<_> = state
        .unclaimed("python")
        .iter()
        .map(|p| text(p, "/metadata/name").to_string())
        .collect();
    names.sort();
    for (cost, name) in names.iter().enumerate() {
        let cost = format!("controller.kubernetes.io/pod-deletion-cost={}", 4 - cost);
        scene.kubectl(&["annotate", "pod", name, &cost], None)?;
    }
    let [dearest, _, _, cheapest] = names.as_slice() else {
        return Err(format!("the pool has {names:?}"));
    };
    scene.patch_pool("python", &json!({"spec": {"replicas": 3}}))?;
    wait_until_at_rest(scene, 30)?;
    let left = ClusterState::read(scene)?;
    let gone = |name: &str| left.pods.iter().all(|p| text(p, "/metadata/name") != name);
    let only_the_cheapest = names.iter().filter(|n| gone(n)).eq([cheapest]);
    wait::ensure(only_the_cheapest, || {
        format!("of {names:?}, dearest first, others are gone")
    })?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    let claim = scene.claim("run")?;
    wait::ensure(
        claim["status"]["sandboxes"][0]["name"] == dearest.as_str(),
        || format!("{dearest} is the dearest, and the claim has {}", claim["status"]),
    )
}

pub fn unclaimed_sandboxes_are_trimmed_only_above_max_warm(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 4, &json!({"capacity": {"maxWarm": 6}})))?;
    wait_until_at_rest(scene, 30)?;
    scene.patch_pool(
        "python",
        &json!({"spec": {"capacity": {"maxWarm": 8}, "replicas": 8}}),
    )?;
    wait_until_at_rest(scene, 30)?;
    scene.patch_pool(
        "python",
        &json!({"spec": {"capacity": {"maxWarm": 6}, "replicas": 4}}),
    )?;
    wait::until("the pool was trimmed to maxWarm", 30, || {
        let left = ClusterState::read(scene)?.unclaimed("python").len();
        wait::ensure(left == 6, || format!("{left} unclaimed"))
    })?;
    wait::throughout("the pool stays at maxWarm", 2, || {
        let left = ClusterState::read(scene)?.unclaimed("python").len();
        wait::ensure(left == 6, || format!("{left} unclaimed"))
    })
}

pub fn min_total_is_kept_whatever_replicas_says(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool(
        "python",
        1,
        &json!({"capacity": {"minTotal": 4, "maxWarm": 4}}),
    ))?;
    let total = |wanted: usize| {
        wait::until(&format!("the pool had {wanted} pods"), 30, || {
            let state = ClusterState::read(scene)?;
            let (unclaimed, claimed) = (state.unclaimed("python").len(), state.claimed("python").len());
            wait::ensure(unclaimed + claimed == wanted, || {
                format!("{unclaimed} unclaimed, {claimed} claimed")
            })
        })
    };
    total(4)?;
    all_bound(scene, &burst(scene, "run", 3, "python", &json!({}))?)?;
    total(4)?;
    scene.create_claim("run-more", "python", &json!({}))?;
    bound(scene, "run-more")?;
    total(5)
}

pub fn no_more_warm_up_at_once_than_the_ceiling(scene: &Scene) -> Result<(), String> {
    let spec = with(
        sim(&[("ready-after", "300ms")]),
        &json!({"scaleStrategy": {"maxUnavailable": 2}}),
    );
    scene.create_pool(&objects::pool("python", 7, &spec))?;
    wait_until_at_rest(scene, 60)?;
    let mut most = 0;
    replay(&scene.history(), |world, _| {
        let warming = world
            .pods
            .values()
            .filter(|p| p.counts("python") && p.ready_since.is_none())
            .count();
        most = most.max(warming);
    });
    wait::ensure(most == 2, || {
        format!("{most} warmed up at once where 2 may and should")
    })
}

pub fn a_sandbox_counts_only_after_min_ready_seconds(scene: &Scene) -> Result<(), String> {
    let never =
        json!({"minReadySeconds": 3600, "progressDeadlineSeconds": 7200, "warmUpDeadlineSeconds": 7200});
    scene.create_pool(&objects::pool("patient", 1, &never))?;
    wait::until("the pool had ready sandboxes that are not available", 30, || {
        let status = scene.pool("patient")?["status"].clone();
        wait::ensure(status["ready"] == 1 && status["available"] == 0, || {
            status.to_string()
        })
    })?;
    scene.lab.api.delete(POOLS, &scene.namespace, "patient")?;
    scene.create_pool(&objects::pool("python", 2, &json!({"minReadySeconds": 3})))?;
    // The checker verifies how long each claimed sandbox was Ready.
    let claims = burst(scene, "run", 3, "python", &json!({}))?;
    all_bound(scene, &claims)?;
    wait_until_at_rest(scene, 60)?;
    let old = text(&scene.pool("python")?, "/status/updateRevision").to_string();
    let from = Timestamp::now();
    scene.roll_to("python", objects::NEW_IMAGE)?;
    wait_until_at_rest(scene, 60)?;
    let events = scene.history_up_to_now()?;
    let ready = events.iter().filter_map(|event| {
        let pod = &event.object;
        let is_new = text(pod, "/spec/containers/0/image") == objects::NEW_IMAGE;
        let ready = condition(pod, "Ready").filter(|ready| is_new && ready["status"] == "True")?;
        text(ready, "/lastTransitionTime").parse::<Timestamp>().ok()
    });
    let ready: BTreeSet<Timestamp> = ready.collect();
    let deletions =
        scene.writes(|write| write.verb == "delete" && write.resource == "pods" && write.at > from)?;
    let deleted: BTreeSet<Timestamp> = deletions.iter().map(|write| write.at).collect();
    let complete = events.iter().find(|event| {
        let status = &event.object["status"];
        let is_complete = status["currentRevision"] == status["updateRevision"];
        let is_of_pool = event.kind == Kind::Pool && event.name() == "python";
        is_of_pool && is_complete && status["updateRevision"] != old.as_str() && event.at > from
    });
    let complete = complete.map(|event| event.at);
    // A quarter of 2 is none, so a new one is there before an old one goes.
    for (what, ready, moment) in [
        ("the first old one went", ready.first(), deleted.first()),
        ("the last old one went", ready.last(), deleted.last()),
        ("the rollout was complete", ready.last(), complete.as_ref()),
    ] {
        let (ready, moment) = ready.zip(moment).ok_or_else(|| format!("not seen: {what}"))?;
        let seconds = moment.duration_since(*ready).as_secs_f64();
        wait::ensure(seconds >= 3.0, || {
            format!("{what} {seconds} s after the new one was Ready")
        })?;
    }
    Ok(())
}

pub fn two_pools_do_not_touch_each_other(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 4, &json!({})))?;
    scene.create_pool(&objects::pool("node", 3, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let before = scene.history().len();
    let mut claims = burst(scene, "py", 6, "python", &json!({}))?;
    claims.extend(burst(scene, "js", 2, "node", &json!({}))?);
    all_bound(scene, &claims)?;
    scene.roll_to("node", objects::NEW_IMAGE)?;
    wait_until_at_rest(scene, 60)?;
    let events = scene.history();
    let after = events.iter().skip(before).filter(|e| e.kind == Kind::Pod);
    let of_python = |image: &str| {
        let here = |e: &&crate::check::event::Event| {
            e.object["metadata"]["labels"]["warmpool.dev/pool"] == "python"
                && items(&e.object, "/spec/containers")
                    .iter()
                    .any(|c| c["image"] == image)
        };
        after.clone().filter(here).count()
    };
    wait::ensure(of_python(objects::NEW_IMAGE) == 0, || {
        "the other pool's template reached pool python".into()
    })?;
    // Deleting one pool takes its unclaimed sandboxes and nothing else.
    scene.lab.api.delete(POOLS, &scene.namespace, "node")?;
    wait::until(
        "only the two claimed sandboxes of the deleted pool were left",
        30,
        || {
            let state = ClusterState::read(scene)?;
            let (unclaimed, claimed) = (state.unclaimed("node").len(), state.claimed("node").len());
            wait::ensure(unclaimed == 0 && claimed == 2, || {
                format!("{unclaimed} unclaimed, {claimed} claimed")
            })
        },
    )?;
    wait_until_at_rest(scene, 30)
}

pub fn a_pool_made_smaller_while_it_fills_gets_no_more_than_it_wants(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 2000, &json!({})))?;
    wait::until("40 pods were made", 60, || {
        let count = super::pods_created(&scene.history());
        wait::ensure(count >= 40, || format!("{count} were"))
    })?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 5}}))?;
    wait_until_at_rest(scene, 120)?;
    let events = scene.history_up_to_now()?;
    let told = events
        .iter()
        .find(|event| event.kind == Kind::Pool && event.object["spec"]["replicas"] == 5);
    let told = told.ok_or("the watch did not show the edit")?.at;
    // The first deletion shows that the operator knows of the edit. Its watch may show the edit a little later than ours.
    let deletions = scene.writes(|write| write.verb == "delete" && write.resource == "pods")?;
    let knew = deletions.iter().map(|write| write.at).min();
    let knew = knew.ok_or("the operator deleted nothing")?;
    let since = |moment: Timestamp| {
        let later =
            |write: &Recorded| write.verb == "create" && write.resource == "pods" && write.at > moment;
        scene.writes(later).map(|writes| writes.len())
    };
    let (after_the_edit, after_it_knew) = (since(told)?, since(knew)?);
    scene.lab.print_at_end(format!(
        "a pool made smaller while it fills: {after_the_edit} pods made after the edit, {after_it_knew} after the first \
         deletion, {} ms later",
        knew.duration_since(told).as_millis()
    ));
    wait::ensure(after_it_knew <= IN_FLIGHT, || {
        format!(
            "{after_it_knew} pods were made after the operator knew that 5 are enough; {IN_FLIGHT} could be in flight"
        )
    })?;
    wait::ensure(after_the_edit <= 3 * IN_FLIGHT, || {
        format!("{after_the_edit} pods were made after the pool was made smaller")
    })
}
