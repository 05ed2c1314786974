//! Checks `rollout status`: the line for each state of a rollout, and the errors.

use crate::objects::pool;
use serde_json::{Value, json};
use warmpool::cli::kubectl::rollout::status::{RolloutState, StatusError, rollout_state};

/// The state of a pool whose condition Progressing has `status` and `reason`; `more` is merged over the pool.
fn state(status: &str, reason: &str, more: &Value) -> Result<RolloutState, StatusError> {
    let condition = json!({
        "type": "Progressing", "status": status, "reason": reason, "message": "the operator's words",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    });
    let mut fields = json!({"status": {"conditions": [condition], "replicas": 10, "expectedUpdated": 10}});
    json_patch::merge(&mut fields, more);
    rollout_state(&pool("image:1", &fields))
}

fn counts(replicas: i64, updated: i64, available: i64) -> Value {
    json!({"status": {"replicas": replicas, "updated": updated, "updatedAvailable": available}})
}

fn waiting(line: &str) -> Result<RolloutState, StatusError> {
    Ok(RolloutState::Waiting(line.into()))
}

#[test]
fn a_status_of_an_earlier_spec_is_ignored() {
    let complete = json!({"metadata": {"generation": 4}});
    let line = "Waiting for pool spec update to be observed...";
    assert_eq!(state("True", "RolloutComplete", &complete), waiting(line));
    let failed = state("False", "ProgressDeadlineExceeded", &complete);
    assert_eq!(failed, waiting(line));
}

#[test]
fn a_pool_without_a_status_is_waited_for() {
    let fresh = pool("image:1", &json!({"status": null}));
    let line = "Waiting for pool spec update to be observed...";
    assert_eq!(rollout_state(&fresh), waiting(line));
}

#[test]
fn a_rollout_shows_updates_then_terminations_then_availability() {
    let state_with = |more: &Value| state("True", "Progressing", more);
    let start = "Waiting for pool \"python\" rollout to finish: ";
    for (counts, end) in [
        (counts(10, 2, 1), "2 out of 10 new sandboxes have been updated..."),
        (counts(13, 10, 7), "3 old sandboxes are pending termination..."),
        (counts(10, 10, 7), "7 of 10 updated sandboxes are available..."),
    ] {
        assert_eq!(state_with(&counts), waiting(&format!("{start}{end}")));
    }
}

#[test]
fn a_rollout_is_complete_by_its_condition_even_if_claims_have_emptied_the_pool() {
    let done = state("True", "RolloutComplete", &counts(4, 4, 1));
    assert_eq!(
        done,
        Ok(RolloutState::Done(
            "pool \"python\" successfully rolled out".into()
        ))
    );
}

#[test]
fn a_rollout_with_a_partition_completes_without_the_partition() {
    let canary =
        |updated: i64| json!({"status": {"expectedUpdated": 5, "updated": updated, "updatedAvailable": 0}});
    assert_eq!(
        state("True", "Progressing", &canary(2)),
        waiting("Waiting for partitioned roll out to finish: 2 out of 5 new sandboxes have been updated...")
    );
    // The rollout does not wait for the five sandboxes of the partition.
    assert_eq!(
        state("True", "Progressing", &canary(5)),
        waiting("Waiting for pool \"python\" rollout to finish: 0 of 5 updated sandboxes are available...")
    );
    assert_eq!(
        state("True", "PartitionComplete", &canary(5)),
        Ok(RolloutState::Done(
            "partitioned roll out complete: 5 new sandboxes have been updated...".into()
        ))
    );
}

#[test]
fn a_paused_rollout_waits_and_shows_the_command_that_resumes_it() {
    let mut paused = counts(10, 2, 2);
    paused["status"]["expectedUpdated"] = json!(2);
    assert_eq!(
        state("Unknown", "Paused", &paused),
        waiting(
            "Waiting for pool \"python\" rollout to finish: 2 out of 10 new sandboxes have been updated... \
             It is paused; resume it with 'kubectl warmpool rollout resume python -n sandboxes'"
        )
    );
}

#[test]
fn a_rollout_with_on_replenish_shows_why_it_may_last_long() {
    let mut more = counts(10, 2, 2);
    json_patch::merge(
        &mut more,
        &json!({"spec": {"updateStrategy": {"type": "OnReplenish"}}}),
    );
    let Ok(RolloutState::Waiting(line)) = state("True", "Progressing", &more) else {
        panic!("the rollout should wait")
    };
    assert!(line.ends_with("are replaced only as claims take them."), "{line}");
}

#[test]
fn a_missed_deadline_is_the_same_error_as_in_kubectl() {
    let error = state("False", "ProgressDeadlineExceeded", &counts(10, 2, 0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "pool \"python\" exceeded its progress deadline"
    );
}

#[test]
fn another_error_of_the_rollout_shows_the_message_of_the_condition() {
    for reason in ["InvalidSpec", "TemplateNotFound"] {
        let error = state("False", reason, &counts(10, 2, 0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pool \"python\" cannot roll out: the operator's words"
        );
    }
}
