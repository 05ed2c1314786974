//! Counts the requests of each task that await an answer.

use std::cell::Cell;
use std::future::Future;

tokio::task_local! {
    /// Requests of the task that are sent and not answered.
    static IN_FLIGHT: Cell<usize>;
}

/// One request in flight. It counts from its creation until it is dropped.
pub(crate) struct InFlight(());

impl InFlight {
    pub(crate) fn begin() -> Self {
        count(|requests| requests + 1);
        Self(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        count(|requests| requests.saturating_sub(1));
    }
}

/// Requests outside of a tracked task are not counted: no shutdown waits for them.
fn count(change: impl FnOnce(usize) -> usize) {
    _ = IN_FLIGHT.try_with(|requests| requests.set(change(requests.get())));
}

/// Runs `task` with a count of its own.
pub(crate) async fn track<T>(task: impl Future<Output = T>) -> T {
    IN_FLIGHT.scope(Cell::new(0), task).await
}

/// Whether the task awaits no answer, which is always so outside of [`track`].
pub(crate) fn is_quiet() -> bool {
    IN_FLIGHT.try_with(Cell::get).unwrap_or(0) == 0
}
