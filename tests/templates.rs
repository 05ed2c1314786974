//! PodTemplates, and the pools that refer to them, in the index.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::Arc;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::rejected_creations::CreationBackoff;
use warmpool::cache::snapshot::Creation;
use warmpool::cache::watch::take_over_list;
use warmpool::model::Key;
use warmpool::model::pool::Pool;
use warmpool::model::pool_error::PoolError;
use warmpool::model::revision::Template;
use warmpool::model::stored::{StoredPodTemplate, StoredPool};

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn pool(name: &str, template: Value) -> StoredPool {
    let mut spec = json!({"replicas": 1});
    spec.as_object_mut()
        .unwrap()
        .extend(template.as_object().unwrap().clone());
    let metadata = json!({"namespace": "default", "name": name, "uid": name, "resourceVersion": "1"});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn user_of(template: &str) -> Value {
    json!({"templateRef": {"name": template}})
}

fn inline(image: &str) -> Value {
    json!({"template": pod(image)})
}

fn pod(image: &str) -> Value {
    json!({"spec": {"containers": [{"name": "main", "image": image}]}})
}

fn stored(name: &str, template: Value) -> StoredPodTemplate {
    let metadata = json!({"namespace": "default", "name": name});
    serde_json::from_value(json!({"metadata": metadata, "template": template})).unwrap()
}

fn pool_in(index: &Index, name: &str) -> Arc<Pool> {
    index.pool(&key(name)).unwrap()
}

fn pools(names: &[&str]) -> Vec<ReconcileRequest> {
    names
        .iter()
        .map(|name| ReconcileRequest::Pool(key(name)))
        .collect()
}

/// Pools a and b use the PodTemplate `shared`, c uses another, and d has a template of its own.
fn index() -> Index {
    let mut index = Index::default();
    index.apply_template(&stored("shared", pod("image:1")));
    index.apply_template(&stored("other", pod("image:1")));
    index.apply_template(&stored("unused", pod("image:1")));
    for (name, template) in [
        ("a", user_of("shared")),
        ("b", user_of("shared")),
        ("c", user_of("other")),
        ("d", inline("image:1")),
    ] {
        index.apply_pool(&pool(name, template));
    }
    index
}

#[test]
fn a_changed_template_triggers_the_pools_that_use_it_and_no_other() {
    let mut index = index();
    assert_eq!(
        index.apply_template(&stored("shared", pod("image:2"))),
        pools(&["a", "b"])
    );
    assert_eq!(index.apply_template(&stored("unused", pod("image:2"))), []);
    let mut elsewhere = stored("shared", pod("image:3"));
    elsewhere.metadata.namespace = Some("elsewhere".into());
    assert_eq!(index.apply_template(&elsewhere), []);
    for (name, image) in [
        ("a", "image:2"),
        ("b", "image:2"),
        ("c", "image:1"),
        ("d", "image:1"),
    ] {
        let canonical = &pool_in(&index, name).template.canonical;
        assert!(canonical.contains(image), "{name}: {canonical}");
    }
}

#[test]
fn a_change_that_does_not_affect_pods_triggers_no_pool() {
    let mut index = index();
    let mut same = pod("image:1");
    same["metadata"] = json!({"name": "ignored", "creationTimestamp": null});
    let mut labelled = stored("shared", same);
    labelled.metadata.labels = Some([("team".to_string(), "red".to_string())].into());
    assert_eq!(index.apply_template(&labelled), []);
}

#[test]
fn an_inline_template_and_a_pod_template_have_the_same_canonical_form() {
    let index = index();
    assert_eq!(
        pool_in(&index, "a").template.canonical,
        pool_in(&index, "d").template.canonical
    );
}

#[test]
fn only_labels_annotations_and_spec_of_a_template_are_used() {
    let mut index = index();
    let mut wordy = pod("image:1");
    wordy["metadata"] = json!({"name": "x", "labels": {"team": "red"}, "annotations": {"note": "y"}});
    wordy["spec"]["securityContext"] = json!({});
    index.apply_template(&stored("shared", wordy.clone()));
    wordy["metadata"].as_object_mut().unwrap().remove("name");
    assert_eq!(*pool_in(&index, "a").template, Template::new(wordy));
    // The template stays as it is stored, because a ControllerRevision keeps it.
    assert_eq!(pool_in(&index, "c").template.value, pod("image:1"));
}

#[test]
fn a_missing_template_is_an_error_until_it_exists() {
    let mut index = Index::default();
    index.apply_pool(&pool("a", user_of("shared")));
    let Some(PoolError::TemplateNotFound(message)) = &pool_in(&index, "a").error else {
        panic!("{:?}", pool_in(&index, "a").error);
    };
    for word in [
        "PodTemplate shared",
        "namespace default",
        "create it",
        "spec.templateRef",
    ] {
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(
        index.apply_template(&stored("shared", pod("image:1"))),
        pools(&["a"])
    );
    assert_eq!(pool_in(&index, "a").error, None);
    assert_eq!(
        index.delete_template(&stored("shared", pod("image:1"))),
        pools(&["a"])
    );
    assert!(matches!(
        pool_in(&index, "a").error,
        Some(PoolError::TemplateNotFound(_))
    ));
    assert_eq!(index.delete_template(&stored("shared", pod("image:1"))), []);
}

#[test]
fn an_invalid_template_is_an_error_that_says_what_to_do() {
    let mut index = index();
    let ours = json!({"warmpool.dev/state": "warm"});
    let of = |metadata: Value| json!({"metadata": metadata, "spec": pod("image:1")["spec"]});
    for (template, words) in [
        (
            of(json!({"labels": ours})),
            [
                "template.metadata.labels",
                "warmpool.dev/state",
                "belong to the operator; remove it",
            ],
        ),
        (
            of(json!({"annotations": ours})),
            [
                "template.metadata.annotations",
                "warmpool.dev/state",
                "belong to the operator; remove it",
            ],
        ),
        (
            json!({"spec": {"containers": []}}),
            [
                "template.spec.containers",
                "is empty",
                "add at least one container",
            ],
        ),
        (
            Value::Null,
            [
                "template.spec.containers",
                "is empty",
                "add at least one container",
            ],
        ),
    ] {
        index.apply_template(&stored("shared", template));
        let Some(PoolError::TemplateInvalid(message)) = &pool_in(&index, "a").error else {
            panic!("{:?}", pool_in(&index, "a").error);
        };
        assert!(message.contains("PodTemplate shared"), "{message}");
        words
            .iter()
            .for_each(|word| assert!(message.contains(word), "{word:?} is not in {message:?}"));
    }
    index.apply_template(&stored("shared", of(json!({"labels": {"team": "red"}}))));
    assert_eq!(pool_in(&index, "a").error, None);
}

#[test]
fn a_template_that_a_list_omits_is_deleted() {
    let mut index = index();
    take_over_list(&mut index, vec![stored("other", pod("image:1"))]);
    assert!(matches!(
        pool_in(&index, "a").error,
        Some(PoolError::TemplateNotFound(_))
    ));
    assert_eq!(pool_in(&index, "c").error, None);
}

#[test]
fn a_pool_that_no_longer_refers_to_a_template_is_not_triggered() {
    let mut index = index();
    index.apply_pool(&pool("a", user_of("other")));
    index.apply_pool(&pool("b", inline("image:1")));
    assert_eq!(index.apply_template(&stored("shared", pod("image:2"))), []);
    assert_eq!(
        index.apply_template(&stored("other", pod("image:2"))),
        pools(&["a", "c"])
    );
    index.delete_pool(&pool("a", user_of("other")));
    assert_eq!(
        index.apply_template(&stored("other", pod("image:3"))),
        pools(&["c"])
    );
    take_over_list(&mut index, vec![pool("d", inline("image:1"))]);
    assert_eq!(index.apply_template(&stored("other", pod("image:4"))), []);
}

#[test]
fn a_pool_that_is_applied_again_keeps_its_template() {
    let mut index = index();
    index.apply_template(&stored("shared", pod("image:2")));
    index.apply_pool(&pool("a", user_of("shared")));
    assert_eq!(pool_in(&index, "a").error, None);
    assert!(pool_in(&index, "a").template.canonical.contains("image:2"));
}

#[test]
fn a_stored_pool_with_both_template_sources_or_neither_has_an_invalid_spec() {
    let mut both = user_of("shared");
    both["template"] = pod("image:1");
    for (spec, words) in [
        (both, "spec.templateRef"),
        (json!({}), "spec.template: missing"),
        (user_of(""), "spec.templateRef.name"),
    ] {
        let mut index = index();
        index.apply_pool(&pool("a", spec));
        let Some(PoolError::Spec(message)) = &pool_in(&index, "a").error else {
            panic!("{:?}", pool_in(&index, "a").error);
        };
        assert!(message.contains(words), "{message}");
        // The pool refers to no template, so no change of a template fixes it.
        assert_eq!(
            index.apply_template(&stored("shared", pod("image:2"))),
            pools(&["b"])
        );
    }
}

#[test]
fn a_rejection_of_a_template_does_not_delay_the_fixed_template() {
    let (mut index, mut backoff) = (index(), CreationBackoff::default());
    let rejected = pool_in(&index, "a");
    let now = jiff::Timestamp::now();
    backoff.failed(&rejected, "no".into(), None, now);
    assert!(matches!(backoff.state(&rejected, now), Creation::BackOff { .. }));
    index.apply_template(&stored("shared", pod("image:2")));
    let fixed = pool_in(&index, "a");
    assert_eq!(fixed.generation, rejected.generation);
    assert_eq!(backoff.state(&fixed, now), Creation::Open);
}

#[test]
fn the_backoff_resets_after_minutes_without_an_attempt() {
    let (index, mut backoff) = (index(), CreationBackoff::default());
    let pool = pool_in(&index, "a");
    let mut now = jiff::Timestamp::now();
    let first = backoff.failed(&pool, "no".into(), None, now);
    now += 10 * first;
    assert!(backoff.failed(&pool, "no".into(), None, now) > first);
    assert!(matches!(backoff.state(&pool, now), Creation::BackOff { .. }));
    now += SignedDuration::from_mins(5);
    assert_eq!(backoff.state(&pool, now), Creation::Open);
    assert_eq!(backoff.failed(&pool, "no".into(), None, now), first);
}
