//! Makes the pages of docs/reference from the CRDs, the code and the binary, and checks that they are current.

use crate::pages::repository;
use prometheus_client::encoding::text::encode;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::synced_cache::SharedCache;
use warmpool::cli::kubectl::{command as plugin, output_schemas};
use warmpool::client::connect::{ClientOptions, client};
use warmpool::client::identity::Component;
use warmpool::model::Key;
use warmpool::telemetry::http::exposition::registry;
use warmpool::telemetry::metrics::Metrics;

/// Set to write the pages rather than compare them.
const WRITE: &str = "WRITE_REFERENCE";

/// What stands in the CRD of a pool for the pod of its template: thousands of Kubernetes' own fields.
const POD_SPEC: &str = "template.spec";

/// Compares a page with what it has to be, or writes it.
fn check(name: &str, title: &str, body: &str) {
    let path = repository().join("docs/reference").join(name);
    let text = format!(
        "<!-- Written by `make reference`. -->\n# {title}\n\n{}\n",
        body.trim_end()
    );
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, text).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/reference/{name} is not current: run `make reference` and commit it"
    );
}

fn crd(plural: &str) -> Value {
    let path = repository().join(format!("crds/warmpool.dev_{plural}.yaml"));
    serde_yaml_ng::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// One cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".into();
    }
    match schema["type"].as_str().unwrap_or("any") {
        "array" => format!("list of {}", type_of(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => "map".into(),
        "string" if schema["format"] == "date-time" => "time".into(),
        other => other.into(),
    }
}

fn rows(path: &str, schema: &Value, table: &mut String) {
    let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        let default = match &field["default"] {
            Value::Null if required.iter().any(|r| *r == name) => "required".into(),
            Value::Null | Value::Object(_) => String::new(),
            default => format!("`{default}`").replace('"', ""),
        };
        let meaning = match (field["description"].as_str(), path.as_str()) {
            (None, POD_SPEC) => "The PodSpec, as in a Deployment: `kubectl explain pod.spec`.".to_string(),
            (text, _) => cell(text.unwrap_or_default()),
        };
        let meaning = match field["enum"].as_array() {
            Some(values) => {
                let values: Vec<String> = values
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|v| format!("`{v}`"))
                    .collect();
                format!("{meaning} One of {}.", values.join(", "))
            }
            None => meaning,
        };
        writeln!(table, "| `{path}` | {} | {default} | {meaning} |", type_of(field)).unwrap();
        if path != POD_SPEC {
            rows(&format!("{path}."), field, table);
            rows(&format!("{path}[]."), &field["items"], table);
        }
    }
}

/// The sentences with which the API server rejects an object.
fn refusals(schema: &Value, found: &mut Vec<String>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        found.extend(rule["message"].as_str().map(ToString::to_string));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if !(name == "spec" && field["properties"]["containers"].is_object()) {
            refusals(field, found);
        }
    }
}

fn kind_page(plural: &str) {
    let crd = crd(plural);
    let (names, version) = (&crd["spec"]["names"], &crd["spec"]["versions"][0]);
    let kind = names["kind"].as_str().unwrap();
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut body = format!(
        "{}\n\n`apiVersion: {}/{}`, plural `{plural}`, short name `{}`. `kubectl explain {}` shows the same.\n",
        schema["description"].as_str().unwrap_or_default(),
        crd["spec"]["group"].as_str().unwrap(),
        version["name"].as_str().unwrap(),
        names["shortNames"][0].as_str().unwrap(),
        names["shortNames"][0].as_str().unwrap(),
    );
    for part in ["spec", "status"] {
        write!(
            body,
            "\n## {part}\n\n| field | type | default | meaning |\n|---|---|---|---|\n"
        )
        .unwrap();
        rows("", &schema["properties"][part], &mut body);
    }
    body += "\n## Columns\n\n| column | shown | value |\n|---|---|---|\n";
    for column in version["additionalPrinterColumns"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let shown = if column["priority"].as_i64().unwrap_or(0) > 0 {
            "with `-o wide`"
        } else {
            "always"
        };
        let path = column["jsonPath"]
            .as_str()
            .unwrap_or_default()
            .trim_start_matches('.');
        writeln!(
            body,
            "| {} | {shown} | `{path}` |",
            column["name"].as_str().unwrap().to_uppercase()
        )
        .unwrap();
    }
    let mut sentences = Vec::new();
    refusals(schema, &mut sentences);
    sentences.sort();
    sentences.dedup();
    body += "\n## What the API server rejects\n\nThe API server rejects an object that breaks a rule, with the rule's sentence:\n\n";
    for sentence in sentences {
        writeln!(body, "- {}", cell(&sentence)).unwrap();
    }
    check(&format!("{plural}.md"), kind, &body);
}

