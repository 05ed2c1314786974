//! Which object a name means.

use super::plain;
use serde_json::json;
use warmpool::cli::kubectl::why::target::{Kind, Target, TargetError};

#[test]
fn a_bare_name_means_a_claim_then_a_pool_then_a_pod_and_the_others_are_told() {
    let named = |kind: &str| {
        format!("There is also a {kind} with this name: 'kubectl warmpool why {kind}/python -n ns'.")
    };
    let world = plain(0).pod("python", "image:2", &json!({}));
    let said = world.said("python").unwrap();
    assert!(said[0].starts_with("Pool python"), "{said:#?}");
    assert_eq!(said.last(), Some(&named("pod")));
    let world = world.claim("python", &json!({}), &json!({}));
    let said = world.said("python").unwrap();
    assert!(said[0].starts_with("Claim python"), "{said:#?}");
    assert_eq!(said[said.len() - 2..], [named("pool"), named("pod")]);
    assert!(world.said("pod/python").unwrap()[0].starts_with("Sandbox python"));
}

#[test]
fn what_is_not_there_is_not_explained() {
    for target in ["nobody", "claim/python", "pod/python", "pool/nobody"] {
        assert_eq!(plain(0).said(target), None, "{target}");
    }
}

#[test]
fn objects_are_named_as_kubectl_names_them() {
    let kinds = [
        ("run", None),
        ("sbc/run", Some(Kind::Claim)),
        ("SandboxClaims.warmpool.dev/run", Some(Kind::Claim)),
        ("wp/run", Some(Kind::Pool)),
        ("pools/run", Some(Kind::Pool)),
        ("po/run", Some(Kind::Pod)),
    ];
    for (written, kind) in kinds {
        let name = "run".into();
        assert_eq!(written.parse(), Ok(Target { kind, name }), "{written}");
    }
    assert_eq!(
        "node/run".parse::<Target>(),
        Err(TargetError::Kind("node/run".into()))
    );
    assert_eq!("pod/..".parse::<Target>(), Err(TargetError::Name("..".into())));
}
