//! Why a pod does not run, as the scheduler or kubelet says in its status.

use crate::model::stored::{StoredContainerStatus, StoredContainerTerminated, StoredPod};

/// Reasons of a container that starts normally.
const UNDER_WAY: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// The kubelet alternates between these two while an image cannot be pulled.
const PULL_FAILED: &str = "ErrImagePull";
const PULL_BACK_OFF: &str = "ImagePullBackOff";
/// The reason of a container that ends again and again.
const CRASHES: &str = "CrashLoopBackOff";
/// A container that is not ready counts as crashing from this many restarts on, even while it runs. The kubelet backs
/// off from the second restart on.
const CRASH_LOOP: i32 = 2;
/// Reasons whose message names images, keys or nodes and never a value from the pod's spec. Other messages may quote a
/// command or an environment variable, and with it a secret.
const HARMLESS: [&str; 6] = [
    PULL_BACK_OFF,
    "ErrImageNeverPull",
    "InvalidImageName",
    "RegistryUnavailable",
    "ImageInspectError",
    "CreateContainerConfigError",
];
/// Longest detail, in characters.
const LONGEST: usize = 240;
/// Of a longer detail, how many characters of its beginning are kept. The end of an error names the cause.
const HEAD: usize = 90;

/// Why a pod does not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotRunning {
    /// The reason, as in `container main: ImagePullBackOff`. It stays the same while the cause does.
    pub reason: String,
    /// More about it, shortened; empty without any.
    pub detail: String,
}

/// Why `pod` does not run; `None` when its status holds no reason.
pub fn of(pod: &StoredPod) -> Option<NotRunning> {
    let status = &pod.status;
    let containers = [&status.init_container_statuses, &status.container_statuses];
    let mut failing = containers.into_iter().flatten().flatten().filter_map(fails);
    failing.next().or_else(|| unscheduled(pod))
}

fn fails(container: &StoredContainerStatus) -> Option<NotRunning> {
    let waiting = container.state.waiting.as_ref();
    let reason = match waiting.and_then(|waiting| waiting.reason.as_deref()) {
        Some(PULL_FAILED) => PULL_BACK_OFF,
        Some(reason) if !UNDER_WAY.contains(&reason) => reason,
        _ if !container.ready && container.restart_count >= CRASH_LOOP => CRASHES,
        _ => return None,
    };
    let detail = if reason == CRASHES {
        let last = [&container.state.terminated, &container.last_state.terminated];
        last.into_iter().flatten().next().map_or(String::new(), ending)
    } else {
        let message = waiting.and_then(|waiting| waiting.message.as_deref());
        let harmless = message.filter(|_| HARMLESS.contains(&reason));
        harmless.map_or(String::new(), shortened)
    };
    Some(NotRunning {
        reason: format!("container {}: {reason}", container.name),
        detail,
    })
}

/// How a container ended. The kubelet's own message about a crash holds times and IDs that change with each try.
fn ending(terminated: &StoredContainerTerminated) -> String {
    let reason = terminated.reason.as_deref().unwrap_or("unknown");
    format!("it last ended with {reason}, exit code {}", terminated.exit_code)
}

fn unscheduled(pod: &StoredPod) -> Option<NotRunning> {
    let conditions = pod.status.conditions.iter().flatten();
    let mut unscheduled = conditions.filter(|c| c.type_ == "PodScheduled" && c.status == "False");
    let condition = unscheduled.next()?;
    // The scheduler's other sentences are about preemption.
    let message = condition.message.as_deref().unwrap_or_default();
    let nodes = message.split(". ").next().unwrap_or_default();
    Some(NotRunning {
        reason: condition.reason.clone()?,
        detail: shortened(nodes.trim_end_matches('.')),
    })
}

/// A message in one line of at most [`LONGEST`] characters, without what follows the `?` of a URL: it may sign the
/// request.
fn shortened(message: &str) -> String {
    let words = message.split(|c: char| c.is_whitespace() || c.is_control());
    let words = words.filter(|word| !word.is_empty()).map(without_query);
    let line = words.collect::<Vec<_>>().join(" ");
    let length = line.chars().count();
    if length <= LONGEST {
        return line;
    }
    let (mark, chars) = (" ... ", || line.chars());
    let tail = LONGEST - HEAD - mark.len();
    chars()
        .take(HEAD)
        .chain(mark.chars())
        .chain(chars().skip(length - tail))
        .collect()
}