#[test]
fn the_reference_of_pools_is_current() {
    kind_page("pools");
}

#[test]
fn the_reference_of_claims_is_current() {
    kind_page("sandboxclaims");
}

/// All metrics, each with a series: those of requests and reconciles have none before the first.
async fn scrape() -> String {
    let (metrics, shared) = (Metrics::default(), SharedCache::default());
    let pool = ReconcileRequest::Pool(Key::new("default", "python"));
    metrics.queued(pool.clone());
    drop(metrics.reconciling(pool));
    let options = ClientOptions {
        metrics: Some(metrics.requests.clone()),
        ..ClientOptions::of(Component::Controller)
    };
    // Nobody listens there, and the request is counted.
    let nowhere = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    let answer = client(nowhere, options).unwrap().apiserver_version().await;
    assert!(answer.is_err());
    let mut text = String::new();
    encode(&mut text, &registry(&metrics, &shared)).unwrap();
    text
}

#[tokio::test]
async fn the_reference_of_metrics_is_current() {
    let mut body = String::from(
        "The operator serves these metrics on `/metrics`, in the OpenMetrics text format. [Usage](../usage.md#metrics-and-logs) \
         says how to scrape them, and the [runbook](../runbook.md) explains the alerts on them.\n\n\
         | metric | type | meaning |\n|---|---|---|\n",
    );
    let mut meaning = String::new();
    for line in scrape().await.lines() {
        if let Some((_, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            meaning = cell(help.trim_end_matches('.'));
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            // Samples of these types carry a suffix, by which queries name them.
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            writeln!(body, "| `{name}{suffix}` | {kind} | {meaning} |").unwrap();
        }
    }
    check("metrics.md", "Metrics", &body);
}

/// A constant of a source file: its name, its value and its comment.
struct Constant {
    value: String,
    meaning: String,
}

/// The string constants of `src/api/conditions.rs` in their sections: one for the types, one for each module of reasons.
fn conditions() -> Vec<(String, Vec<Constant>)> {
    let source = fs::read_to_string(repository().join("src/api/conditions.rs")).unwrap();
    let (mut sections, mut comment) = (vec![("Types".to_string(), Vec::new())], String::new());
    for line in source.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("/// ") {
            comment = format!("{comment} {words}");
            continue;
        }
        let meaning = std::mem::take(&mut comment);
        if line.starts_with("pub mod ") {
            sections.push((meaning, Vec::new()));
        } else if let Some((_, rest)) = line
            .strip_prefix("pub const ")
            .and_then(|l| l.split_once(": &str = \""))
        {
            let value = rest.trim_end_matches("\";").to_string();
            sections.last_mut().unwrap().1.push(Constant { value, meaning });
        }
    }
    sections
}

/// The reasons of the condition `DisruptionPending`. The label that asks for a replacement is for unclaimed sandboxes
/// alone.
fn leaving_reasons() -> Vec<Constant> {
    let source = fs::read_to_string(repository().join("src/model/leaving_reason.rs")).unwrap();
    let (_, rest) = source.split_once("pub enum LeavingReason {\n").unwrap();
    let (variants, _) = rest.split_once("\n}").unwrap();
    let (mut reasons, mut comment) = (Vec::new(), String::new());
    for line in variants.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("/// ") {
            comment = format!("{comment} {words}");
        } else if let Some(value) = line.strip_suffix(',') {
            let (value, meaning) = (value.to_string(), std::mem::take(&mut comment));
            reasons.push(Constant { value, meaning });
        }
    }
    reasons.retain(|reason| reason.value != "EvictRequested");
    reasons
}

/// The events of a pool that do not have the reason of a condition.
const POOL_EVENTS: [(&str, &str); 5] = [
    ("Exhausted", "The condition `Exhausted` has become True."),
    (
        "SandboxesNotAvailable",
        "The condition `Available` names a new reason why warming sandboxes are not available.",
    ),
    (
        "DrainPolicyBreak",
        "A sandbox was deleted before its replacement was available: it could not stay on its node, and \
         `disruption.drainPolicy` is Break.",
    ),
    (
        "DrainDeadlineExceeded",
        "A sandbox was deleted before its replacement was available: it could not stay on its node, and \
         `disruption.drainDeadlineSeconds` have passed.",
    ),
    ("Resumed", "A paused rollout resumes."),
];

