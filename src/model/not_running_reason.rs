//! Why a pod does not run, as the scheduler or kubelet says in its status. Messages are left out: they may hold secrets.

use crate::model::stored::{StoredContainerStatus, StoredPod};

/// Reasons of a container that starts normally.
const UNDER_WAY: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// The reason, as in `container main: ImagePullBackOff`; `None` when the status holds none.
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
    let mut unscheduled = conditions.filter(|c| c.type_ == "PodScheduled" && c.status == "False");
    unscheduled.next()?.reason.clone()
}
