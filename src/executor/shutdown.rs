//! How tasks end when the operator is told to stop: each as soon as it has no request on the wire. One that pauses before it
//! tries again, or waits for its turn, would hold up the stop, and what it leaves undone is done by the next operator.

use futures::FutureExt;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use tokio_util::sync::CancellationToken;

tokio::task_local! {
    /// Requests of the task that are sent and not answered.
    static ON_THE_WIRE: Cell<usize>;
}

/// A request from when it is sent until it is answered or given up.
pub(crate) struct Sent(());

impl Sent {
    pub(crate) fn now() -> Self {
        count(|requests| requests + 1);
        Self(())
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        count(|requests| requests.saturating_sub(1));
    }
}

/// Whoever sends outside of a task of the operator's is waited for by nobody.
fn count(change: impl FnOnce(usize) -> usize) {
    _ = ON_THE_WIRE.try_with(|requests| requests.set(change(requests.get())));
}

/// Runs `task` to its end, or once `stop` is cancelled until none of its requests is on the wire.
pub(crate) async fn unless_stopped(task: impl Future<Output = ()>, stop: CancellationToken) {
    let run = async {
        let (mut task, mut stopped) = (pin!(task), pin!(stop.cancelled().fuse()));
        poll_fn(|context| {
            _ = stopped.as_mut().poll(context);
            if task.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            if stop.is_cancelled() && ON_THE_WIRE.with(Cell::get) == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    };
    ON_THE_WIRE.scope(Cell::new(0), run).await;
}
