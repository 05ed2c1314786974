//! Checks metrics, the dashboard and the alerts with a real Prometheus.

use super::{bound, burst, in_phase};
use crate::api::POOLS;
use crate::check::event::Kind;
use crate::claimants::Claimants;
use crate::cluster::{output_of, repository};
use crate::cluster_state::{label, wait_until_at_rest};
use crate::http;
use crate::objects::{NEW_IMAGE, OLD_IMAGE, pool, sim};
use crate::operator::{LONG_LEASE, Operator};
use crate::prometheus::{Prometheus, RULES, program};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const DASHBOARD: &str = "charts/warmpool/dashboards/warmpool.json";
const RULE_TESTS: &str = "charts/warmpool/rules/warmpool_test.yaml";
const RUNBOOK: &str = "docs/runbook.md";

/// The address at which the operator serves what `flag` is about.
pub(super) fn served(operator: &Operator, flag: &str) -> Result<String, String> {
    let words = format!("serving --{flag}");
    wait::until("the operator served it", 30, || {
        let text = operator.text()?;
        http::address_after(&text, &words).ok_or(text)
    })
}

pub fn every_query_of_the_dashboard_and_every_alert_has_data_under_load(scene: &Scene) -> Result<(), String> {
    let serves = [
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
    ];
    let operator = scene.lab.start_operator_with(&[serves, LONG_LEASE].concat())?;
    let health = served(&operator, "health-probe-bind-address")?;
    wait::until("the operator was ready", 30, || {
        let answer = http::get(&health, "/readyz")?;
        wait::ensure(answer == (200, "ok".to_string()), || format!("{answer:?}"))
    })?;
    let prometheus = Prometheus::start(&scene.lab.cluster, &served(&operator, "metrics-bind-address")?)?;
    wait::until("the operator was scraped", 30, || {
        let up = prometheus.number("up")?;
        wait::ensure((up - 1.0).abs() < 0.5, || format!("up is {up}"))
    })?;
    let decided = under_load(scene)?;
    every_query_has_data(&prometheus)?;
    every_rule_is_evaluated(&prometheus)?;
    what_is_counted_is_true(scene, &prometheus, &decided)?;
    scene.lab.api.delete(POOLS, &scene.namespace, "cold")?;
    wait::until("no series of the deleted pool was left", 30, || {
        // What a rule has recorded looks back on half an hour.
        let left = prometheus.query(r#"{__name__=~"warmpool_.*", pool="cold"}"#)?;
        wait::ensure(left.is_empty(), || {
            format!("{} are: {:?}", left.len(), left.first())
        })
    })?;
    drop(prometheus);
    operator.stop()
}

/// How many claims came to each outcome on the pool `python`.
struct Decided {
    bound: usize,
    failed: usize,
    expired: usize,
}

/// Claims warm and cold, served, refused and expired, while a template rolls out.
fn under_load(scene: &Scene) -> Result<Decided, String> {
    let slow = sim(&[("ready-after", "300ms")]);
    scene.create_pool(&pool("python", 6, &slow))?;
    scene.create_pool(&pool("cold", 0, &slow))?;
    scene.create_pool(&pool("follows", 1, &json!({"autoscaling": {"maxReplicas": 3}})))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("follower", "follows", &json!({}))?;
    bound(scene, "follower")?;
    scene.create_claim("short", "python", &json!({"lifetimeSeconds": 1}))?;
    scene.create_claim(
        "hasty",
        "python",
        &json!({"onEmpty": "Fail", "revisionPolicy": "Latest", "replicas": 50}),
    )?;
    in_phase(scene, "hasty", "Failed", 30)?;
    // Claims may take all old sandboxes; the rollout has to delete one of them, to be counted.
    let old = || old_and_unclaimed(scene);
    wait::until("the claim's sandbox was replaced", 30, || {
        wait::ensure(old() == 6, || format!("{} are there", old()))
    })?;
    scene.roll_to("python", NEW_IMAGE)?;
    wait::until("the rollout deleted a sandbox", 30, || {
        wait::ensure(old() < 6, || format!("{} are there", old()))
    })?;
    let claimants = Claimants::start(scene, "python");
    for claim in burst(scene, "late", 3, "cold", &json!({}))? {
        bound(scene, &claim)?;
    }
    in_phase(scene, "short", "Expired", 30)?;
    let came = claimants.stop()?;
    wait_until_at_rest(scene, 60)?;
    Ok(Decided {
        bound: came + 1,
        failed: 1,
        expired: 1,
    })
}

/// How many sandboxes of the first image the pool `python` has that no claim has.
fn old_and_unclaimed(scene: &Scene) -> usize {
    let is_old = |pod: &Value| pod["spec"]["containers"][0]["image"] == OLD_IMAGE;
    scene.count(Kind::Pod, |pod| {
        label(pod, "pool") == "python" && label(pod, "state") == "warm" && is_old(pod)
    })
}

/// The queries of all panels, with Grafana's variables as a person sees them who chooses nothing.
fn queries() -> Result<Vec<String>, String> {
    let text = fs::read_to_string(repository().join(DASHBOARD)).map_err(|e| e.to_string())?;
    let dashboard: Value = serde_json::from_str(&text).map_err(|e| format!("{DASHBOARD}: {e}"))?;
    let panels = dashboard["panels"].as_array().cloned().unwrap_or_default();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let queries = targets.filter_map(|target| target["expr"].as_str()).map(|query| {
        query
            .replace("$namespace", ".*")
            .replace("$pool", ".*")
            .replace("$__rate_interval", "1m")
            .replace("$__range", "5m")
    });
    let variables = dashboard["templating"]["list"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let named = variables
        .iter()
        .filter_map(|variable| variable["query"]["query"].as_str());
    let of_labels = named.map(|query| {
        let inner = query.trim_start_matches("label_values(").trim_end_matches(')');
        let (series, label) = inner.rsplit_once(", ").unwrap_or((inner, ""));
        format!("count by ({label}) ({})", series.replace("$namespace", ".*"))
    });
    Ok(queries.chain(of_labels).collect())
}

fn every_query_has_data(prometheus: &Prometheus) -> Result<(), String> {
    let queries = queries()?;
    wait::ensure(queries.len() > 30, || {
        format!("{} queries were found", queries.len())
    })?;
    for query in queries {
        wait::ensure(!query.contains('$'), || {
            format!("an unknown variable is in {query}")
        })?;
        // Recording rules are installed apart from the dashboard, and by fewer people.
        wait::ensure(!query.contains("namespace_pool:"), || {
            format!("a recording rule is in {query}")
        })?;
        wait::until(&format!("there was data for {query}"), 20, || {
            let series = prometheus.query(&query)?;
            wait::ensure(!series.is_empty(), || "nothing".to_string())
        })?;
    }
    Ok(())
}

fn every_rule_is_evaluated(prometheus: &Prometheus) -> Result<(), String> {
    let rules = prometheus.rules()?;
    wait::ensure(rules.len() >= 7, || format!("{rules:?}"))?;
    for rule in &rules {
        wait::ensure(rule["health"] == "ok", || rule.to_string())?;
        prometheus.query(rule["query"].as_str().unwrap_or_default())?;
    }
    // One scrape that a slow operator misses makes it pending.
    wait::until("the operator was not held to be down", 20, || {
        let rules = prometheus.rules()?;
        let down = rules.iter().find(|rule| rule["name"] == "WarmpoolDown");
        wait::ensure(down.is_some_and(|rule| rule["state"] == "inactive"), || {
            format!("{down:?}")
        })
    })
}

/// What Prometheus counted is what there is.
fn what_is_counted_is_true(scene: &Scene, prometheus: &Prometheus, decided: &Decided) -> Result<(), String> {
    let of = |pool: &str| format!(r#"namespace="{}",pool="{pool}""#, scene.namespace);
    let (python, cold) = (of("python"), of("cold"));
    let outcome = |outcome: &str| format!(r#"sum(warmpool_claims_total{{{python},outcome="{outcome}"}})"#);
    let unclaimed = |state: &str, revision: &str| {
        format!(r#"warmpool_sandboxes{{{python},state="{state}",revision="{revision}"}}"#)
    };
    let deleted = format!(r#"warmpool_sandbox_deletions_total{{{python},reason="OldRevision"}} > bool 0"#);
    let truths = [
        (outcome("bound"), decided.bound),
        (outcome("failed"), decided.failed),
        (outcome("expired"), decided.expired),
        (
            format!(r#"warmpool_claim_wait_seconds_count{{{cold},warm="false"}}"#),
            3,
        ),
        (
            format!(r#"sum(warmpool_claim_wait_seconds_count{{{python}}})"#),
            decided.bound,
        ),
        (
            format!(r#"sum(warmpool_sandbox_creations_total{{{cold},reason="Demand"}})"#),
            3,
        ),
        (deleted, 1),
        (unclaimed("available", "updated"), 6),
        (unclaimed("available", "old"), 0),
        (unclaimed("warming", "updated"), 0),
        (format!(r#"sum(warmpool_sandboxes{{{cold},state="claimed"}})"#), 3),
        (format!("warmpool_claims_waiting{{{python}}}"), 0),
        (
            format!(r#"warmpool_pool_condition{{{python},reason="RolloutComplete"}}"#),
            1,
        ),
        ("warmpool_leader".to_string(), 1),
    ];
    for (expression, expected) in truths {
        wait::until(&format!("{expression} was {expected}"), 20, || {
            let number = prometheus.number(&expression)?;
            let wanted = f64::from(u32::try_from(expected).unwrap_or(u32::MAX));
            wait::ensure((number - wanted).abs() < 0.5, || number.to_string())
        })?;
    }
    let within = format!(r#"warmpool_claim_wait_seconds_bucket{{{python},warm="true",le="30.0"}}"#);
    wait::until(&format!("{within} was 1 or more"), 20, || {
        let warm = prometheus.number(&within)?;
        wait::ensure(warm >= 1.0, || warm.to_string())
    })
}

/// `promtool test rules` on the rules as `change` leaves them.
fn rules_pass(scene: &Scene, change: impl FnOnce(&mut serde_yaml_ng::Value)) -> Result<bool, String> {
    let folder = scene.lab.cluster.dir.join("rules");
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let mut rules = rules()?;
    change(&mut rules);
    let text = serde_yaml_ng::to_string(&rules).map_err(|e| e.to_string())?;
    fs::write(folder.join("warmpool.yaml"), text).map_err(|e| e.to_string())?;
    let tests = folder.join("warmpool_test.yaml");
    fs::copy(repository().join(RULE_TESTS), &tests).map_err(|e| e.to_string())?;
    let mut promtool = Command::new(program("promtool")?);
    promtool.args(["test", "rules"]).arg(&tests);
    Ok(output_of(promtool, None).is_ok())
}

fn rules() -> Result<serde_yaml_ng::Value, String> {
    let text = fs::read_to_string(repository().join(RULES)).map_err(|e| e.to_string())?;
    serde_yaml_ng::from_str(&text).map_err(|e| format!("{RULES}: {e}"))
}

/// Every rule of every group.
fn all(rules: &mut serde_yaml_ng::Value) -> impl Iterator<Item = &mut serde_yaml_ng::Value> {
    let groups = rules["groups"].as_sequence_mut().into_iter().flatten();
    groups
        .filter_map(|group| group["rules"].as_sequence_mut())
        .flatten()
}

/// What can be wrong with a rule: that it never fires, that it always does, and that it takes no time to.
const MISTAKES: [(&str, &str); 3] = [("expr", "vector(1) > 2"), ("expr", "vector(1)"), ("for", "0s")];

pub fn every_alert_is_tested_and_explained(scene: &Scene) -> Result<(), String> {
    wait::ensure(rules_pass(scene, |_| {})?, || {
        "the tests of the rules fail".to_string()
    })?;
    let runbook = fs::read_to_string(repository().join(RUNBOOK)).map_err(|e| e.to_string())?;
    let mut names = BTreeSet::new();
    for rule in all(&mut rules()?) {
        let Some(name) = rule["alert"].as_str() else {
            continue;
        };
        names.insert(name.to_string());
        let link = rule["annotations"]["runbook_url"].as_str().unwrap_or_default();
        wait::ensure(link.ends_with(&format!("#{}", name.to_lowercase())), || {
            format!("{name} links to {link:?}")
        })?;
        wait::ensure(runbook.contains(&format!("\n## {name}\n")), || {
            format!("{RUNBOOK} has no section {name}")
        })?;
    }
    wait::ensure(names.len() == 9, || format!("{names:?}"))?;
    for name in &names {
        for (field, value) in MISTAKES {
            let passes = rules_pass(scene, |rules| {
                let rule = all(rules).find(|rule| rule["alert"].as_str() == Some(name));
                if let Some(rule) = rule {
                    rule[field] = value.into();
                }
            })?;
            wait::ensure(!passes, || {
                format!("{name} with {field}: {value} passes its tests")
            })?;
        }
    }
    Ok(())
}