/// The events of a claim.
const CLAIM_EVENTS: [(&str, &str); 6] = [
    (
        "Waiting",
        "The claim begins to wait for its first sandboxes; the event says why.",
    ),
    (
        "Bound",
        "The claim has its first sandboxes, after a wait; with `--claim-events=all` also if it was served at once.",
    ),
    ("SandboxLost", "A sandbox of the claim was deleted or has failed."),
    (
        "Replaced",
        "The claim has a sandbox in place of each that it lost.",
    ),
    ("Failed", "The claim has failed; the event says why."),
    ("Expired", "The lifetime of the claim has ended."),
];

fn reasons_table<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut table = String::from("| reason | meaning |\n|---|---|\n");
    for (reason, meaning) in rows {
        writeln!(table, "| `{reason}` | {meaning} |").unwrap();
    }
    table
}

#[test]
fn the_reference_of_conditions_is_current() {
    let sections = conditions();
    let types = &sections[0].1;
    assert!(
        sections.len() > 4 && types.len() > 5,
        "the conditions were not found in the code"
    );
    // A comment names a type by its constant.
    let source = fs::read_to_string(repository().join("src/api/conditions.rs")).unwrap();
    let named = |text: &str| {
        let mut text = text.to_string();
        for constant in types {
            let marker = format!(": &str = \"{}\";", constant.value);
            let name = source
                .lines()
                .find_map(|l| l.strip_prefix("pub const ")?.strip_suffix(marker.as_str()));
            text = text.replace(
                &format!("[`{}`]", name.unwrap_or_default()),
                &format!("`{}`", constant.value),
            );
        }
        cell(&text)
    };
    let mut body = String::from(
        "Conditions say in `status.conditions` of a pool or a claim what is true of it now; the message says what is wrong and \
         what to do. [Events](#events) report what changes.\n\n\
         ## Types\n\n| type | meaning |\n|---|---|\n",
    );
    for constant in types {
        writeln!(body, "| `{}` | {} |", constant.value, named(&constant.meaning)).unwrap();
    }
    for (title, constants) in &sections[1..] {
        let title = named(title);
        let title = title.trim_end_matches('.').replace('`', "");
        let rows = constants.iter().map(|c| (c.value.as_str(), named(&c.meaning)));
        write!(body, "\n## {title}\n\n{}", reasons_table(rows)).unwrap();
    }
    let leaving = leaving_reasons();
    assert!(
        leaving.len() > 5,
        "the reasons of leaving were not found in the code"
    );
    let rows = leaving.iter().map(|c| (c.value.as_str(), cell(&c.meaning)));
    let of_events = |events: &[(&'static str, &str)]| {
        reasons_table(
            events
                .iter()
                .map(|(reason, meaning)| (*reason, (*meaning).to_string())),
        )
    };
    write!(
        body,
        "\n## Reasons of DisruptionPending\n\nWhy a sandbox of the claim cannot stay on its node:\n\n{}\
         \n## Events\n\nEvents of a pool (`kubectl events --for=pool/NAME`) report changes of `Progressing` and \
         `ReplicaFailure` under the condition's reason. Further reasons are:\n\n{}\
         \nEvents of a claim have these reasons:\n\n{}",
        reasons_table(rows),
        of_events(&POOL_EVENTS),
        of_events(&CLAIM_EVENTS)
    )
    .unwrap();
    check("conditions.md", "Conditions and events", &body);
}

/// What a program says to `--help`, under a name of its own: the plugin is the same binary.
pub fn help(name: &str, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmpool"));
    command
        .arg0(name)
        .args(arguments)
        .arg("--help")
        .env("COLUMNS", "100");
    command.output().unwrap()
}

/// The verbs that a help lists.
fn verbs(help: &str) -> Vec<String> {
    let (_, list) = help.split_once("Commands:\n").unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let words = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs = words
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help");
    verbs.map(ToString::to_string).collect()
}

fn command_page(name: &str, called: &str, verbs_so_far: &[&str], body: &mut String) {
    let output = help(name, verbs_so_far);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{called} {verbs_so_far:?} --help: {text}"
    );
    let title = [&[called], verbs_so_far].concat().join(" ");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    write!(
        body,
        "\n## {title}\n\n```text\n{}\n```\n",
        lines.join("\n").trim_end()
    )
    .unwrap();
    for verb in verbs(&text) {
        command_page(name, called, &[verbs_so_far, &[verb.as_str()]].concat(), body);
    }
}

