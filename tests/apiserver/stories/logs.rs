//! Checks that the log has one line per change, and none at rest.

use super::{all_bound, burst, in_phase};
use crate::check::event::text;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{NEW_IMAGE, pool, sim, with};
use crate::operator::Operator;
use crate::scene::Scene;
use crate::wait;
use serde::Deserialize;
use serde_json::{Value, json};

/// Longer than any period of the operator's resync.
const WATCHED_SECONDS: u64 = 12;
/// The value of an environment variable of the sandboxes.
const SECRET: &str = "nobody-else-may-read-this";

/// What every line has, once: to decode it fails where it has one of them twice.
#[derive(Deserialize)]
struct Line {
    timestamp: String,
    level: String,
    message: String,
}

/// Every line of a log: all are JSON, with a time, a level and a message.
fn lines(log: &str) -> Result<Vec<Value>, String> {
    let parsed = log.lines().map(|line| {
        let named: Line = serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))?;
        let said = [named.timestamp, named.level, named.message]
            .iter()
            .all(|s| !s.is_empty());
        wait::ensure(said, || format!("something is empty in {line}"))?;
        serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))
    });
    parsed.collect()
}

/// The lines that have these values.
fn with_values<'a>(lines: &'a [Value], wanted: &'a Value) -> impl Iterator<Item = &'a Value> {
    let fields = wanted.as_object().into_iter().flatten();
    lines
        .iter()
        .filter(move |line| fields.clone().all(|(name, value)| line[name] == *value))
}

/// Drops lines about other namespaces. The operator serves them too, and their objects may still be terminating.
fn not_of_others(scene: &Scene, mut lines: Vec<Value>) -> Vec<Value> {
    let ours = format!("{}/", scene.namespace);
    let of_others = |value: &Value| value.as_str().is_some_and(|key| !key.starts_with(&ours));
    let fields = ["pool", "claim", "object"];
    lines.retain(|line| !fields.iter().any(|field| of_others(&line[*field])));
    lines
}

/// What the operator has logged of the scene so far.
fn lines_about(scene: &Scene, operator: &Operator) -> Result<Vec<Value>, String> {
    Ok(not_of_others(scene, lines(&operator.text()?)?))
}

/// The lines about the scene, once none was added for three seconds. A change is seen before the operator has the answer and logs
/// it.
fn settled_lines(scene: &Scene, operator: &Operator) -> Result<Vec<Value>, String> {
    wait::until("nothing was logged for three seconds", 60, || {
        let before = lines_about(scene, operator)?;
        wait::throughout("nothing is logged", 3, || {
            wait::ensure(lines_about(scene, operator)? == before, || operator.tail())
        })?;
        Ok(before)
    })
}

pub fn the_log_has_a_line_for_each_change_and_none_at_rest(scene: &Scene) -> Result<(), String> {
    let operator = scene.lab.start_operator_with(&[
        "--leader-elect=false",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--log-format=json",
    ])?;
    let container =
        json!({"name": "main", "image": "sandbox:1", "env": [{"name": "TOKEN", "value": SECRET}]});
    let spec = with(
        sim(&[("ready-after", "200ms")]),
        &json!({"template": {"spec": {"containers": [container]}}}),
    );
    scene.create_pool(&pool("python", 3, &spec))?;
    wait_until_at_rest(scene, 60)?;
    all_bound(scene, &burst(scene, "run", 2, "python", &json!({}))?)?;
    scene.create_claim("short", "python", &json!({"lifetimeSeconds": 1}))?;
    in_phase(scene, "short", "Expired", 30)?;
    scene.create_claim("hasty", "python", &json!({"onEmpty": "Fail", "replicas": 50}))?;
    in_phase(scene, "hasty", "Failed", 30)?;
    scene.roll_to("python", NEW_IMAGE)?;
    wait_until_at_rest(scene, 60)?;
    let before = settled_lines(scene, &operator)?;
    every_change_is_logged(scene, &before)?;
    wait::throughout("nothing is logged at rest", WATCHED_SECONDS, || {
        wait::ensure(lines_about(scene, &operator)? == before, || operator.tail())
    })?;
    rejection_is_logged(scene, &operator)?;
    wait::ensure(!operator.text()?.contains(SECRET), || {
        "the log has the value of an environment variable".to_string()
    })?;
    operator.stop()
}

