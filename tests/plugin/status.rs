//! `rollout status`: what it says, and when it is done or gives up.

use crate::objects::pool;
use serde_json::{Value, json};
use warmpool::cli::kubectl::rollout::state::{RolloutState, StatusError, rollout_state};

/// How a pool stands whose condition Progressing has that status and reason, with the counts of `more`.
fn stands(status: &str, reason: &str, more: &Value) -> Result<RolloutState, StatusError> {
    let condition = json!({
        "type": "Progressing", "status": status, "reason": reason, "message": "the operator's words",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    });
    let mut all = json!({"status": {"conditions": [condition], "replicas": 10, "expectedUpdated": 10}});
    json_patch::merge(&mut all, more);
    rollout_state(&pool("image:1", &all))
}

fn counts(replicas: i64, updated: i64, available: i64) -> Value {
    json!({"status": {"replicas": replicas, "updated": updated, "updatedAvailable": available}})
}

fn waiting(line: &str) -> Result<RolloutState, StatusError> {
    Ok(RolloutState::Waiting(line.into()))
}

#[test]
fn a_status_of_an_earlier_spec_is_not_believed() {
    let complete = json!({"metadata": {"generation": 4}});
    let line = "Waiting for pool spec update to be observed...";
    assert_eq!(stands("True", "RolloutComplete", &complete), waiting(line));
    let failed = stands("False", "ProgressDeadlineExceeded", &complete);
    assert_eq!(failed, waiting(line));
}

#[test]
fn a_pool_without_a_status_is_waited_for() {
    let fresh = pool("image:1", &json!({"status": null}));
    let line = "Waiting for pool spec update to be observed...";
    assert_eq!(rollout_state(&fresh), waiting(line));
}

#[test]
fn a_rollout_is_told_in_the_order_in_which_it_goes() {
    let said = |more: &Value| stands("True", "Progressing", more);
    let start = "Waiting for pool \"python\" rollout to finish: ";
    for (counts, end) in [
        (counts(10, 2, 1), "2 out of 10 new sandboxes have been updated..."),
        (counts(13, 10, 7), "3 old sandboxes are pending termination..."),
        (counts(10, 10, 7), "7 of 10 updated sandboxes are available..."),
    ] {
        assert_eq!(said(&counts), waiting(&format!("{start}{end}")));
    }
}

#[test]
fn a_rollout_is_done_when_the_operator_says_so_though_claims_have_emptied_the_pool() {
    let done = stands("True", "RolloutComplete", &counts(4, 4, 1));
    assert_eq!(
        done,
        Ok(RolloutState::Done(
            "pool \"python\" successfully rolled out".into()
        ))
    );
}

#[test]
fn a_partition_is_counted_out_and_then_done() {
    let canary =
        |updated: i64| json!({"status": {"expectedUpdated": 5, "updated": updated, "updatedAvailable": 0}});
    assert_eq!(
        stands("True", "Progressing", &canary(2)),
        waiting("Waiting for partitioned roll out to finish: 2 out of 5 new sandboxes have been updated...")
    );
    // The five that stay old are not waited for.
    assert_eq!(
        stands("True", "Progressing", &canary(5)),
        waiting("Waiting for pool \"python\" rollout to finish: 0 of 5 updated sandboxes are available...")
    );
    assert_eq!(
        stands("True", "PartitionComplete", &canary(5)),
        Ok(RolloutState::Done(
            "partitioned roll out complete: 5 new sandboxes have been updated...".into()
        ))
    );
}

#[test]
fn a_paused_rollout_is_waited_for_and_says_how_to_resume_it() {
    assert_eq!(
        stands("Unknown", "Paused", &counts(10, 2, 2)),
        waiting(
            "Waiting for pool \"python\" rollout to finish: 2 out of 10 new sandboxes have been updated... \
             It is paused; resume it with 'kubectl warmpool rollout resume python -n sandboxes'"
        )
    );
}

#[test]
fn on_replenish_says_why_it_may_take_long() {
    let mut more = counts(10, 2, 2);
    json_patch::merge(
        &mut more,
        &json!({"spec": {"updateStrategy": {"type": "OnReplenish"}}}),
    );
    let Ok(RolloutState::Waiting(line)) = stands("True", "Progressing", &more) else {
        panic!("it should wait")
    };
    assert!(line.ends_with("are replaced only as claims take them."), "{line}");
}

#[test]
fn a_missed_deadline_is_an_error_in_kubectls_words() {
    let error = stands("False", "ProgressDeadlineExceeded", &counts(10, 2, 0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "pool \"python\" exceeded its progress deadline"
    );
}

#[test]
fn whatever_else_stops_a_rollout_is_an_error_with_the_operators_words() {
    for reason in ["InvalidSpec", "TemplateNotFound"] {
        let error = stands("False", reason, &counts(10, 2, 0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pool \"python\" cannot roll out: the operator's words"
        );
    }
}
