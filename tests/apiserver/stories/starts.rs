//! Checks starts without an API server, without CRDs or without a right.
//!
//! The operator logs what is missing, waits, and goes on when that is fixed.

use crate::accounts::account;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::pool;
use crate::operator::{LONG_LEASE, Operator};
use crate::rbac::granted;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// How often the log has `words`.
fn times(log: &str, words: &str) -> usize {
    log.lines().filter(|line| line.contains(words)).count()
}

/// The same without what it says of the pools, claims and objects of others, which may be about to go with their namespaces.
fn times_of(scene: &Scene, log: &str, words: &str) -> usize {
    let names_one = |line: &str| {
        [" pool=", " claim=", " object="]
            .iter()
            .any(|key| line.contains(key))
    };
    let ours = |line: &&str| !names_one(line) || line.contains(&scene.namespace);
    let lines = log.lines().filter(|line| line.contains(words));
    lines.filter(ours).count()
}

/// The rules that it says are missing, each once. It may meet one more in a namespace that is about to go.
fn rights_missed(log: &str) -> BTreeSet<&str> {
    let said = log.lines().filter_map(|line| {
        line.split_once("the operator may not ")?
            .1
            .split_once(" in API group")
    });
    said.map(|(rule, _)| rule).collect()
}

pub fn without_an_api_server_it_waits_and_says_so_once(scene: &Scene) -> Result<(), String> {
    scene.declare(|rules| {
        rules.gaps = true;
        rules.idle = None;
    });
    scene.create_pool(&pool("python", 3, &json!({})))?;
    scene.lab.cluster.tool(&["stop", "apiserver"])?;
    let mut operator = scene.lab.start_operator_with(&LONG_LEASE)?;
    operator.server_restarts = true;
    operator.says("a request fails", 30)?;
    wait::throughout("it waits and does not repeat itself", 10, || {
        let times_logged = times(&operator.text()?, "a request fails");
        wait::ensure(times_logged <= 2, || {
            format!("{times_logged} times:\n{}", operator.tail())
        })
    })?;
    operator.lives()?;
    scene.lab.cluster.tool(&["start", "apiserver"])?;
    scene.await_scheduler()?;
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}

pub fn without_its_types_it_says_how_to_install_them(scene: &Scene) -> Result<(), String> {
    scene.declare(|rules| {
        rules.gaps = true;
        rules.idle = None;
    });
    scene.lab.cluster.delete_types(&["-k", "crds"])?;
    let started = start_without_types(scene);
    // Whatever came of it, the next test needs them.
    install_types(scene)?;
    let operator = started?;
    wait::until("a pool could be created", 30, || {
        scene.create_pool(&pool("python", 3, &json!({})))
    })?;
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}

fn start_without_types(scene: &Scene) -> Result<Operator, String> {
    let mut operator = scene.lab.start_operator_with(&LONG_LEASE)?;
    for name in ["pools.warmpool.dev", "sandboxclaims.warmpool.dev"] {
        operator.says(&format!("does not serve {name}"), 30)?;
    }
    operator.says("warmpool crds | kubectl apply -f -", 1)?;
    wait::throughout("it says so once", 5, || {
        let times_logged = times(&operator.text()?, "does not serve");
        wait::ensure(times_logged == 2, || {
            format!("{times_logged} times:\n{}", operator.tail())
        })
    })?;
    operator.lives()?;
    Ok(operator)
}

fn install_types(scene: &Scene) -> Result<(), String> {
    let apply = ["apply", "--server-side", "--force-conflicts", "-k", "crds"];
    scene.lab.cluster.kubectl(&apply, None)?;
    wait::until("the types were established", 30, || {
        let crds = ["crd/pools.warmpool.dev", "crd/sandboxclaims.warmpool.dev"];
        let established = [
            "wait",
            "--for=condition=Established",
            "--timeout=10s",
            crds[0],
            crds[1],
        ];
        scene.lab.cluster.kubectl(&established, None).map(drop)
    })
}

pub fn types_of_another_version_are_named_with_their_fields(scene: &Scene) -> Result<(), String> {
    scene.declare(|rules| rules.gaps = true);
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let older =
        json!([{"op": "remove", "path": format!("{properties}/spec/properties/revisionHistoryLimit")}]);
    let novel = json!({"type": "string"});
    let newer = json!([{"op": "add", "path": format!("{properties}/spec/properties/novel"), "value": novel}]);
    let patch = |crd: &str, patch: &Value| {
        let patch = patch.to_string();
        scene
            .lab
            .cluster
            .kubectl(&["patch", "crd", crd, "--type=json", "-p", &patch], None)
    };
    patch("pools.warmpool.dev", &older)?;
    patch("sandboxclaims.warmpool.dev", &newer)?;
    wait::until("the new schemas were published", 30, || {
        let path = "/openapi/v3/apis/warmpool.dev/v1alpha1";
        let published = scene.lab.cluster.kubectl(&["get", "--raw", path], None)?;
        wait::ensure(published.contains("\"novel\""), || "not yet".into())
    })?;
    let started = start_with_other_types(scene);
    install_types(scene)?;
    started?.stop()
}

