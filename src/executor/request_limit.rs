//! Places among the requests under way. Nobody keeps one over a pause, so a write that is refused at once keeps no other
//! waiting; one that hangs does, until its deadline.

use crate::client::call::{CallError, call};
use std::future::Future;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// So many requests of one sort are under way at once, and as many more that are sent again: one that is never answered has
/// its place until its deadline, and those that are sent for the first time are not to wait for it.
#[derive(Debug)]
pub(crate) struct RequestLimit {
    first: Semaphore,
    again: Semaphore,
}

impl RequestLimit {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            first: Semaphore::new(count),
            again: Semaphore::new(count),
        }
    }

    /// A place that is taken at the first request, in order of asking.
    pub(crate) fn slot(&self) -> RequestSlot<'_> {
        RequestSlot {
            limit: Some(self),
            tried: false,
            permit: None,
        }
    }
}

/// The place of one write, kept from its first request until it pauses or ends.
pub(crate) struct RequestSlot<'a> {
    limit: Option<&'a RequestLimit>,
    tried: bool,
    permit: Option<SemaphorePermit<'a>>,
}

impl RequestSlot<'_> {
    /// A place where there is room for any number.
    pub(crate) fn anywhere() -> Self {
        RequestSlot {
            limit: None,
            tried: false,
            permit: None,
        }
    }

    /// Waits for the place unless it has it.
    pub(crate) async fn take(&mut self) {
        if let (Some(limit), None) = (self.limit, &self.permit) {
            let lane = if self.tried { &limit.again } else { &limit.first };
            self.permit = lane.acquire().await.ok();
        }
    }

    /// Sends a request from this place, as [`call`] does.
    pub(crate) async fn call<T>(
        &mut self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, CallError> {
        self.take().await;
        call(request).await
    }

    /// Gives the place up.
    pub(crate) fn leave(&mut self) {
        (self.permit, self.tried) = (None, true);
    }

    /// Gives the place up and waits.
    pub(crate) async fn pause(&mut self, pause: Duration) {
        self.leave();
        tokio::time::sleep(pause).await;
    }
}
