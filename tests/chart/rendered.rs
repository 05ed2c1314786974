//! Checks what Helm and kustomize render, without a cluster.

use crate::cluster::{binaries, output_of, repository};
use crate::plane::{CHART, OUR_CRDS, SYSTEM, documents, helm};
use crate::wait::ensure;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// The chart's objects.
pub fn chart(more: &[&str]) -> Result<Vec<Value>, String> {
    let usual = ["template", "warmpool", CHART, "-n", SYSTEM];
    documents(&helm(&[&usual, more].concat())?)
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|o| o["kind"] == kind).collect()
}

pub fn helm_finds_nothing_to_complain_of() -> Result<(), String> {
    helm(&["lint", "--strict", CHART]).map(drop)
}

pub fn a_value_that_is_misspelt_or_cannot_be_is_refused_by_its_name() -> Result<(), String> {
    for (value, complaint) in [
        ("replcas=1", "additional properties 'replcas' not allowed"),
        (
            "metrics.serviceMonitr.enabled=true",
            "additional properties 'serviceMonitr' not allowed",
        ),
        ("crds.kep=false", "additional properties 'kep' not allowed"),
        ("replicas=two", "at '/replicas'"),
        ("log.format=yaml", "value must be one of 'text', 'json'"),
        (
            "leaderElection.leaseDuration=15",
            "at '/leaderElection/leaseDuration'",
        ),
        (
            "admissionPolicies.validationActions={Deny,Warn}",
            "at '/admissionPolicies/validationActions/1': value must be one of 'Deny', 'Audit'",
        ),
        (
            "leaderElection.retryPeriod=5s1m",
            "at '/leaderElection/retryPeriod'",
        ),
        ("watchNamespace=Team", "at '/watchNamespace'"),
        ("watchNamespace=team.a", "at '/watchNamespace'"),
        ("health.port=8080", "metrics.port and health.port are both 8080"),
        ("image.digest=sha256:12", "at '/image/digest'"),
        ("image.tag=1 2", "at '/image/tag'"),
        ("image.repository=my registry/warmpool", "at '/image/repository'"),
        (
            "flowControl.concurrencyShares=0",
            "at '/flowControl/concurrencyShares'",
        ),
        (
            "podDisruptionBudget.maxUnavailable=200%",
            "at '/podDisruptionBudget/maxUnavailable'",
        ),
        (
            "leaderElection.leaseDuration=5s",
            "leaderElection.leaseDuration is 5s and leaderElection.renewDeadline is 10s: the lease must be longer",
        ),
        (
            "leaderElection.leaseDuration=15s500ms",
            "it must be a whole number of seconds",
        ),
        ("leaderElection.leaseDuration=0s", "at least 1s"),
        (
            "leaderElection.retryPeriod=50ms",
            "leaderElection.retryPeriod is 50ms: it must be at least 100ms",
        ),
        (
            "leaderElection.retryPeriod=9s",
            "must be longer than 1.2 times the period",
        ),
        (
            "extraArgs={--log=debug}",
            "extraArgs has --log: set the value log.filter instead",
        ),
        (
            "extraArgs={--metrics-bind-address}",
            "set the value metrics.port instead",
        ),
        ("extraArgs={plan}", "at '/extraArgs/0'"),
        ("extraArgs={--pool-selector=a}", "set the value shards instead"),
        ("shards[0].name=a", "missing property 'poolSelector'"),
        ("shards[0].name=A,shards[0].poolSelector=a", "at '/shards/0/name'"),
        (
            "shards[0].name=a,shards[0].poolSelector=x,shards[1].name=b,shards[1].poolSelector=x",
            "shards has two entries with the same poolSelector",
        ),
        ("extraEnv[0].value=x", "missing property 'name'"),
        ("extraEnv[0].name=POD_NAME", "at '/extraEnv/0/name'"),
    ] {
        let said = chart(&["--set", value]).err().unwrap_or_default();
        ensure(said.contains(complaint), || {
            format!("--set {value}: Helm said {said:?}")
        })?;
    }
    Ok(())
}

pub fn rendering_says_nothing_beside_the_objects() -> Result<(), String> {
    for verb in [&["template", "warmpool"][..], &["lint"], &["show", "values"]] {
        let program = std::env::var("WARMPOOL_HELM").unwrap_or_else(|_| "helm".into());
        let mut command = Command::new(binaries().join(program));
        command.current_dir(repository()).args(verb).arg(CHART);
        let output = command.output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure(output.status.success() && said.is_empty(), || {
            format!("helm {}: {said}", verb.join(" "))
        })?;
    }
    Ok(())
}