fn without_query(word: &str) -> String {
    match word.split_once('?') {
        Some((address, query)) if address.contains("://") => {
            let end = query.trim_start_matches(|c: char| !matches!(c, '"' | ',' | ')'));
            format!("{address}{end}")
        }
        _ => word.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn why(status: Value) -> Option<NotRunning> {
        let pod = json!({"metadata": {}, "status": status});
        of(&serde_json::from_value::<StoredPod>(pod).ok()?)
    }

    fn container(state: Value) -> Value {
        let mut container = json!({"name": "main", "state": state});
        for field in ["ready", "restartCount", "lastState"] {
            if let Some(value) = container["state"].as_object_mut().and_then(|s| s.remove(field)) {
                container[field] = value;
            }
        }
        json!({"containerStatuses": [container]})
    }

    fn words(status: Value) -> (String, String) {
        why(status).map_or_else(Default::default, |why| (why.reason, why.detail))
    }

    #[test]
    fn an_image_that_cannot_be_pulled_has_one_reason_whatever_the_kubelet_does_at_the_moment() {
        for reason in ["ErrImagePull", "ImagePullBackOff"] {
            let message = "failed to pull:\n  registry.example/a:1: not found";
            let state = json!({"waiting": {"reason": reason, "message": message}});
            let expected = "failed to pull: registry.example/a:1: not found";
            assert_eq!(
                words(container(state)),
                ("container main: ImagePullBackOff".into(), expected.into())
            );
        }
    }

    #[test]
    fn a_container_that_crashes_again_and_again_keeps_its_reason_while_it_runs_for_a_moment() {
        let last = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137, "message": "password"}});
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s of pod_uid"}});
        for state in [waits, json!({"running": {}}), last.clone()] {
            let mut state = state;
            state["lastState"] = last.clone();
            state["restartCount"] = json!(3);
            let expected = "it last ended with OOMKilled, exit code 137";
            assert_eq!(
                words(container(state)),
                ("container main: CrashLoopBackOff".into(), expected.into())
            );
        }
        for harmless in [
            json!({"restartCount": 1}),
            json!({"restartCount": 9, "ready": true}),
        ] {
            assert_eq!(why(container(harmless)), None);
        }
    }

    #[test]
    fn a_message_that_may_quote_a_secret_is_left_out() {
        let state = json!({"waiting": {"reason": "CreateContainerError", "message": "sh -c TOKEN=secret"}});
        assert_eq!(
            words(container(state)),
            ("container main: CreateContainerError".into(), String::new())
        );
        let signed = "Get \"https://registry.example/v2/a?sig=secret\": 403, see https://b.example/?c=secret";
        let state = json!({"waiting": {"reason": "ErrImagePull", "message": signed}});
        let (_, detail) = words(container(state));
        assert_eq!(
            detail,
            "Get \"https://registry.example/v2/a\": 403, see https://b.example/"
        );
    }

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        let message = format!("begins {} ends: no such host", "ä".repeat(2_000));
        let state = json!({"waiting": {"reason": "ErrImagePull", "message": message}});
        let (_, detail) = words(container(state));
        assert_eq!(detail.chars().count(), LONGEST);
        assert!(
            detail.starts_with("begins ") && detail.ends_with(" ends: no such host"),
            "{detail}"
        );
    }

    #[test]
    fn an_unscheduled_pod_shows_what_the_nodes_lack() {
        let message =
            "0/5 nodes are available: 5 Insufficient cpu. no new claims to deallocate, preemption: 0/5.";
        let condition =
            json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
        assert_eq!(
            words(json!({"conditions": [condition]})),
            (
                "Unschedulable".into(),
                "0/5 nodes are available: 5 Insufficient cpu".into()
            )
        );
    }

    #[test]
    fn a_container_that_starts_normally_has_no_reason() {
        for reason in UNDER_WAY {
            assert_eq!(why(container(json!({"waiting": {"reason": reason}}))), None);
        }
        assert_eq!(why(json!({"phase": "Running"})), None);
    }
}
