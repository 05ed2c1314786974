//! Missing rights are read from the authorizer's sentence and from no other message.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use warmpool::client::missing_rights::MissingRight;

fn right(verb: &str, resource: &str, group: &str, namespace: Option<&str>) -> Option<MissingRight> {
    Some(MissingRight {
        verb: verb.into(),
        resource: resource.into(),
        group: group.into(),
        namespace: namespace.map(Into::into),
    })
}

#[test]
fn the_authorizers_sentence_names_verb_resource_group_and_namespace() {
    let user = r#"User "system:serviceaccount:warmpool-system:warmpool""#;
    let rows = [
        (
            format!(
                r#"pods is forbidden: {user} cannot list resource "pods" in API group "" at the cluster scope"#
            ),
            right("list", "pods", "", None),
        ),
        (
            format!(
                r#"pools.warmpool.dev "python" is forbidden: {user} cannot patch resource "pools/status" in API group "warmpool.dev" in the namespace "team": RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#
            ),
            right("patch", "pools/status", "warmpool.dev", Some("team")),
        ),
    ];
    for (message, expected) in rows {
        assert_eq!(MissingRight::read(&message), expected, "{message}");
    }
}

#[test]
fn a_rejection_by_quota_or_admission_is_no_missing_right() {
    for message in [
        r#"pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3"#,
        r#"pods "a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false"#,
        r#"pods "a" is forbidden: error looking up service account team/sandbox: serviceaccount "sandbox" not found"#,
        "a webhook cannot be called",
        "",
    ] {
        assert_eq!(MissingRight::read(message), None, "{message}");
    }
}
