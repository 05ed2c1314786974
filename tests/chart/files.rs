//! Checks the chart's files without Helm.

use crate::cluster::{output_of, repository};
use crate::plane::OUR_CRDS;
use crate::rbac;
use crate::wait::ensure;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

fn text(path: &str) -> Result<String, String> {
    fs::read_to_string(repository().join(path)).map_err(|e| format!("{path}: {e}"))
}

pub fn yaml(path: &str) -> Result<Value, String> {
    serde_yaml_ng::from_str(&text(path)?).map_err(|e| format!("{path}: {e}"))
}

/// Values that are objects with keys of the user's.
const WHOLE: [&str; 5] = [
    "resources",
    "affinity",
    "podSecurityContext",
    "securityContext",
    "metrics.dashboard.labels",
];

/// Names of values, like `image.tag`. An object that is empty by default, or whose keys are the user's, is one value.
fn names(values: &Value, prefix: &str, whole: &BTreeSet<String>) -> BTreeSet<String> {
    let Some(fields) = values
        .as_object()
        .filter(|f| !f.is_empty() && !whole.contains(prefix))
    else {
        return BTreeSet::from([prefix.to_string()]);
    };
    let inner = fields.iter().flat_map(|(key, value)| {
        let name = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        names(value, &name, whole)
    });
    inner.collect()
}

/// The same of the schema. `global` is Helm's own.
fn names_of_schema(schema: &Value, prefix: &str) -> BTreeSet<String> {
    let Some(fields) = schema["properties"].as_object() else {
        return BTreeSet::from([prefix.to_string()]);
    };
    let inner = fields
        .iter()
        .filter(|(key, _)| *key != "global")
        .flat_map(|(key, value)| {
            let name = if prefix.is_empty() {
                key.clone()
            } else {
                format!("{prefix}.{key}")
            };
            names_of_schema(value, &name)
        });
    inner.collect()
}

pub fn every_value_is_in_the_table_and_in_the_schema() -> Result<(), String> {
    let readme = text("charts/warmpool/README.md")?;
    let table: BTreeSet<String> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_string())
        .collect();
    let whole = BTreeSet::from(WHOLE.map(String::from));
    let values = names(&yaml("charts/warmpool/values.yaml")?, "", &whole);
    ensure(values == table, || {
        let differ: Vec<_> = values.symmetric_difference(&table).collect();
        format!("values.yaml and the table in the chart's README.md differ in {differ:?}")
    })?;
    let mut schema = yaml("charts/warmpool/values.schema.json")?;
    for name in ["resources", "affinity"] {
        if let Some(fields) = schema["properties"][name].as_object_mut() {
            fields.remove("properties");
        }
    }
    let known = names_of_schema(&schema, "");
    ensure(values == known, || {
        let differ: Vec<_> = values.symmetric_difference(&known).collect();
        format!("values.yaml and values.schema.json differ in {differ:?}")
    })
}

