//! Limits concurrent requests. A task releases its slot while it backs off.

use crate::client::call::{CallError, call};
use std::future::Future;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// A limit for first tries and an equal one for retries. A request that is never answered holds its slot until its deadline;
/// with limits of their own, retries of such requests cannot delay first tries.
#[derive(Debug)]
pub(crate) struct RequestLimit {
    first_tries: Semaphore,
    retries: Semaphore,
}

impl RequestLimit {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            first_tries: Semaphore::new(count),
            retries: Semaphore::new(count),
        }
    }

    /// A slot, not acquired yet. Slots are granted in the order of acquisition.
    pub(crate) fn slot(&self) -> RequestSlot<'_> {
        RequestSlot {
            limit: Some(self),
            tried: false,
            permit: None,
        }
    }
}

/// The slot of one write, held from its first request until it backs off or ends.
pub(crate) struct RequestSlot<'a> {
    limit: Option<&'a RequestLimit>,
    tried: bool,
    permit: Option<SemaphorePermit<'a>>,
}

impl RequestSlot<'_> {
    /// A slot that no limit bounds.
    pub(crate) fn unlimited() -> Self {
        RequestSlot {
            limit: None,
            tried: false,
            permit: None,
        }
    }

    /// Waits for the slot unless it is held.
    pub(crate) async fn acquire(&mut self) {
        if let (Some(limit), None) = (self.limit, &self.permit) {
            let semaphore = if self.tried {
                &limit.retries
            } else {
                &limit.first_tries
            };
            self.permit = semaphore.acquire().await.ok();
        }
    }

    /// Sends a request from this slot, as [`call`] does.
    pub(crate) async fn call<T>(
        &mut self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, CallError> {
        self.acquire().await;
        call(request).await
    }

    /// Releases the slot. The next acquisition counts as a retry.
    pub(crate) fn release(&mut self) {
        (self.permit, self.tried) = (None, true);
    }

    /// Releases the slot and waits.
    pub(crate) async fn back_off(&mut self, delay: Duration) {
        self.release();
        tokio::time::sleep(delay).await;
    }
}