fn start_with_other_types(scene: &Scene) -> Result<Operator, String> {
    let operator = scene.lab.start_operator()?;
    operator.says("the CRD pools.warmpool.dev is older than this operator", 30)?;
    operator.says(
        "the CRD sandboxclaims.warmpool.dev is newer than this operator",
        30,
    )?;
    for field in ["spec.revisionHistoryLimit", "spec.novel"] {
        let times_logged = times(&operator.text()?, &format!("fields=\"{field}\""));
        wait::ensure(times_logged == 1, || {
            format!("{field}: {times_logged} times\n{}", operator.tail())
        })?;
    }
    Ok(operator)
}

pub fn types_of_its_own_version_are_no_news(scene: &Scene) -> Result<(), String> {
    let operator = scene
        .lab
        .start_operator_with(&["--leader-elect=false", "--log=debug"])?;
    scene.create_pool(&pool("python", 1, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    wait::throughout("it finds no difference", 5, || {
        let times_logged = times(&operator.text()?, "than this operator");
        wait::ensure(times_logged == 0, || operator.tail())
    })?;
    operator.stop()
}

/// An account with the operator's ClusterRole but for some rights; its kubeconfig.
fn account_without(scene: &Scene, name: &str, lacking: &[(&str, &str)]) -> Result<PathBuf, String> {
    let mut rules = granted("clusterrole.yaml")?;
    for rule in &mut rules {
        let resources = rule["resources"].clone();
        let lacks = |verb: &Value| {
            let of_rule = |resource: &str| resources.as_array().is_some_and(|r| r.contains(&json!(resource)));
            lacking.iter().any(|(v, resource)| verb == v && of_rule(resource))
        };
        if let Some(verbs) = rule["verbs"].as_array_mut() {
            verbs.retain(|verb| !lacks(verb));
        }
    }
    rules.retain(|rule| rule["verbs"].as_array().is_some_and(|verbs| !verbs.is_empty()));
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules,
    });
    scene
        .lab
        .cluster
        .kubectl(&["create", "-f", "-"], Some(&role.to_string()))?;
    let kubeconfig = account(scene.lab, &scene.namespace, name)?;
    let subject = format!("--serviceaccount={}:{name}", scene.namespace);
    let role = format!("--clusterrole={name}");
    scene.kubectl(&["create", "clusterrolebinding", name, &role, &subject], None)?;
    Ok(kubeconfig)
}

pub fn each_missing_right_is_named_once(scene: &Scene) -> Result<(), String> {
    scene.declare(|rules| rules.idle = None);
    let watches = [("list", "podtemplates")];
    let kubeconfig = account_without(scene, "blind", &watches)?;
    let operator = scene
        .lab
        .start_operator_as(&kubeconfig, &["--leader-elect=false"])?;
    let writes = [
        ("create", "pods"),
        ("create", "controllerrevisions"),
        ("patch", "pools/status"),
    ];
    let kubeconfig = account_without(scene, "mute", &writes)?;
    scene.create_pool(&pool("python", 3, &json!({})))?;
    let other = scene
        .lab
        .start_operator_as(&kubeconfig, &["--leader-elect=false"])?;
    operator.says("the operator may not list podtemplates in API group \"\"", 30)?;
    other.says(
        "the operator may not create controllerrevisions in API group \"apps\"",
        30,
    )?;
    other.says(
        "the operator may not patch pools/status in API group \"warmpool.dev\"",
        30,
    )?;
    wait::throughout("each is named once, at whatever rate it is met", 12, || {
        for operator in [&operator, &other] {
            // One text for all three: a line may come at any moment.
            let log = operator.text()?;
            let times_logged = times(&log, "the operator may not");
            let troubled = times_of(scene, &log, "WARN") + times_of(scene, &log, "ERROR");
            let rules = rights_missed(&log).len();
            wait::ensure(times_logged == rules && troubled == rules, || operator.tail())?;
        }
        Ok(())
    })?;
    // What each waits for comes, and it works.
    drop(operator);
    drop(other);
    let operator = scene.lab.start_operator()?;
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}