/// The flags of kubectl that each verb of the plugin has.
fn flags_of_verbs(command: &clap::Command, so_far: &str, table: &mut String) {
    for verb in command.get_subcommands() {
        let name = format!("{so_far}{}", verb.get_name());
        if verb.has_subcommands() {
            flags_of_verbs(verb, &format!("{name} "), table);
            continue;
        }
        let flag = |long: &str| verb.get_arguments().find(|flag| flag.get_long() == Some(long));
        let has = |long: &str| if flag(long).is_some() { "yes" } else { "" };
        let formats = flag("output")
            .map(clap::Arg::get_possible_values)
            .unwrap_or_default();
        let formats: Vec<_> = formats
            .iter()
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        writeln!(
            table,
            "| `{name}` | {} | {} | {} |",
            has("selector"),
            has("all-namespaces"),
            formats.join(" ")
        )
        .unwrap();
    }
}

#[test]
fn the_reference_of_the_documents_that_verbs_print_is_current() {
    let mut body = String::from(
        "With `-o json` and `-o yaml` these verbs of the plugin print one document, for programs. A key is not renamed or removed \
         within a minor version; new keys may come. The other verbs that have `-o` print the Kubernetes object that they read or \
         wrote.\n",
    );
    for (verb, schema) in output_schemas() {
        let schema = schema.as_value();
        let description = schema["description"].as_str().unwrap_or_default();
        write!(
            body,
            "\n## {verb}\n\n{}\n\n| key | type | meaning |\n|---|---|---|\n",
            cell(description)
        )
        .unwrap();
        keys("", schema, &mut body);
    }
    check("output.md", "Documents of the plugin", &body);
}

/// A row for each key of a document, but for the keys below the status of a pool, which have a page.
fn keys(path: &str, schema: &Value, table: &mut String) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        // A value that may be absent has two types.
        let types = field["type"].as_array().cloned().unwrap_or_default();
        let known = types.iter().find(|kind| *kind != "null").cloned();
        let mut field = field.clone();
        if let Some(kind) = known {
            field["type"] = kind;
        }
        let or_null = if types.is_empty() { "" } else { " or null" };
        let meaning = cell(field["description"].as_str().unwrap_or_default());
        writeln!(table, "| `{path}` | {}{or_null} | {meaning} |", type_of(&field)).unwrap();
        let has_page = path.ends_with(".status") || path.ends_with("conditions");
        if !has_page {
            keys(&format!("{path}."), &field, table);
            keys(&format!("{path}[]."), &field["items"], table);
        }
    }
}

#[test]
fn the_reference_of_commands_is_current() {
    let mut body = String::from(
        "One binary has two names: `warmpool` is the operator, and `kubectl-warmpool` is the kubectl plugin. Each prints this \
         with `--help`.\n\n\
         | exit code | meaning |\n|---|---|\n\
         | 0 | done |\n\
         | 1 | the error is on standard error; for `rollout status` and `claim` also: not done within `--timeout` |\n\
         | 2 | the command line is wrong, or the file of `warmpool plan -f`; `kubectl warmpool drain`: something blocks the drain |\n\
         | 128 + N | `kubectl warmpool claim` was ended by signal N: 130 after ^C |\n\
         | any | `kubectl warmpool claim` and `exec` with a command: that of the command in the sandbox |\n",
    );
    body += "\nEvery verb of the plugin has `-n`, `--context`, `--kubeconfig`, `--as`, `--as-group` and `--request-timeout`. These flags \
             are there where they make sense; elsewhere the error says what to write instead.\n\n\
             | verb | `-l` | `-A` | `-o` |\n|---|---|---|---|\n";
    flags_of_verbs(&plugin(), "", &mut body);
    body += "\n[Documents of the plugin](output.md) has the keys that `-o json` and `-o yaml` print.\n";
    command_page("warmpool", "warmpool", &[], &mut body);
    command_page("kubectl-warmpool", "kubectl warmpool", &[], &mut body);
    assert!(body.matches("\n## ").count() > 12, "the verbs were not found");
    check("commands.md", "Commands and exit codes", &body);
}
