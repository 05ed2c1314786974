//! What /metrics says, in the OpenMetrics text format.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use jiff::{SignedDuration, Timestamp};
use prometheus_client::encoding::text::encode;
use serde_json::{Value, json};
use warmpool::api::SandboxClaimStatus;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::synced_cache::SharedCache;
use warmpool::controllers::pool::decide;
use warmpool::model::Key;
use warmpool::model::claim::Claim;
use warmpool::model::stored::{StoredClaim, StoredPod};
use warmpool::telemetry::http::exposition::registry;
use warmpool::telemetry::metrics::Metrics;

/// The operator's state and its metrics.
#[derive(Default)]
struct Operator {
    shared: SharedCache,
    metrics: Metrics,
}

impl Operator {
    fn scrape(&self) -> Vec<String> {
        let mut text = String::new();
        encode(&mut text, &registry(&self.metrics, &self.shared)).unwrap();
        text.lines().map(ToString::to_string).collect()
    }

    /// The value of a series.
    fn value(&self, series: &str) -> Option<f64> {
        let lines = self.scrape();
        let line = lines
            .iter()
            .find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series))?;
        line.rsplit_once(' ').unwrap().1.parse().ok()
    }

    fn apply_pool(&self, name: &str, status: &Value) {
        let pool = serde_json::from_value(pool(name, status)).unwrap();
        self.shared.lock().apply_pool(&pool);
    }

    fn delete_pool(&self, name: &str) {
        let pool = serde_json::from_value(pool(name, &json!({}))).unwrap();
        self.shared.lock().delete_pool(&pool);
    }

    /// A pod of the pool python.
    fn apply_pod(&self, name: &str, state: &str, revision: &str, ready: bool) {
        let owner = if state == "claimed" {
            json!({"kind": "SandboxClaim", "name": "run", "uid": "run"})
        } else {
            json!({"kind": "Pool", "name": "python", "uid": "python"})
        };
        let mut pod = json!({
            "metadata": {
                "namespace": "default", "name": name, "uid": name, "resourceVersion": "1",
                "creationTimestamp": "2026-01-31T12:00:00Z",
                "labels": {
                    "warmpool.dev/pool": "python", "warmpool.dev/revision": revision, "warmpool.dev/state": state,
                },
                "ownerReferences": [owner],
            },
            "spec": {},
            "status": {"phase": "Running", "conditions": [{
                "type": "Ready", "status": if ready { "True" } else { "False" },
                "lastTransitionTime": "2026-01-31T12:00:01Z",
            }]},
        });
        pod["metadata"]["ownerReferences"][0]["apiVersion"] = json!("warmpool.dev/v1alpha1");
        pod["metadata"]["ownerReferences"][0]["controller"] = json!(true);
        let pod: StoredPod = serde_json::from_value(pod).unwrap();
        self.shared.lock().apply_pod(&pod);
    }

    fn apply_claim(&self, name: &str, pool: &str, age: SignedDuration) {
        let came = Timestamp::now().checked_sub(age).unwrap();
        self.shared.lock().apply_claim(&claim(name, pool), true, came);
    }
}

fn pool(name: &str, status: &Value) -> Value {
    json!({
        "metadata": {"namespace": "default", "name": name, "uid": name, "resourceVersion": "1"},
        "spec": {"replicas": 3, "template": {"spec": {"containers": []}}},
        "status": status,
    })
}

fn claim(name: &str, pool: &str) -> StoredClaim {
    serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": name, "uid": name, "resourceVersion": "1"},
        "spec": {"poolRef": {"name": pool}},
    }))
    .unwrap()
}

fn status(phase: &str, reason: &str, warm: bool, wait: f64) -> SandboxClaimStatus {
    let time = "2026-01-31T12:00:00Z";
    serde_json::from_value(json!({
        "phase": phase, "waitSeconds": wait, "pool": "python",
        "sandboxes": [{"name": "a", "uid": "a", "boundTime": time, "warm": warm}],
        "conditions": [{
            "type": "Bound", "status": "True", "reason": reason, "message": "", "lastTransitionTime": time,
        }],
    }))
    .unwrap()
}

fn python() -> Key {
    Key::new("default", "python")
}

const POOL: &str = r#"namespace="default",pool="python""#;

