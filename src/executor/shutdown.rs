//! Ends each task at shutdown as soon as none of its requests is in flight.
//!
//! A task that backs off or waits for a request slot would delay the shutdown. The next operator finishes its work.

use crate::client::in_flight::{is_quiet, track};
use futures::FutureExt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use tokio_util::sync::CancellationToken;

/// Runs `task` to its end, or after the cancellation of `stop` until none of its requests is in flight.
pub(crate) async fn run_until_stopped(task: impl Future<Output = ()>, stop: CancellationToken) {
    let run = async {
        let (mut task, mut stopped) = (pin!(task), pin!(stop.cancelled().fuse()));
        poll_fn(|context| {
            _ = stopped.as_mut().poll(context);
            if task.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            if stop.is_cancelled() && is_quiet() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    };
    track(run).await;
}