/// A text without Markdown's marks and without a first capital, so that table and comment can be compared.
fn plain(text: &str) -> String {
    let text = text.replace('`', "");
    // [words](link) is words.
    let text = text.split('[').map(|part| match part.split_once("](") {
        Some((words, rest)) => format!("{words}{}", rest.split_once(')').map_or("", |(_, rest)| rest)),
        None => part.to_string(),
    });
    let text = text.collect::<String>().trim_end_matches('.').to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn each_value_has_above_it_what_the_table_says_of_it() -> Result<(), String> {
    let (readme, values) = (
        text("charts/warmpool/README.md")?,
        text("charts/warmpool/values.yaml")?,
    );
    let (mut path, mut comment): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut above = std::collections::BTreeMap::new();
    for line in values.lines() {
        let (depth, words) = ((line.len() - line.trim_start().len()) / 2, line.trim());
        if let Some(words) = words.strip_prefix("# ") {
            comment.push(words);
            continue;
        }
        if let Some((key, _)) = words.split_once(':').filter(|_| !words.starts_with('-')) {
            path.truncate(depth);
            path.push(key);
            above.insert(path.join("."), plain(&comment.join(" ")));
        }
        comment.clear();
    }
    let rows = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut compared = 0;
    for (name, rest) in rows {
        let meaning = rest
            .trim_end_matches(" |")
            .splitn(3, '|')
            .nth(2)
            .map(plain)
            .unwrap_or_default();
        ensure(above.get(name) == Some(&meaning), || {
            format!(
                "{name}: the table says {meaning:?}, values.yaml {:?}",
                above.get(name)
            )
        })?;
        compared += 1;
    }
    ensure(compared > 50, || format!("the table has {compared} rows"))
}

pub fn the_charts_metadata_names_the_kinds_it_installs() -> Result<(), String> {
    let chart = yaml("charts/warmpool/Chart.yaml")?;
    for key in ["home", "icon", "keywords"] {
        ensure(!chart[key].is_null(), || format!("Chart.yaml has no {key}"))?;
    }
    let listed: Vec<Value> = annotation(&chart, "artifacthub.io/crds")?;
    for (crd, listed) in OUR_CRDS.iter().zip(&listed) {
        let plural = crd.split('.').next().unwrap_or_default();
        let filed = yaml(&format!("crds/warmpool.dev_{plural}.yaml"))?;
        let same = listed["name"] == *crd
            && listed["kind"] == filed["spec"]["names"]["kind"]
            && listed["version"] == filed["spec"]["versions"][0]["name"];
        ensure(same, || format!("Chart.yaml lists {listed} for {crd}"))?;
    }
    ensure(listed.len() == OUR_CRDS.len(), || {
        format!("Chart.yaml lists {listed:?}")
    })
}

/// What an annotation of Chart.yaml lists.
pub fn annotation(chart: &Value, key: &str) -> Result<Vec<Value>, String> {
    let text = chart["annotations"][key].as_str().unwrap_or_default();
    serde_yaml_ng::from_str(text).map_err(|e| format!("{key}: {e}"))
}

pub fn every_object_of_the_schema_refuses_what_it_does_not_know() -> Result<(), String> {
    fn open(schema: &Value, at: &str) -> Vec<String> {
        let here = schema["properties"].is_object() && schema["additionalProperties"] != false;
        let below = match schema {
            Value::Object(fields) => fields.iter().map(|(k, v)| (k.clone(), v)).collect(),
            Value::Array(items) => items.iter().map(|v| ("-".to_string(), v)).collect(),
            _ => Vec::new(),
        };
        let below = below
            .iter()
            .flat_map(|(key, value)| open(value, &format!("{at}/{key}")));
        here.then(|| at.to_string()).into_iter().chain(below).collect()
    }
    let open = open(&yaml("charts/warmpool/values.schema.json")?, "");
    ensure(open.is_empty(), || {
        format!("values.schema.json takes any field at {open:?}")
    })
}

pub fn the_chart_logs_what_the_binary_logs_by_itself() -> Result<(), String> {
    let values = yaml("charts/warmpool/values.yaml")?;
    let filter = values["log"]["filter"].as_str().unwrap_or_default();
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmpool"));
    command.args(["controller", "--help"]);
    let help = output_of(command, None)?;
    ensure(help.contains(&format!("[default: {filter}]")), || {
        format!(
            "log.filter of the chart is {filter}, and not what `warmpool controller --help` tells:\n{help}"
        )
    })?;
    let row = format!("| `log.filter` | `{filter}` |");
    ensure(text("charts/warmpool/README.md")?.contains(&row), || {
        format!("the table in the chart's README.md lacks {row}")
    })
}

pub fn chart_and_image_carry_the_version_of_the_binary() -> Result<(), String> {
    let chart = yaml("charts/warmpool/Chart.yaml")?;
    let version = env!("CARGO_PKG_VERSION");
    ensure(chart["appVersion"] == version, || {
        format!(
            "the binary is {version}, the chart's appVersion {}",
            chart["appVersion"]
        )
    })?;
    let label = format!("org.opencontainers.image.version=\"{version}\"");
    ensure(text("Dockerfile")?.contains(&label), || {
        format!("the Dockerfile does not set the label {label}")
    })
}

/// Whether Rust source defines a function of exactly this name.
fn defines(source: &str, function: &str) -> bool {
    let begin = format!("fn {function}");
    let mut rests = source.split(&begin).skip(1);
    !function.is_empty() && rests.any(|rest| rest.starts_with(['(', '<']))
}

pub fn a_function_is_known_by_its_whole_name() -> Result<(), String> {
    for (source, function, expected) in [
        ("pub async fn send(request: &Request) {}", "send", true),
        ("fn run<K: Indexed>(kind: K) {}", "run", true),
        ("fn send_queued() {} fn send() {}", "send", true),
        ("fn send_queued() {}", "send", false),
        ("fn send() {}", "sen", false),
        ("fn send() {}", "", false),
        ("send();", "send", false),
    ] {
        ensure(defines(source, function) == expected, || {
            format!("{source:?} defines {function:?}: {}", !expected)
        })?;
    }
    Ok(())
}

pub fn every_right_of_the_roles_is_told_with_the_function_that_needs_it() -> Result<(), String> {
    let mut granted = BTreeSet::new();
    for role in ["clusterrole.yaml", "role.yaml"] {
        for (verb, resource) in rbac::granted(role)?.iter().flat_map(rbac::rights) {
            let plural = resource.split('.').next().unwrap_or_default();
            granted.insert(format!("{verb} {plural}"));
        }
    }
    let mut documented = BTreeSet::new();
    for row in text("SECURITY.md")?.lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, resource, verbs, _, function_column, _] = &cells[..] else {
            continue;
        };
        let Some((file, function)) = function_column.split_once(": ") else {
            continue;
        };
        let (file, function) = (file.trim_matches('`'), function.trim_matches('`'));
        ensure(defines(&text(file)?, function), || {
            format!("{file} has no function {function}")
        })?;
        documented.extend(
            verbs
                .split(", ")
                .map(|verb| format!("{verb} {}", resource.trim_matches('`'))),
        );
    }
    ensure(documented == granted, || {
        let differ: Vec<_> = documented.symmetric_difference(&granted).collect();
        format!("the roles and the table in SECURITY.md differ in {differ:?}")
    })
}
