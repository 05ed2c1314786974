//! Sends the queued requests as far as their limits allow, and the next ones when an answer comes.

use crate::cache::reconcile_request::{ReconcileRequest, ReconcileSender};
use crate::cache::request_limits::Sent;
use crate::cache::stale_answers::WatchProgress;
use crate::cache::synced_cache::SharedCache;
use crate::executor::send;
use crate::model::request::{Outcome, Request};
use crate::telemetry::events::claims::ClaimEvents;
use crate::telemetry::events::sender::Events;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::outcome_log;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Sends requests through one client. Cheap to clone.
#[derive(Clone)]
pub struct Executor {
    client: Client,
    shared: SharedCache,
    to_reconcile: ReconcileSender,
    events: Events,
    /// Counts what is written.
    pub metrics: Metrics,
    in_flight: TaskTracker,
    stop: CancellationToken,
}

impl Executor {
    /// An executor that writes through `client`, reports to `shared` and `to_reconcile` and counts in `metrics`.
    /// `of_claims` says which claims get events.
    pub fn new(
        client: Client,
        shared: SharedCache,
        to_reconcile: ReconcileSender,
        metrics: Metrics,
        of_claims: ClaimEvents,
    ) -> Self {
        Self {
            events: Events::new(client.clone(), of_claims),
            client,
            shared,
            to_reconcile,
            metrics,
            in_flight: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Has objects reconciled.
    pub(crate) fn reconcile(&self, to_reconcile: Vec<ReconcileRequest>) {
        self.to_reconcile.send(to_reconcile);
    }

    /// Sends every request in the queue that no limit holds back.
    pub fn send_queued(&self) {
        loop {
            let mut index = self.shared.lock();
            if self.stop.is_cancelled() {
                index.requests.keep_publications();
            }
            let (next, has_waited_too_long) = index.next_request(self.shared.now());
            drop(index);
            if has_waited_too_long {
                self.to_reconcile.send([ReconcileRequest::FailedWrites]);
            }
            let Some(sent) = next else {
                return;
            };
            drop(self.in_flight.spawn(self.clone().carry_out(sent)));
        }
    }

    /// Sends one request and takes over its outcome.
    async fn carry_out(self, sent: Sent) {
        let before = self.shared.lock().watch_progress();
        let outcome = send::send(&self.client, &sent.request).await;
        outcome_log::log(&self.metrics, &self.shared, &sent.request, &outcome);
        let is_done = outcome.is_ok();
        let to_reconcile = self.take_over(&sent, outcome, before).into_iter();
        // A claimant waits for what follows on the claim, nobody for the refill of the pool.
        let (claims, others): (Vec<_>, Vec<_>) =
            to_reconcile.partition(|request| matches!(request, ReconcileRequest::Claim(_)));
        self.to_reconcile.send_urgent(claims);
        self.to_reconcile.send(others);
        self.send_queued();
        match &sent.request {
            Request::WritePool(write) if is_done => self.events.send(&write.pool, &write.status).await,
            Request::WritePod(write) if is_done => self.events.send_unreplaced(&self.shared, write).await,
            Request::WriteClaim(write) if is_done => {
                self.events.send_claim(&write.claim, &write.status).await;
            }
            _ => {}
        }
    }

    fn take_over(&self, sent: &Sent, outcome: Outcome, before: WatchProgress) -> Vec<ReconcileRequest> {
        let now = self.shared.now();
        let mut index = self.shared.lock();
        index.requests.answered(sent);
        index.take_over(&sent.request, outcome, before, now)
    }

    /// From now on sends nothing but the publications of bound claims.
    pub fn stop(&self) {
        self.stop.cancel();
        self.in_flight.close();
    }

    /// After [`Executor::stop`]: waits until every request in flight is answered.
    pub async fn answered(&self) {
        self.in_flight.wait().await;
    }
}
