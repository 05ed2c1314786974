//! Checks that a pool follows its claims, through a kill of the operator, and that the scale subresource moves its floor.

use crate::check::event::{Change, Event, Kind, text};
use crate::check::replay;
use crate::claimants::Claimants;
use crate::cluster_state::wait_until_at_rest;
use crate::metrics_api::MetricsApi;
use crate::objects::{pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Between two claims: ten of them in a second.
const PACE: Duration = Duration::from_millis(100);
const FLOOR: i64 = 2;
/// How long the pool has to find its size.
const LEARNS: Duration = Duration::from_secs(60);
const WARM_UP: SignedDuration = SignedDuration::from_secs(2);
/// A sandbox that has warmed up for this long comes late through no fault of the operator.
const SLOW: SignedDuration = SignedDuration::from_secs(3);
/// Waits for a processor, within one warm-up, that may cost a claim its sandbox.
const DISTURBED: SignedDuration = SignedDuration::from_millis(500);

fn size(scene: &Scene) -> Result<i64, String> {
    let size = scene.pool("python")?["status"]["desiredReplicas"].as_i64();
    size.ok_or_else(|| "the status has no desiredReplicas".into())
}

/// Claims that were created after `from` and bound, and whether each found a sandbox available.
fn found(events: &[Event], from: Timestamp) -> BTreeMap<String, bool> {
    let mut bound = BTreeMap::new();
    for event in events.iter().filter(|e| e.kind == Kind::Claim) {
        let created = text(&event.object, "/metadata/creationTimestamp").parse::<Timestamp>();
        if text(&event.object, "/status/phase") == "Bound" && created.is_ok_and(|at| at >= from) {
            let warm = event.object["status"]["sandboxes"][0]["warm"] == true;
            bound.insert(event.name().to_string(), warm);
        }
    }
    bound
}

/// Claims that came while a sandbox took much longer to warm up than it has to, or shortly after the operator or the API server
/// waited for a processor.
fn disturbed(scene: &Scene, events: &[Event]) -> BTreeSet<String> {
    let waits = scene.lab.processor_waits();
    let (mut made, mut disturbed) = (BTreeMap::new(), BTreeSet::new());
    replay(events, |world, event| match (event.kind, event.change) {
        (Kind::Pod, Change::Added) => _ = made.insert(event.uid().to_string(), event.at),
        (Kind::Claim, Change::Added) => {
            let warming = world
                .pods
                .values()
                .filter(|pod| pod.counts("python") && pod.ready_since.is_none());
            let mut began = warming.filter_map(|pod| made.get(&pod.uid));
            if began.any(|at| event.at.duration_since(*at) > SLOW)
                || waits.within(event.at - WARM_UP, event.at) > DISTURBED
            {
                disturbed.insert(event.name().to_string());
            }
        }
        _ => {}
    });
    disturbed
}

pub fn a_pool_at_its_floor_follows_ten_claims_a_second_through_a_kill(scene: &Scene) -> Result<(), String> {
    let operator = scene.lab.start_operator()?;
    let autoscaling = json!({"autoscaling": {"maxReplicas": 200, "stabilizationWindowSeconds": 10}});
    let spec = with(sim(&[("ready-after", "2s")]), &autoscaling);
    scene.create_pool(&pool("python", FLOOR, &spec))?;
    wait_until_at_rest(scene, 30)?;
    wait::ensure(size(scene)? == FLOOR, || {
        "the pool does not begin at its floor".into()
    })?;

    let claimants = Claimants::every(scene, "python", PACE);
    std::thread::sleep(LEARNS);
    let learned = Timestamp::now();
    std::thread::sleep(Duration::from_secs(15));
    let before = size(scene)?;
    let operator = scene.while_operator_is_down(|| {
        operator.kill()?;
        scene.lab.start_operator()
    })?;
    wait::throughout("the size does not collapse", 15, || {
        let now = size(scene)?;
        wait::ensure(now >= before / 2, || format!("{before} became {now}"))
    })?;
    let counted = learned + SignedDuration::from_secs(1);
    // A busy machine sends fewer than ten in a second: what counts is how many came, not how long that took.
    wait::until("more than 200 claims were bound", 120, || {
        let bound = found(&scene.history(), counted).len();
        wait::ensure(bound > 200, || format!("{bound} were"))
    })?;
    let came = claimants.stop()?;
    let events = scene.history();
    let (found, disturbed) = (found(&events, counted), disturbed(scene, &events));
    let (bound, warm) = (found.len(), found.values().filter(|warm| **warm).count());
    let is_excused = |(claim, warm): &(&String, &bool)| !**warm && disturbed.contains(*claim);
    let excused = found.iter().filter(is_excused).count();
    let largest = size(scene)?;
    scene.lab.print_at_end(format!(
        "autoscaling: {came} claims, size {largest}, {warm} of {bound} claims found a sandbox after the first minute, {excused} \
         missed one while the machine was busy"
    ));
    wait::ensure((warm + excused) * 100 >= bound * 99, || {
        format!(
            "{warm} of {bound} claims found a sandbox available, and the machine was busy for {excused} more"
        )
    })?;

    wait::until("the pool was at its floor again", 180, || {
        let now = size(scene)?;
        wait::ensure(now == FLOOR, || format!("it keeps {now}"))
    })?;
    wait_until_at_rest(scene, 30)?;
    std::thread::sleep(Duration::from_secs(25));
    let since = Timestamp::now();
    std::thread::sleep(Duration::from_secs(10));
    let writes = scene.writes(|write| write.at > since)?;
    wait::ensure(writes.is_empty(), || {
        format!("at rest the operator wrote {writes:?}")
    })?;
    operator.stop()
}

pub fn scaling_an_autoscaled_pool_moves_its_floor(scene: &Scene) -> Result<(), String> {
    let autoscaling = json!({"autoscaling": {"maxReplicas": 8, "stabilizationWindowSeconds": 0}});
    scene.create_pool(&pool("python", FLOOR, &autoscaling))?;
    wait_until_at_rest(scene, 30)?;
    scene.kubectl(&["scale", "pool", "python", "--replicas=5"], None)?;
    wait::until("the pool had five", 30, || {
        wait::ensure(size(scene)? == 5, || "it has not".into())
    })?;
    wait_until_at_rest(scene, 30)?;
    let columns = scene.kubectl(&["get", "pool", "python", "--no-headers"], None)?;
    let desired = columns.split_whitespace().nth(1).map(str::to_string);
    wait::ensure(desired.as_deref() == Some("5"), || columns.clone())?;
    let refused = scene.kubectl(&["scale", "pool", "python", "--replicas=9"], None);
    let sentence = "spec.autoscaling.maxReplicas must not be below spec.replicas";
    wait::ensure(
        refused.as_ref().is_err_and(|said| said.contains(sentence)),
        || format!("{refused:?}"),
    )?;
    scene.kubectl(&["scale", "pool", "python", "--replicas=2"], None)?;
    wait::until("the pool was at its floor again", 60, || {
        wait::ensure(size(scene)? == FLOOR, || "it was not".into())
    })?;
    wait_until_at_rest(scene, 30)
}

pub fn a_horizontal_pod_autoscaler_moves_the_size_of_a_pool_and_the_floor_of_one_that_sizes_itself(
    scene: &Scene,
) -> Result<(), String> {
    let operator = scene.lab.start_operator()?;
    let metrics = MetricsApi::start(scene, 1)?;
    scene.create_pool(&pool("plain", 1, &json!({})))?;
    scene.create_pool(&pool("python", 1, &json!({"autoscaling": {"maxReplicas": 8}})))?;
    wait_until_at_rest(scene, 30)?;
    for name in ["plain", "python"] {
        let target = json!({"apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": name});
        let metric = json!({"metric": {"name": "jobs_queued"}, "target": {"type": "AverageValue", "averageValue": "1"}});
        let hpa = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
            "spec": {
                "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 6,
                "metrics": [{"type": "External", "external": metric}],
            },
        });
        scene.kubectl(&["apply", "-f", "-"], Some(&hpa.to_string()))?;
    }
    metrics.set(4)?;
    for name in ["plain", "python"] {
        wait::until("the HPA had made the pool larger", 90, || {
            let pool = scene.pool(name)?;
            let (floor, size) = (&pool["spec"]["replicas"], &pool["status"]["desiredReplicas"]);
            wait::ensure(*floor == 4 && *size == 4, || {
                let hpa = scene.kubectl(&["get", "hpa", name, "-o", "yaml"], None);
                format!("pool {name} has replicas {floor} and keeps {size}; {hpa:?}")
            })
        })?;
    }
    wait_until_at_rest(scene, 30)?;
    drop(metrics);
    operator.stop()
}
