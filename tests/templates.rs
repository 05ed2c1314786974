//! PodTemplates and the pools that use them, fed to the index as the watches feed it.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::Arc;
use warmpool::cache::index::{Index, ReconcileRequest};
use warmpool::cache::snapshot::Creation;
use warmpool::cache::watch::take_over_list;
use warmpool::client::call::CallError;
use warmpool::executor::creation_backoff::Backoff;
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

fn seen(index: &Index, name: &str) -> Arc<Pool> {
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
    index.apply_template(&stored("nobodys", pod("image:1")));
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
    assert_eq!(index.apply_template(&stored("nobodys", pod("image:2"))), []);
    let mut elsewhere = stored("shared", pod("image:3"));
    elsewhere.metadata.namespace = Some("elsewhere".into());
    assert_eq!(index.apply_template(&elsewhere), []);
    for (name, image) in [
        ("a", "image:2"),
        ("b", "image:2"),
        ("c", "image:1"),
        ("d", "image:1"),
    ] {
        let canonical = &seen(&index, name).template.canonical;
        assert!(canonical.contains(image), "{name}: {canonical}");
    }
}

#[test]
fn a_change_that_reaches_no_pod_triggers_nobody() {
    let mut index = index();
    let mut same = pod("image:1");
    same["metadata"] = json!({"name": "ignored", "creationTimestamp": null});
    let mut labelled = stored("shared", same);
    labelled.metadata.labels = Some([("team".to_string(), "red".to_string())].into());
    assert_eq!(index.apply_template(&labelled), []);
}

#[test]
fn the_same_template_is_the_same_content_wherever_it_is_written() {
    let index = index();
    assert_eq!(
        seen(&index, "a").template.canonical,
        seen(&index, "d").template.canonical
    );
}

#[test]
fn only_labels_annotations_and_spec_of_a_template_are_taken_over() {
    let mut index = index();
    let mut wordy = pod("image:1");
    wordy["metadata"] = json!({"name": "x", "labels": {"team": "red"}, "annotations": {"note": "y"}});
    wordy["spec"]["securityContext"] = json!({});
    index.apply_template(&stored("shared", wordy.clone()));
    wordy["metadata"].as_object_mut().unwrap().remove("name");
    assert_eq!(*seen(&index, "a").template, Template::new(wordy));
    // What is not written is not made up: a ControllerRevision holds the template as it is.
    assert_eq!(seen(&index, "c").template.value, pod("image:1"));
}

#[test]
fn a_missing_template_is_a_fault_until_it_appears() {
    let mut index = Index::default();
    index.apply_pool(&pool("a", user_of("shared")));
    let Some(PoolError::TemplateNotFound(message)) = &seen(&index, "a").error else {
        panic!("{:?}", seen(&index, "a").error);
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
    assert_eq!(seen(&index, "a").error, None);
    assert_eq!(
        index.delete_template(&stored("shared", pod("image:1"))),
        pools(&["a"])
    );
    assert!(matches!(
        seen(&index, "a").error,
        Some(PoolError::TemplateNotFound(_))
    ));
    assert_eq!(index.delete_template(&stored("shared", pod("image:1"))), []);
}

#[test]
fn a_template_that_cannot_be_used_is_a_fault_that_says_what_to_do() {
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
        let Some(PoolError::TemplateInvalid(message)) = &seen(&index, "a").error else {
            panic!("{:?}", seen(&index, "a").error);
        };
        assert!(message.contains("PodTemplate shared"), "{message}");
        words
            .iter()
            .for_each(|word| assert!(message.contains(word), "{word:?} is not in {message:?}"));
    }
    index.apply_template(&stored("shared", of(json!({"labels": {"team": "red"}}))));
    assert_eq!(seen(&index, "a").error, None);
}

#[test]
fn a_list_without_a_template_means_that_it_is_gone() {
    let mut index = index();
    take_over_list(&mut index, vec![stored("other", pod("image:1"))]);
    assert!(matches!(
        seen(&index, "a").error,
        Some(PoolError::TemplateNotFound(_))
    ));
    assert_eq!(seen(&index, "c").error, None);
}

#[test]
fn a_pool_that_names_another_template_or_none_or_is_gone_is_triggered_no_more() {
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
fn a_pool_seen_again_keeps_the_template_that_it_uses() {
    let mut index = index();
    index.apply_template(&stored("shared", pod("image:2")));
    index.apply_pool(&pool("a", user_of("shared")));
    assert_eq!(seen(&index, "a").error, None);
    assert!(seen(&index, "a").template.canonical.contains("image:2"));
}

#[test]
fn a_pool_with_both_sources_or_neither_stored_under_a_looser_schema_is_a_fault_of_its_spec() {
    let mut both = user_of("shared");
    both["template"] = pod("image:1");
    for (spec, words) in [
        (both, "spec.templateRef"),
        (json!({}), "spec.template: missing"),
        (user_of(""), "spec.templateRef.name"),
    ] {
        let mut index = index();
        index.apply_pool(&pool("a", spec));
        let Some(PoolError::Spec(message)) = &seen(&index, "a").error else {
            panic!("{:?}", seen(&index, "a").error);
        };
        assert!(message.contains(words), "{message}");
        // It uses none of them, so that none can mend it.
        assert_eq!(
            index.apply_template(&stored("shared", pod("image:2"))),
            pools(&["b"])
        );
    }
}

#[test]
fn a_refusal_of_one_template_does_not_hold_up_the_mended_one() {
    let (mut index, mut backoff) = (index(), Backoff::default());
    let refused = seen(&index, "a");
    let now = jiff::Timestamp::now();
    backoff.failed(&refused, &CallError::NoAnswer, now);
    assert!(matches!(backoff.of(&refused, now), Creation::BackOff { .. }));
    index.apply_template(&stored("shared", pod("image:2")));
    let mended = seen(&index, "a");
    assert_eq!(mended.generation, refused.generation);
    assert_eq!(backoff.of(&mended, now), Creation::Open);
}

#[test]
fn a_refusal_that_nothing_was_tried_after_for_minutes_is_not_told_of_again() {
    let (index, mut backoff) = (index(), Backoff::default());
    let pool = seen(&index, "a");
    let mut now = jiff::Timestamp::now();
    let first = backoff.failed(&pool, &CallError::NoAnswer, now);
    now += 10 * first;
    assert!(backoff.failed(&pool, &CallError::NoAnswer, now) > first);
    assert!(matches!(backoff.of(&pool, now), Creation::BackOff { .. }));
    now += SignedDuration::from_mins(5);
    assert_eq!(backoff.of(&pool, now), Creation::Open);
    assert_eq!(backoff.failed(&pool, &CallError::NoAnswer, now), first);
}