#[test]
fn sandboxes_are_counted_by_state_and_revision() {
    let operator = Operator::default();
    operator.apply_pool("python", &json!({"updateRevision": "new"}));
    operator.apply_pod("a", "warm", "new", true);
    operator.apply_pod("b", "warm", "new", false);
    operator.apply_pod("c", "warm", "old", true);
    operator.apply_pod("d", "draining", "old", true);
    operator.apply_pod("e", "claimed", "old", true);
    operator.apply_pod("f", "claimed", "old", false);
    let counts = [
        ("available", "updated", 1.0),
        ("available", "old", 1.0),
        ("warming", "updated", 1.0),
        ("warming", "old", 0.0),
        ("draining", "old", 1.0),
        ("claimed", "old", 2.0),
        ("claimed", "updated", 0.0),
    ];
    for (state, revision, expected) in counts {
        let series = format!(r#"warmpool_sandboxes{{{POOL},state="{state}",revision="{revision}"}}"#);
        assert_eq!(operator.value(&series), Some(expected), "{series}");
    }
    let replicas = format!("warmpool_pool_spec_replicas{{{POOL}}}");
    assert_eq!(operator.value(&replicas), Some(3.0));
}

#[test]
fn a_pool_with_autoscaling_shows_its_size_and_what_it_has_learned() {
    let operator = Operator::default();
    let mut autoscaled = pool("python", &json!({"desiredReplicas": 4}));
    autoscaled["spec"]["autoscaling"] = json!({"maxReplicas": 9});
    operator
        .shared
        .lock()
        .apply_pool(&serde_json::from_value(autoscaled).unwrap());
    operator.apply_pool("plain", &json!({"desiredReplicas": 3}));
    operator.apply_claim("run", "python", SignedDuration::from_secs(1));
    for name in ["python", "plain"] {
        let key = Key::new("default", name);
        decide(
            &mut operator.shared.lock(),
            &key,
            Timestamp::now(),
            1,
            &operator.metrics,
        );
    }
    let value = |metric: &str, pool: &str| {
        operator.value(&format!(
            r#"warmpool_{metric}{{namespace="default",pool="{pool}"}}"#
        ))
    };
    assert_eq!(value("pool_desired_replicas", "python"), Some(4.0));
    assert_eq!(value("pool_desired_replicas", "plain"), Some(3.0));
    assert_eq!(value("pool_hit_ratios", "python"), Some(0.0));
    assert_eq!(value("pool_warm_up_seconds", "python"), Some(5.0));
    assert!(value("pool_arrival_rate", "python").unwrap() > 0.0);
    assert_eq!(value("pool_arrival_rate", "plain"), None);
}

#[test]
fn a_condition_has_only_the_series_of_its_present_status() {
    let operator = Operator::default();
    let condition = |status: &str, reason: &str| {
        json!({"conditions": [{
            "type": "Progressing", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-31T12:00:00Z",
        }]})
    };
    let said = |status: &str, reason: &str| {
        format!(r#"warmpool_pool_condition{{{POOL},type="Progressing",status="{status}",reason="{reason}"}}"#)
    };
    operator.apply_pool("python", &condition("True", "RolloutComplete"));
    assert_eq!(operator.value(&said("True", "RolloutComplete")), Some(1.0));
    operator.apply_pool("python", &condition("False", "ProgressDeadlineExceeded"));
    assert_eq!(
        operator.value(&said("False", "ProgressDeadlineExceeded")),
        Some(1.0)
    );
    assert_eq!(operator.value(&said("True", "RolloutComplete")), None);
}

#[test]
fn waiting_claims_are_counted_for_their_pool_with_the_age_of_the_oldest() {
    let operator = Operator::default();
    operator.apply_pool("python", &json!({}));
    let longest = format!("warmpool_claims_waiting_longest_seconds{{{POOL}}}");
    assert_eq!(operator.value(&longest), Some(0.0));
    operator.apply_claim("young", "python", SignedDuration::from_millis(500));
    let below_a_second = operator.value(&longest).unwrap();
    assert!((0.5..30.0).contains(&below_a_second), "{below_a_second}");
    operator.apply_claim("old", "python", SignedDuration::from_secs(60));
    operator.apply_claim("lost", "nowhere", SignedDuration::from_secs(300));
    let oldest = operator.value(&longest).unwrap();
    assert!((60.0..120.0).contains(&oldest), "{oldest}");
    assert_eq!(
        operator.value(&format!("warmpool_claims_waiting{{{POOL}}}")),
        Some(2.0)
    );
    let of_no_pool = r#"warmpool_claims_waiting{namespace="default",pool="<none>"}"#;
    assert_eq!(operator.value(of_no_pool), Some(1.0));
}

#[test]
fn the_wait_of_a_claim_counts_once_in_milliseconds_and_apart_for_warm_and_cold() {
    let operator = Operator::default();
    operator.apply_pool("python", &json!({}));
    let run = Claim::read(&claim("run", "python"), 1, Timestamp::now());
    let bound = |claim: &Claim, warm, wait| {
        let status = status("Bound", "Bound", warm, wait);
        operator.metrics.meters.decided(Some(&python()), claim, &status);
    };
    bound(&run, true, 0.007);
    bound(&run, false, 2.0);
    let again = Claim {
        status: status("Bound", "Bound", true, 0.007),
        ..run.clone()
    };
    bound(&again, true, 0.007);
    let below = |warm, le| format!(r#"warmpool_claim_wait_seconds_bucket{{le="{le}",{POOL},warm="{warm}"}}"#);
    assert_eq!(operator.value(&below(true, "0.005")), Some(0.0));
    assert_eq!(operator.value(&below(true, "0.01")), Some(1.0));
    assert_eq!(operator.value(&below(false, "1.0")), Some(0.0));
    assert_eq!(operator.value(&below(false, "2.5")), Some(1.0));
    let claims = format!(r#"warmpool_claims_total{{{POOL},outcome="bound",reason="Bound"}}"#);
    assert_eq!(operator.value(&claims), Some(2.0));
    let failed = status("Failed", "WaitTimeout", false, 0.0);
    operator.metrics.meters.decided(None, &run, &failed);
    let of_no_pool =
        r#"warmpool_claims_total{namespace="<none>",pool="<none>",outcome="failed",reason="WaitTimeout"}"#;
    assert_eq!(operator.value(of_no_pool), Some(1.0));
}

#[test]
fn every_series_of_a_pool_disappears_with_it() {
    let operator = Operator::default();
    for name in ["python", "node"] {
        operator.apply_pool(name, &json!({"updateRevision": "new"}));
        let key = Key::new("default", name);
        operator.metrics.created(&key, "Refill");
        operator.metrics.deleted(&key, "PodFailed");
        operator.metrics.drained(&key, "OldRevision");
    }
    let of = |pool: &str| {
        let label = format!(r#"pool="{pool}""#);
        operator
            .scrape()
            .iter()
            .filter(|line| line.contains(&label))
            .count()
    };
    let both = [of("python"), of("node")];
    assert!(both[0] > 50 && both[0] == both[1], "{both:?}");
    operator.delete_pool("python");
    // An answer that comes late is no reason to begin anew.
    operator.metrics.deleted(&python(), "PodFailed");
    assert_eq!([of("python"), of("node")], [0, both[1]]);
}

#[test]
fn the_counters_of_a_pool_start_at_zero() {
    let operator = Operator::default();
    operator.apply_pool("python", &json!({}));
    for series in [
        format!(r#"warmpool_claim_wait_seconds_count{{{POOL},warm="true"}}"#),
        format!(r#"warmpool_claim_wait_seconds_count{{{POOL},warm="false"}}"#),
        format!(r#"warmpool_claims_total{{{POOL},outcome="bound",reason="Bound"}}"#),
        format!(r#"warmpool_sandbox_creations_total{{{POOL},reason="Refill"}}"#),
        format!(r#"warmpool_sandbox_deletions_total{{{POOL},reason="OldRevision"}}"#),
    ] {
        assert_eq!(operator.value(&series), Some(0.0), "{series}");
    }
}

#[test]
fn the_operator_itself_is_timed() {
    let operator = Operator::default();
    let object = ReconcileRequest::Pool(python());
    operator.metrics.queued(object.clone());
    operator.metrics.queued(object.clone());
    drop(operator.metrics.reconciling(object.clone()));
    // A timed requeue does not wait in the queue.
    drop(operator.metrics.reconciling(object));
    operator.metrics.planning(|| ());
    let count =
        |name: &str| operator.value(&format!(r#"warmpool_{name}_seconds_count{{controller="pool"}}"#));
    assert_eq!(count("reconcile_queue"), Some(1.0));
    assert_eq!(count("reconcile_duration"), Some(2.0));
    assert_eq!(operator.value("warmpool_plan_duration_seconds_count"), Some(1.0));
    operator.shared.watches.begins("Pod");
    let restarts = r#"warmpool_watch_restarts_total{kind="Pod"}"#;
    assert_eq!(operator.value(restarts), Some(0.0));
    operator.shared.watches.failed("Pod", "connection refused".into());
    assert_eq!(operator.value(restarts), Some(1.0));
    assert_eq!(operator.value("warmpool_leader"), Some(0.0));
    operator.metrics.leads(true);
    assert_eq!(operator.value("warmpool_leader"), Some(1.0));
    let build = format!(
        r#"warmpool_build_info{{version="{}"}}"#,
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(operator.value(&build), Some(1.0));
}

#[test]
fn the_text_is_openmetrics_with_help_for_everything_and_one_end() {
    let operator = Operator::default();
    operator.apply_pool("python", &json!({}));
    let lines = operator.scrape();
    let (end, lines) = lines.split_last().unwrap();
    assert_eq!(end, "# EOF");
    for line in lines {
        let known = [
            "# HELP warmpool_",
            "# TYPE warmpool_",
            "# UNIT warmpool_",
            "warmpool_",
            "# HELP process_",
            "# TYPE process_",
            "# UNIT process_",
            "process_",
        ];
        assert!(known.iter().any(|start| line.starts_with(start)), "{line}");
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().unwrap();
            let helps = lines.iter().any(|l| l.starts_with(&format!("# HELP {name} ")));
            assert!(helps, "{name} has no help");
        }
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (_, text) = help.split_once(' ').unwrap();
            assert!(text.starts_with(|c: char| c.is_ascii_uppercase()), "{line}");
            assert!(
                !text.trim_end_matches('.').contains(". "),
                "more than one sentence: {line}"
            );
        }
    }
}

#[test]
fn no_series_has_an_empty_label() {
    let operator = Operator::default();
    operator.apply_pool("python", &json!({}));
    operator.apply_claim("lost", "nowhere", SignedDuration::from_secs(3));
    let run = Claim::read(&claim("run", "nowhere"), 1, Timestamp::now());
    let failed = status("Failed", "WaitTimeout", false, 0.0);
    operator.metrics.meters.decided(None, &run, &failed);
    for line in operator.scrape() {
        assert!(!line.contains(r#"="""#), "{line}");
    }
}

#[test]
fn a_claim_that_has_failed_counts_once_however_often_its_status_is_written() {
    let operator = Operator::default();
    operator.apply_pool("python", &json!({}));
    let mut run = Claim::read(&claim("run", "python"), 1, Timestamp::now());
    let failed = status("Failed", "SandboxLost", false, 0.0);
    for _ in 0..3 {
        operator.metrics.meters.decided(Some(&python()), &run, &failed);
        run.status = failed.clone();
    }
    let series = format!(r#"warmpool_claims_total{{{POOL},outcome="failed",reason="SandboxLost"}}"#);
    assert_eq!(operator.value(&series), Some(1.0));
}

#[test]
fn a_pool_with_a_limit_shows_it() {
    let operator = Operator::default();
    operator.apply_pool("python", &json!({}));
    let series = format!("warmpool_pool_spec_max_total{{{POOL}}}");
    assert_eq!(operator.value(&series), None);
    let mut limited = pool("python", &json!({}));
    limited["metadata"]["resourceVersion"] = json!("2");
    limited["spec"]["capacity"] = json!({"maxTotal": 7});
    let limited = serde_json::from_value(limited).unwrap();
    operator.shared.lock().apply_pool(&limited);
    assert_eq!(operator.value(&series), Some(7.0));
}

#[test]
fn the_process_shows_its_memory_time_and_files() {
    let operator = Operator::default();
    let value = |name: &str| operator.value(name).unwrap();
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
    assert!(value("process_open_fds") >= 3.0);
    assert!(value("process_max_fds") >= value("process_open_fds"));
    assert!(value("process_threads") >= 1.0);
    let age = Timestamp::now().as_second() as f64 - value("process_start_time_seconds");
    assert!((-1.0..60.0).contains(&age), "{age}");
    let before = value("process_cpu_seconds_total");
    let mut rounds = 0_u64;
    while value("process_cpu_seconds_total") < before + 0.03 {
        rounds = rounds.wrapping_add(1);
        assert!(rounds < 1_000_000, "the CPU time does not grow");
    }
}
