//! Sends the events of pools and claims, as many as their limits allow.

use crate::api::{PoolStatus, SandboxClaimStatus};
use crate::cache::synced_cache::SharedCache;
use crate::client::call::call;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::request::PodWrite;
use crate::telemetry::events::claims::{self, ClaimEvents, EventLimit, claim_reference};
use crate::telemetry::events::pools::{self, WarningLimit};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Reporting controller of every event.
const CONTROLLER: &str = "warmpool";

/// Sends events. kube-rs counts an event that repeats within minutes in the first event of its series, whose note
/// stays.
#[derive(Clone)]
pub(crate) struct Events {
    recorder: Recorder,
    /// Which claims get events.
    of_claims: ClaimEvents,
    claim_limit: Arc<Mutex<EventLimit>>,
    pool_limit: Arc<Mutex<WarningLimit>>,
}

impl Events {
    pub(crate) fn new(client: Client, of_claims: ClaimEvents) -> Self {
        Self {
            recorder: Recorder::new(client, Reporter::from(CONTROLLER)),
            of_claims,
            claim_limit: Arc::new(Mutex::new(EventLimit::new(Instant::now()))),
            pool_limit: Arc::default(),
        }
    }

    /// Logs and sends the changes of `pool` with its new status, which has been written. An event that cannot be
    /// written is lost: the conditions say the same.
    pub(crate) async fn send(&self, pool: &Pool, status: &PoolStatus) {
        for event in pools::transitions(pool, status) {
            if event.type_ == EventType::Warning && !self.may_warn(pool, &event.reason) {
                continue;
            }
            self.log_and_publish(pool, &event).await;
        }
    }

    /// Warns that a sandbox was deleted before its replacement was available, if `write` did that. One event a minute
    /// for a pool and a reason: a drain may end the waiting of many sandboxes.
    pub(crate) async fn send_unreplaced(&self, shared: &SharedCache, write: &PodWrite) {
        let Some(event) = pools::unreplaced(write) else {
            return;
        };
        let Some(pool) = shared.lock().pool(&write.sandbox.pool_key()) else {
            return;
        };
        if !self.may_warn(&pool, &event.reason) {
            return;
        }
        self.log_and_publish(&pool, &event).await;
    }

    async fn log_and_publish(&self, pool: &Pool, event: &Event) {
        let (reason, note) = (&event.reason, event.note.as_deref().unwrap_or_default());
        match event.type_ {
            _ if pools::is_logged(reason) => {}
            EventType::Normal => tracing::info!(pool = %pool.key, reason, "{note}"),
            EventType::Warning => tracing::warn!(pool = %pool.key, reason, "{note}"),
        }
        self.publish(event, &pools::reference(pool)).await;
    }

    /// Sends the changes of `claim` with its new status, which has been written and logged. Where claims have more to
    /// tell than may be written, an event is lost: the conditions say the same.
    pub(crate) async fn send_claim(&self, claim: &Claim, status: &SandboxClaimStatus) {
        for event in claims::transitions(claim, status, self.of_claims) {
            let limit = || self.claim_limit.lock().unwrap_or_else(PoisonError::into_inner);
            if limit().take(Instant::now()) {
                self.publish(&event, &claim_reference(claim)).await;
            }
        }
    }

    async fn publish(&self, event: &Event, about: &ObjectReference) {
        if let Err(error) = call(self.recorder.publish(event, about)).await {
            let name = about.name.as_deref().unwrap_or_default();
            tracing::debug!(
                about = name,
                event.reason,
                error = error.message(),
                "an event could not be written"
            );
        }
    }

    fn may_warn(&self, pool: &Pool, reason: &str) -> bool {
        let mut limit = self.pool_limit.lock().unwrap_or_else(PoisonError::into_inner);
        limit.take(pool, reason, Instant::now())
    }
}
