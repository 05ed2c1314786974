//! Checks `rollout undo`: the revision that it selects, its errors and its patch.

use crate::objects::{history, pool, revision, template};
use serde_json::{Value, json};
use warmpool::cli::kubectl::dry_run::DryRun;
use warmpool::cli::kubectl::rollout::history::History;
use warmpool::cli::kubectl::rollout::undo::{
    Decision, Difference, UndoError, choose, decide, difference, patch,
};

fn three() -> History {
    history(vec![
        revision(3, "image:3", Some("third")),
        revision(1, "image:1", Some("first")),
        revision(2, "image:2", None),
    ])
}

fn previous(image: &str) -> i64 {
    choose(&pool(image, &json!({})), &three(), 0).unwrap().revision
}

fn error(more: &Value, history: &History, to_revision: i64) -> String {
    let decided = decide(&pool("image:3", more), history, to_revision, DryRun::None);
    decided.unwrap_err().to_string()
}

#[test]
fn undo_selects_the_revision_before_the_current_template() {
    assert_eq!(previous("image:3"), 2);
}

#[test]
fn a_template_that_is_not_stored_yet_is_undone_to_the_newest_revision() {
    assert_eq!(previous("image:4"), 3);
}

#[test]
fn a_manual_rollback_is_undone_to_the_revision_that_it_replaced() {
    assert_eq!(previous("image:1"), 3);
}

#[test]
fn an_unknown_revision_is_not_found() {
    for number in [7, -1] {
        let expected = format!("unable to find specified revision {number} in history");
        assert_eq!(error(&json!({}), &three(), number), expected);
    }
}

#[test]
fn a_pool_with_a_single_revision_has_nothing_to_undo() {
    let single = history(vec![revision(3, "image:3", None)]);
    assert_eq!(
        error(&json!({}), &single, 0),
        "no rollout history found for pool \"python\""
    );
}

#[test]
fn an_equal_template_in_another_form_is_skipped() {
    let wordy = json!({"spec": {"template": {"spec": {"nodeSelector": {}}}}});
    let decided = decide(&pool("image:3", &wordy), &three(), 3, DryRun::None).unwrap();
    let words = "skipped rollback (current template already matches revision 3)";
    assert_eq!(decided, Decision::Print(words.into()));
}

#[test]
fn a_paused_pool_is_not_rolled_back_and_the_error_shows_the_command_that_resumes_it() {
    let paused = json!({"spec": {"updateStrategy": {"paused": true}}});
    assert_eq!(
        error(&paused, &three(), 1),
        "you cannot rollback a paused pool; resume it first with \
         'kubectl warmpool rollout resume python -n sandboxes' and try again"
    );
}

#[test]
fn a_pool_with_a_template_ref_is_not_rolled_back() {
    let by_reference = json!({"spec": {"template": null, "templateRef": {"name": "python-3.13"}}});
    let decided = decide(&pool("image:3", &by_reference), &three(), 1, DryRun::Client);
    assert!(
        matches!(&decided, Err(UndoError::TemplateRef { .. })),
        "{decided:?}"
    );
    let message = decided.unwrap_err().to_string();
    assert!(
        message.contains("PodTemplate \"python-3.13\"") && message.contains("instead"),
        "{message}"
    );
}

#[test]
fn a_client_side_dry_run_shows_the_template_and_writes_nothing() {
    let decided = decide(&pool("image:3", &json!({})), &three(), 1, DryRun::Client).unwrap();
    let Decision::Print(message) = decided else {
        panic!("nothing should be written: {decided:?}")
    };
    assert!(
        message.starts_with("will roll back to revision 1 (dry run)\nPod Template:\n"),
        "{message}"
    );
    assert!(message.contains("image: image:1"), "{message}");
}

/// The pool after the patch, as the API server would store it.
fn patched(more: &Value, to_revision: i64) -> Value {
    let pool = pool("image:3", more);
    let all = three();
    let operations = patch(&pool, choose(&pool, &all, to_revision).unwrap());
    let mut stored = serde_json::to_value(&pool).unwrap();
    json_patch::patch(
        &mut stored,
        &serde_json::from_value::<json_patch::Patch>(operations).unwrap(),
    )
    .unwrap();
    stored
}

#[test]
fn undo_restores_the_whole_template_and_nothing_else_of_the_spec() {
    let changed = json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {"hostNetwork": true}});
    let before = json!({"spec": {"replicas": 4, "template": changed}});
    let after = patched(&before, 1);
    assert_eq!(
        after["spec"],
        json!({"replicas": 4, "template": template("image:1")})
    );
}

#[test]
fn undo_restores_or_removes_the_change_cause() {
    let noted = json!({"metadata": {"annotations": {"kubernetes.io/change-cause": "third", "team": "red"}}});
    let annotations = |more: &Value, to| patched(more, to)["metadata"]["annotations"].clone();
    assert_eq!(
        annotations(&noted, 1),
        json!({"kubernetes.io/change-cause": "first", "team": "red"})
    );
    assert_eq!(annotations(&noted, 2), json!({"team": "red"}));
    assert_eq!(
        annotations(&json!({}), 1),
        json!({"kubernetes.io/change-cause": "first"})
    );
    assert_eq!(annotations(&json!({}), 2), Value::Null);
}

#[test]
fn the_json_patch_applies_only_to_the_pool_that_was_read() {
    let pool = pool("image:3", &json!({}));
    let all = three();
    let operations: json_patch::Patch = serde_json::from_value(patch(&pool, all.find(1).unwrap())).unwrap();
    for (field, other) in [("uid", "another"), ("resourceVersion", "78")] {
        let mut stored = serde_json::to_value(&pool).unwrap();
        stored["metadata"][field] = json!(other);
        assert!(json_patch::patch(&mut stored, &operations).is_err(), "{field}");
    }
}

#[test]
fn after_a_conflict_undo_retries_only_if_the_spec_is_unchanged() {
    let read = pool("image:3", &json!({}));
    let difference_after =
        |metadata: Value| difference(&read, &pool("image:3", &json!({"metadata": metadata})));
    assert_eq!(difference_after(json!({})), Difference::None);
    assert_eq!(
        difference_after(json!({"resourceVersion": "78"})),
        Difference::OutsideSpec
    );
    assert_eq!(
        difference_after(json!({"resourceVersion": "78", "generation": 4})),
        Difference::Spec
    );
    assert_eq!(
        difference_after(json!({"resourceVersion": "78", "uid": "another"})),
        Difference::Spec
    );
}