pub fn what_is_added_to_the_operator_is_in_its_pod() -> Result<(), String> {
    let objects = chart(&["-f", "tests/chart/values/everything.yaml"])?;
    let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let has = |list: &Value, wanted: Value| list.as_array().is_some_and(|items| items.contains(&wanted));
    let env = &container["env"];
    let added = has(
        &container["args"],
        json!("--leader-elect-resource-namespace=default"),
    ) && has(env, json!({"name": "NO_PROXY", "value": "10.0.0.0/8"}))
        && has(
            env,
            json!({"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}),
        );
    ensure(added, || container.to_string())?;
    // What the values do not name keeps its default.
    let contexts = pod["securityContext"]["fsGroup"] == 1000
        && pod["securityContext"]["runAsNonRoot"] == true
        && container["securityContext"]["runAsUser"] == 1000
        && container["securityContext"]["readOnlyRootFilesystem"] == true;
    ensure(contexts, || pod.to_string())
}

pub fn each_shard_has_a_deployment_and_a_lease_of_its_own() -> Result<(), String> {
    let shards = "shards[0].name=one,shards[0].poolSelector=shard=one,shards[1].name=rest,shards[1].poolSelector=shard!=one";
    let objects = chart(&["--set", shards])?;
    let deployments = of_kind(&objects, "Deployment");
    let names: Vec<_> = deployments.iter().map(|d| &d["metadata"]["name"]).collect();
    ensure(names == ["warmpool-one", "warmpool-rest"], || {
        format!("{names:?}")
    })?;
    for (deployment, (name, selector)) in deployments
        .iter()
        .zip([("one", "shard=one"), ("rest", "shard!=one")])
    {
        let spec = &deployment["spec"];
        let args = spec["template"]["spec"]["containers"][0]["args"].to_string();
        let has_args = args.contains(&format!("\"--pool-selector={selector}\""))
            && args.contains(&format!("\"--leader-elect-resource-name=warmpool-{name}\""));
        ensure(has_args, || args.clone())?;
        let own_pods = spec["selector"]["matchLabels"]["warmpool-shard"] == name
            && spec["template"]["metadata"]["labels"]["warmpool-shard"] == name;
        ensure(own_pods, || spec.to_string())?;
    }
    let roles = of_kind(&objects, "Role");
    let leases = &roles[0]["rules"][1]["resourceNames"];
    ensure(*leases == json!(["warmpool-one", "warmpool-rest"]), || {
        roles[0].to_string()
    })
}

pub fn monitors_go_where_they_are_asked_for_with_their_relabelings() -> Result<(), String> {
    let objects = chart(&["-f", "tests/chart/values/everything.yaml"])?;
    for (kind, endpoints) in [
        ("ServiceMonitor", "endpoints"),
        ("PodMonitor", "podMetricsEndpoints"),
    ] {
        let monitor = of_kind(&objects, kind)[0];
        let endpoint = &monitor["spec"][endpoints][0];
        let right = monitor["metadata"]["namespace"] == "default"
            && monitor["spec"]["namespaceSelector"]["matchNames"] == json!([SYSTEM])
            && endpoint["relabelings"] == json!([{"targetLabel": "cluster", "replacement": "one"}])
            && endpoint["metricRelabelings"].is_array();
        ensure(right, || monitor.to_string())?;
    }
    let rule = of_kind(&objects, "PrometheusRule")[0];
    ensure(rule["metadata"]["namespace"] == "default", || rule.to_string())
}

pub fn either_port_can_be_set_alone() -> Result<(), String> {
    for port in ["metrics.port", "health.port"] {
        let value = format!("{port}=9090");
        let objects = Value::from(chart(&["--set", &value])?).to_string();
        ensure(objects.contains(":9090"), || {
            format!("--set {value} sets nothing")
        })?;
    }
    Ok(())
}

pub fn the_crds_are_those_of_the_repository() -> Result<(), String> {
    let objects = chart(&[])?;
    let mut rendered = of_kind(&objects, "CustomResourceDefinition");
    rendered.sort_by_key(|crd| crd["metadata"]["name"].to_string());
    let specs: Vec<&Value> = rendered.iter().map(|crd| &crd["spec"]).collect();
    let filed = OUR_CRDS.map(|name| {
        let plural = name.split('.').next().unwrap_or_default();
        let path = repository().join(format!("crds/warmpool.dev_{plural}.yaml"));
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        serde_yaml_ng::from_str::<Value>(&text).map_err(|e| e.to_string())
    });
    let filed: Vec<Value> = filed.into_iter().collect::<Result<_, String>>()?;
    let expected: Vec<&Value> = filed.iter().map(|crd| &crd["spec"]).collect();
    ensure(specs == expected, || {
        "the chart's CRDs are not those in crds/".into()
    })
}

pub fn crds_can_be_left_out_and_need_not_be_kept() -> Result<(), String> {
    let kept = |objects: &[Value]| {
        let crds = of_kind(objects, "CustomResourceDefinition");
        let policy = |crd: &&&Value| crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep";
        (crds.len(), crds.iter().filter(policy).count())
    };
    for (values, expected) in [
        ("replicas=2", (2, 2)),
        ("crds.keep=false", (2, 0)),
        ("crds.enabled=false", (0, 0)),
    ] {
        let found = kept(&chart(&["--set", values])?);
        ensure(found == expected, || {
            format!(
                "with {values} the chart has {} CRDs, {} of them kept",
                found.0, found.1
            )
        })?;
    }
    Ok(())
}

pub fn a_service_account_that_is_neither_made_nor_named_is_refused() -> Result<(), String> {
    let said = chart(&["--set", "serviceAccount.create=false"])
        .err()
        .unwrap_or_default();
    ensure(said.contains("serviceAccount.name has to say which"), || {
        format!("Helm said {said:?}")
    })?;
    let objects = chart(&["--set", "serviceAccount.create=false,serviceAccount.name=mine"])?;
    let deployment = of_kind(&objects, "Deployment");
    ensure(
        deployment[0]["spec"]["template"]["spec"]["serviceAccountName"] == "mine",
        || deployment[0].to_string(),
    )
}

pub fn a_service_monitor_without_a_service_is_refused() -> Result<(), String> {
    let values = "metrics.serviceMonitor.enabled=true,metrics.service.enabled=false";
    let said = chart(&["--set", values]).err().unwrap_or_default();
    ensure(said.contains("there is no Service to scrape"), || {
        format!("Helm said {said:?}")
    })
}

/// Where numbers stand in an object.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(number) => found.push(format!("{at}: {number}")),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, at, found)),
        Value::Object(fields) => {
            for (key, field) in fields {
                numbers(field, &format!("{at}.{key}"), found);
            }
        }
        _ => {}
    }
}

