//! Checks `rollout pause`, `resume` and `restart`: the patches and the errors.

use crate::objects::pool;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use warmpool::cli::kubectl::rollout::edit::EditError;
use warmpool::cli::kubectl::rollout::{pause, restart, resume};

fn restart_patch(pool: &DynamicObject) -> Result<Value, EditError> {
    restart::patch(pool, "2026-01-31T12:00:00.7Z".parse().unwrap())
}

type Patch = fn(&DynamicObject) -> Result<Value, EditError>;

fn written(patch: Patch, more: &Value) -> Value {
    patch(&pool("image:1", more)).unwrap()["spec"].clone()
}

fn error(patch: Patch, more: &Value) -> String {
    patch(&pool("image:1", more)).unwrap_err().to_string()
}

fn paused(paused: bool) -> Value {
    json!({"spec": {"updateStrategy": {"paused": paused}}})
}

#[test]
fn pause_and_resume_write_one_field() {
    let field = |value: bool| json!({"updateStrategy": {"paused": value}});
    assert_eq!(written(pause::patch, &json!({})), field(true));
    assert_eq!(written(pause::patch, &paused(false)), field(true));
    assert_eq!(written(resume::patch, &paused(true)), field(false));
}

#[test]
fn pausing_a_paused_pool_and_resuming_a_running_pool_fail() {
    assert_eq!(
        error(pause::patch, &paused(true)),
        "pools.warmpool.dev \"python\" is already paused"
    );
    assert_eq!(
        error(resume::patch, &paused(false)),
        "pools.warmpool.dev \"python\" is not paused"
    );
}

#[test]
fn restart_writes_the_time_into_the_template() {
    let annotations = json!({"kubectl.kubernetes.io/restartedAt": "2026-01-31T12:00:00Z"});
    assert_eq!(
        written(restart_patch, &json!({})),
        json!({"template": {"metadata": {"annotations": annotations}}})
    );
}

#[test]
fn a_second_restart_within_the_same_second_fails() {
    let restarted_at = |time: &str| json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": time}}}}});
    assert_eq!(
        error(restart_patch, &restarted_at("2026-01-31T12:00:00Z")),
        "failed to create patch for python: if restart has already been triggered within the past second, \
         please wait before attempting to trigger another"
    );
    written(restart_patch, &restarted_at("2026-01-31T11:59:59Z"));
}

#[test]
fn a_paused_pool_is_not_restarted() {
    assert_eq!(
        error(restart_patch, &paused(true)),
        "pools.warmpool.dev \"python\" can't restart paused pool \
         (run 'kubectl warmpool rollout resume python -n sandboxes' first)"
    );
}

#[test]
fn a_pool_with_a_template_ref_cannot_be_restarted_but_can_be_paused() {
    let by_reference = json!({"spec": {"template": null, "templateRef": {"name": "python-3.13"}}});
    let message = error(restart_patch, &by_reference);
    assert!(message.contains("PodTemplate \"python-3.13\""), "{message}");
    written(pause::patch, &by_reference);
}

#[test]
fn the_patch_applies_only_to_the_pool_that_was_read() {
    let patch = pause::patch(&pool("image:1", &json!({}))).unwrap();
    assert_eq!(patch["metadata"], json!({"uid": crate::objects::POOL_UID}));
}
