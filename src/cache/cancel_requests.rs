//! Drops queued requests that are obsolete.

use crate::cache::index::Index;
use crate::cache::request_limits::Sent;
use crate::cache::write_stage::Stage;
use crate::model::pool::Pool;
use crate::model::request::{PodChange, Request};
use jiff::Timestamp;

impl Index {
    /// The next request to be sent, and whether failed writes have to be decided on anew because one waited too long.
    pub fn next_request(&mut self, now: Timestamp) -> (Option<Sent>, bool) {
        let mut has_waited_too_long = false;
        while let Some(sent) = self.requests.take_next() {
            let progress = match &sent.request {
                Request::CreatePod(creation) => {
                    let known = self.expectations.creation(&creation.pod);
                    known.map(|known| (&mut known.progress, Some(known.decided)))
                }
                Request::WritePod(write) => {
                    let known = self.expectations.of(write);
                    known.map(|known| (&mut known.progress, None))
                }
                _ => return (Some(sent), has_waited_too_long),
            };
            match progress {
                // The watch has shown the write, or nobody wants it any more.
                None => {}
                Some((progress, Some(decided))) if progress.is_outdated(decided, now) => {
                    progress.enter(Stage::Failed);
                    has_waited_too_long = true;
                }
                Some(_) => return (Some(sent), has_waited_too_long),
            }
            self.requests.answered(&sent);
        }
        (None, has_waited_too_long)
    }

    /// Drops the queued creations of a pool that has changed or is gone. The next plan decides again.
    pub(crate) fn cancel_creations(&mut self, pool: &Pool) {
        let of_pool = |request: &Request| match request {
            Request::CreatePod(creation) => creation.pool.uid == pool.uid,
            _ => false,
        };
        for request in self.requests.cancel(of_pool) {
            let Request::CreatePod(creation) = request else {
                continue;
            };
            match self.expectations.creation(&creation.pod) {
                Some(known) if known.progress.is_in_doubt() => known.progress.enter(Stage::Answered),
                _ => self.expectations.forget_creation(&creation.pod),
            }
        }
    }

    /// Drops the queued bindings of a claim that no longer waits.
    pub(crate) fn cancel_bindings(&mut self, claim: &str) {
        let of_claim = |request: &Request| match request {
            Request::WritePod(write) => {
                matches!(&write.change, PodChange::Bind { claim: bound, .. } if bound.uid == claim)
            }
            _ => false,
        };
        for request in self.requests.cancel(of_claim) {
            let Request::WritePod(write) = request else {
                continue;
            };
            match self.expectations.of(&write) {
                Some(known) if known.progress.is_in_doubt() => known.progress.enter(Stage::Answered),
                _ => self.expectations.forget(&write),
            }
        }
    }
}
