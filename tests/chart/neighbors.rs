//! Checks several operators, or several owners of the CRDs, in one cluster.

use crate::api::{CRDS, NAMESPACES, POOLS};
use crate::objects::pool;
use crate::plane::{CHART, OUR_CRDS, Plane, SYSTEM, TEAM};
use crate::wait::ensure;
use serde_json::{Value, json};

const OTHER: &str = "other";

/// What Helm says when it is to install a second release.
fn refusal(plane: &Plane, values: &str) -> String {
    let install = [
        "install",
        "second",
        CHART,
        "-n",
        OTHER,
        "--create-namespace",
        "--set",
        values,
    ];
    plane.helm(&install).err().unwrap_or_default()
}

fn says(said: &str, words: &[&str]) -> Result<(), String> {
    let missing = words.iter().find(|w| !said.contains(**w));
    missing.map_or(Ok(()), |w| Err(format!("Helm does not say {w:?} but {said:?}")))
}

pub fn a_second_release_is_told_of_the_first(plane: &Plane) -> Result<(), String> {
    plane.install(CHART, &["--create-namespace"])?;
    let first = "installed by the Helm release warmpool in namespace warmpool-system";
    for values in [
        "replicas=2",
        "crds.enabled=false",
        "watchNamespace=other,crds.enabled=false",
    ] {
        says(
            &refusal(plane, values),
            &[
                "keeps the pools in every namespace already",
                first,
                "watchNamespace",
            ],
        )?;
    }
    // The first one is not in its own way.
    plane.upgrade(CHART, &["--set", "replicas=3"]).map(drop)
}

pub fn crds_of_somebody_else_are_not_touched_and_can_be_taken_over(plane: &Plane) -> Result<(), String> {
    plane.cluster.kubectl(&["apply", "-k", "crds"], None)?;
    plane.team()?;
    plane.create(POOLS, &pool("python", 1, &json!({})))?;
    let said = refusal(plane, "replicas=2");
    says(
        &said,
        &[
            "pools.warmpool.dev is there already",
            "did not use Helm",
            "crds.enabled=false",
        ],
    )?;
    // What it says to do, word for word, until nothing is in the way.
    for name in OUR_CRDS {
        let said = refusal(plane, "replicas=2");
        says(&said, &[name])?;
        let commands = said
            .lines()
            .filter_map(|line| line.trim().strip_prefix("kubectl "));
        for command in commands {
            plane
                .cluster
                .kubectl(&command.split_whitespace().collect::<Vec<_>>(), None)?;
        }
    }
    let said = refusal(plane, "replicas=2");
    ensure(said.is_empty(), || format!("Helm said {said}"))?;
    let crd = plane.get(CRDS, "", OUR_CRDS[0])?;
    ensure(
        crd["metadata"]["labels"]["app.kubernetes.io/instance"] == "second",
        || format!("the CRD has {}", crd["metadata"]),
    )?;
    plane.get(POOLS, TEAM, "python")?;

    // Uninstalled, it leaves them behind with its name on; another one says so.
    plane.helm(&["uninstall", "second", "-n", OTHER])?;
    let said = plane
        .install(CHART, &["--create-namespace"])
        .err()
        .unwrap_or_default();
    says(
        &said,
        &[
            "installed by the Helm release second in namespace other",
            "if it was left behind",
        ],
    )
}

pub fn two_operators_share_a_cluster_by_namespaces(plane: &Plane) -> Result<(), String> {
    plane.team()?;
    plane.install(CHART, &["--create-namespace", "--set", "watchNamespace=team"])?;
    says(
        &refusal(plane, "watchNamespace=team,crds.enabled=false"),
        &["keeps the pools in namespace team already"],
    )?;
    says(
        &refusal(plane, "crds.enabled=false"),
        &["keeps the pools in namespace team already"],
    )?;
    says(
        &refusal(plane, "watchNamespace=other"),
        &["pools.warmpool.dev is there already", "crds.enabled=false"],
    )?;
    // Helm acts as a user with every right in one namespace and none elsewhere.
    if plane.api.get(NAMESPACES, "", OTHER)?.is_none() {
        plane.cluster.kubectl(&["create", "namespace", OTHER], None)?;
    }
    let role = ["-n", OTHER, "create", "role", "all", "--verb=*", "--resource=*.*"];
    plane.cluster.kubectl(&role, None)?;
    let binding = [
        "-n",
        OTHER,
        "create",
        "rolebinding",
        "all",
        "--role=all",
        "--user=sam",
    ];
    plane.cluster.kubectl(&binding, None)?;
    let within = "watchNamespace=other,crds.enabled=false,rbac.userRoles=false,priorityClass.create=false,\
                  admissionPolicies.claimDeletion=false,admissionPolicies.deleteProtection=false,admissionPolicies.podLabels=false";
    plane.helm(&[
        "install",
        "second",
        CHART,
        "-n",
        OTHER,
        "--kube-as-user",
        "sam",
        "--wait",
        "--timeout",
        "60s",
        "--set",
        within,
    ])?;
    let account = format!("system:serviceaccount:{OTHER}:second-warmpool");
    for (namespace, allowed) in [(OTHER, true), (TEAM, false), (SYSTEM, false)] {
        for (verb, group, resource) in [
            ("list", "", "pods"),
            ("create", "", "pods"),
            ("watch", "warmpool.dev", "pools"),
            ("update", "warmpool.dev", "sandboxclaims/status"),
        ] {
            let found = may(plane, &account, namespace, verb, group, resource)?;
            ensure(found == allowed, || {
                format!("{account} may {verb} {resource} in {namespace}: {found}")
            })?;
        }
    }
    Ok(())
}

/// Whether the API server would let the user do it.
pub fn may(
    plane: &Plane,
    user: &str,
    namespace: &str,
    verb: &str,
    group: &str,
    resource: &str,
) -> Result<bool, String> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review: Value = json!({"spec": {"user": user, "resourceAttributes": {
        "namespace": namespace, "verb": verb, "group": group, "resource": resource, "subresource": subresource,
    }}});
    let answer = plane.api.create(crate::plane::REVIEWS, "", &review)?;
    Ok(answer["status"]["allowed"] == true)
}