/// A hundred claims come to a pool that is empty: the log says once that they wait, and then names each that is bound.
pub fn a_burst_of_claims_that_wait_is_logged_in_few_lines(scene: &Scene) -> Result<(), String> {
    const CLAIMS: usize = 100;
    let operator = scene.lab.start_operator_with(&[
        "--leader-elect=false",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--log-format=json",
    ])?;
    scene.create_pool(&pool("python", 0, &sim(&[("ready-after", "2s")])))?;
    wait_until_at_rest(scene, 60)?;
    all_bound(scene, &burst(scene, "run", CLAIMS, "python", &json!({}))?)?;
    let lines = settled_lines(scene, &operator)?;
    let said = |start: &'static str| {
        lines
            .iter()
            .filter(move |line| text(line, "/message").starts_with(start))
    };
    let waits: Vec<_> = said("claims wait: no sandbox is available yet").collect();
    // One more each time that the queue has doubled: it grows while the first claims begin to wait.
    wait::ensure((1..=7).contains(&waits.len()), || format!("{waits:#?}"))?;
    let named = waits.iter().all(|line| {
        line["pool"] == format!("{}/python", scene.namespace)
            && line["waiting"].is_u64()
            && line["oldest"].is_string()
    });
    wait::ensure(named, || format!("{waits:#?}"))?;
    let each = said("claim waits").count();
    wait::ensure(each == 0, || format!("{each} lines for single claims"))?;
    let bound = said("claim bound").count();
    wait::ensure(bound == CLAIMS, || {
        format!("{bound} lines for {CLAIMS} bound claims")
    })?;
    let warnings: Vec<_> = lines.iter().filter(|line| line["level"] != "INFO").collect();
    wait::ensure(warnings.is_empty(), || format!("{warnings:#?}"))?;
    operator.stop()
}

/// A line for it, with what the API server says of it.
fn rejection_is_logged(scene: &Scene, operator: &Operator) -> Result<(), String> {
    scene.create_pod_quota(0)?;
    scene.create_pool(&pool("refused", 1, &json!({})))?;
    let message = "a pod could not be created; the operator tries again at least once a minute";
    let refused = json!({"message": message, "level": "WARN"});
    wait::until("the refusal was logged", 60, || {
        let lines = lines(&operator.text()?)?;
        let logged =
            with_values(&lines, &refused).any(|line| text(line, "/error").contains("exceeded quota"));
        wait::ensure(logged, || operator.tail())
    })
}

/// One line for each decision, with the pool, the claim, the pod and the reason.
fn every_change_is_logged(scene: &Scene, lines: &[Value]) -> Result<(), String> {
    let key = |name: &str| format!("{}/{name}", scene.namespace);
    let python = key("python");
    let claimed = scene.claim("run-0")?;
    let pod = text(&claimed, "/status/sandboxes/0/name");
    let once = [
        json!({
            "message": "claim bound", "claim": key("run-0"), "pool": python, "pods": [pod], "warm": true,
            "wait_seconds": claimed["status"]["waitSeconds"],
        }),
        json!({"message": "claim bound", "claim": key("run-1"), "pool": python}),
        json!({"message": "sandbox created", "pool": python, "pod": key(pod), "reason": "Refill"}),
        json!({"claim": key("short"), "pool": python, "reason": "Expired"}),
        json!({"claim": key("hasty"), "pool": python, "reason": "PoolEmpty"}),
        json!({"message": "sandbox deleted", "pool": python, "reason": "ClaimExpired"}),
    ];
    for wanted in &once {
        let logged = with_values(lines, wanted).count();
        wait::ensure(logged == 1, || {
            format!("{logged} lines are {wanted} in {lines:#?}")
        })?;
    }
    for reason in ["NewRevision", "RolloutComplete"] {
        let wanted = json!({"pool": python, "reason": reason, "level": "INFO"});
        let logged = with_values(lines, &wanted).count();
        wait::ensure(logged == 2, || {
            format!("{logged} lines for two rollouts are {wanted} in {lines:#?}")
        })?;
    }
    let history = scene.history_up_to_now()?;
    let made = super::pods_created(&history);
    let created = with_values(lines, &json!({"message": "sandbox created"})).count();
    wait::ensure(created == made, || {
        format!("{created} lines for {made} created pods")
    })?;
    let replaced = json!({"message": "sandbox deleted", "pool": python, "reason": "OldRevision"});
    let replaced = with_values(lines, &replaced).count();
    wait::ensure(replaced == 3, || {
        format!("{replaced} lines for 3 replaced pods in {lines:#?}")
    })
}