pub fn names_that_are_digits_stay_names() -> Result<(), String> {
    let names = "nameOverride=2024,watchNamespace=2024,serviceAccount.name=2024,priorityClass.name=2024";
    let all = "tests/chart/values/everything.yaml";
    let mut read = Vec::new();
    for full in ["", "2024"] {
        let names = format!("{names},fullnameOverride={full}");
        let values = ["-f", all, "--set-string", &names];
        let rendered = helm(&[&["template", "2024", CHART, "-n", "2024"][..], &values].concat())?;
        for object in documents(&rendered)? {
            numbers(&object, object["kind"].as_str().unwrap_or_default(), &mut read);
        }
    }
    read.retain(|place| place.ends_with(": 2024"));
    ensure(read.is_empty(), || format!("2024 is read as a number: {read:?}"))
}

/// By kind and name, without what says that Helm made it.
fn plain(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let named = objects.into_iter().map(|mut object| {
        if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
            labels.remove("helm.sh/chart");
            labels.remove("app.kubernetes.io/managed-by");
        }
        if object["kind"] == "CustomResourceDefinition" {
            // In crds/ they have none; they are for Helm alone.
            let name = object["metadata"]["name"].clone();
            object["metadata"] = json!({"name": name});
        }
        (
            format!("{} {}", object["kind"], object["metadata"]["name"]),
            object,
        )
    });
    named.collect()
}

pub fn kustomize_gives_what_the_chart_gives() -> Result<(), String> {
    let mut command = Command::new(binaries().join("kubectl"));
    command
        .current_dir(repository())
        .args(["kustomize", "config/default"]);
    let mut kustomized = plain(documents(&output_of(command, None)?)?);
    let namespace = kustomized
        .remove(&format!("\"Namespace\" \"{SYSTEM}\""))
        .unwrap_or_default();
    ensure(
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted",
        || format!("the namespace in config/ is {namespace}"),
    )?;
    // The pod of `helm test` is Helm's alone.
    let rendered = plain(chart(&["--skip-tests"])?);
    let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
    ensure(names(&kustomized) == names(&rendered), || {
        format!(
            "config/ has {:?}, the chart {:?}",
            names(&kustomized),
            names(&rendered)
        )
    })?;
    let differs = rendered
        .iter()
        .find(|(name, object)| kustomized.get(*name) != Some(object));
    differs.map_or(Ok(()), |(name, object)| {
        Err(format!(
            "{name} is {object} in the chart and {} in config/",
            kustomized[name]
        ))
    })
}

pub fn the_manifests_are_what_make_config_writes() -> Result<(), String> {
    let fresh = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut command = Command::new(repository().join("config/generate.sh"));
    command.arg(fresh.path()).env("WARMPOOL_CLUSTER_BIN", binaries());
    output_of(command, None)?;
    let mut files = 0;
    for folder in ["rbac", "manager", "policies"] {
        let entries = fs::read_dir(fresh.path().join(folder)).map_err(|e| e.to_string())?;
        for entry in entries.flatten() {
            let name = format!("config/{folder}/{}", entry.file_name().to_string_lossy());
            let read = |path| fs::read_to_string(path).map_err(|e| format!("{name}: {e}"));
            ensure(read(entry.path())? == read(repository().join(&name))?, || {
                format!("{name} is not what the chart says: run `make config` and commit it")
            })?;
            files += 1;
        }
    }
    ensure(files >= 10, || format!("make config writes {files} files"))
}
