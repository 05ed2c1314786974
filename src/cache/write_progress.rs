//! How far an expected write is, and how it failed so far.

use crate::model::failure::Failure;
use crate::model::retry::{self, FailedWrite, Next, Tries};
use jiff::Timestamp;
use std::time::{Duration, Instant};

/// How long after its answer a write may stay unseen before a live read confirms whether it happened.
pub const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(30);

/// How far a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The request waits to be sent or is in flight.
    Sent,
    /// The request failed; [`Progress::tries`] says how.
    Failed,
    /// A live read is waiting to be sent or in flight.
    Reading,
    /// A live read showed that the write did not happen.
    Missed,
    /// The API server answered; the watch will show the write.
    Answered,
}

/// How far a write is, and how it failed so far.
#[derive(Clone, Debug)]
pub struct Progress {
    /// How far it is.
    pub stage: Stage,
    /// Its failed tries.
    pub tries: Option<Tries>,
    since: Instant,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Sent,
            tries: None,
            since: Instant::now(),
        }
    }

    /// The answer of a try was lost: the write may have happened.
    pub fn is_in_doubt(&self) -> bool {
        self.tries.as_ref().is_some_and(|tries| tries.lost)
    }

    /// The request failed, or a live read showed that the write did not happen.
    pub(crate) fn is_failed(&self) -> bool {
        matches!(self.stage, Stage::Failed | Stage::Missed)
    }

    /// A retry of a creation decided at `decided` waited for too long to be sent.
    pub(crate) fn is_outdated(&self, decided: Timestamp, now: Timestamp) -> bool {
        let next = |tries| retry::next(FailedWrite::Create(decided), tries, false, now);
        self.tries.as_ref().is_some_and(|tries| next(tries) != Next::Send)
    }

    /// The write enters another stage.
    pub fn enter(&mut self, stage: Stage) {
        (self.stage, self.since) = (stage, Instant::now());
    }

    pub(crate) fn fail(&mut self, failure: Failure, now: Timestamp) {
        self.tries = Some(Tries::after(self.tries.as_ref(), failure, now));
        self.enter(Stage::Failed);
    }

    /// A live read that was due failed. Where the write itself had not failed, the read is due again later.
    pub(crate) fn read_failed(&mut self, now: Timestamp) {
        if self.stage != Stage::Reading {
            return;
        }
        match &mut self.tries {
            Some(tries) => {
                tries.read_failed(now);
                self.enter(Stage::Failed);
            }
            None => self.enter(Stage::Answered),
        }
    }

    /// A live read that was due shows that the write did not happen. Returns whether that is all there is to say.
    pub(crate) fn miss(&mut self) -> bool {
        self.enter(Stage::Missed);
        self.tries.is_none()
    }

    /// Whether a live read is due at `now`. If so, the read counts as begun.
    pub(crate) fn read_if_due(&mut self, now: Instant) -> bool {
        let is_due = self.stage == Stage::Answered && now.duration_since(self.since) >= EXPECTATION_TIMEOUT;
        if is_due {
            (self.stage, self.tries, self.since) = (Stage::Reading, None, now);
        }
        is_due
    }
}
