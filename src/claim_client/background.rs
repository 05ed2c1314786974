//! Runs the creations and deletions that outlive their callers, and waits for them.

use std::future::Future;
use std::sync::LazyLock;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// The tasks of this process. A closed tracker still takes tasks; its wait ends whenever none is left.
static TASKS: LazyLock<TaskTracker> = LazyLock::new(|| {
    let tasks = TaskTracker::new();
    tasks.close();
    tasks
});

/// Runs a task that no caller has to wait for.
pub(super) fn spawn<F>(runtime: &Handle, task: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    TASKS.spawn_on(task, runtime)
}

/// Waits until no claim of this process is being created or deleted in the background. Call it after the last claim, at
/// the end of the program: the end of the runtime cuts off what still runs, and a claim that is not deleted stays until
/// its lifetime ends.
///
/// Takes up to a minute and a half when the API server does not answer.
pub async fn wait_for_releases() {
    TASKS.wait().await;
}
