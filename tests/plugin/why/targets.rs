//! Checks which object the argument of `why` names.

use super::plain;
use serde_json::json;
use warmpool::cli::kubectl::why::target::{Kind, Target, TargetError};

#[test]
fn a_name_alone_means_a_claim_then_a_pool_then_a_pod_and_mentions_the_others() {
    let named = |kind: &str| {
        format!("There is also a {kind} with this name: 'kubectl warmpool why {kind}/python -n ns'.")
    };
    let world = plain(0).pod("python", "image:2", &json!({}));
    let answer = world.sentences("python").unwrap();
    assert!(answer[0].starts_with("Pool python"), "{answer:#?}");
    assert_eq!(answer.last(), Some(&named("pod")));
    let world = world.claim("python", &json!({}), &json!({}));
    let answer = world.sentences("python").unwrap();
    assert!(answer[0].starts_with("Claim python"), "{answer:#?}");
    assert_eq!(answer[answer.len() - 2..], [named("pool"), named("pod")]);
    assert!(world.sentences("pod/python").unwrap()[0].starts_with("Sandbox python"));
}

#[test]
fn a_missing_object_is_not_explained() {
    for target in ["nobody", "claim/python", "pod/python", "pool/nobody"] {
        assert_eq!(plain(0).sentences(target), None, "{target}");
    }
}

#[test]
fn objects_are_named_with_the_kinds_of_kubectl() {
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
