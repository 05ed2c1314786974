//! What keeps a pod from running, in the words of whoever says so in its status: scheduler or kubelet. Reasons alone
//! are told; the messages beside them may hold addresses and values of others.

use crate::model::stored::{StoredContainerStatus, StoredPod};

/// Reasons of a container that only takes its time.
const UNDER_WAY: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// What holds `pod` up, as in `container main: ImagePullBackOff`; `None` when nobody says.
pub fn of(pod: &StoredPod) -> Option<String> {
    let status = &pod.status;
    let containers = [&status.init_container_statuses, &status.container_statuses];
    let mut waiting = containers.into_iter().flatten().flatten().filter_map(waits);
    waiting.next().or_else(|| unscheduled(pod))
}

fn waits(container: &StoredContainerStatus) -> Option<String> {
    let reason = container.state.waiting.as_ref()?.reason.as_deref()?;
    (!UNDER_WAY.contains(&reason)).then(|| format!("container {}: {reason}", container.name))
}

fn unscheduled(pod: &StoredPod) -> Option<String> {
    let conditions = pod.status.conditions.iter().flatten();
    let mut refused = conditions.filter(|c| c.type_ == "PodScheduled" && c.status == "False");
    refused.next()?.reason.clone()
}
