//! How far an expected write is, and how it failed so far.

use crate::model::failure::Failure;
use crate::model::retry::{self, FailedWrite, Next, Tries};
use jiff::Timestamp;
use std::time::{Duration, Instant};

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

    /// A live read that was due shows that the write did not happen. Returns whether the write has no failed tries.
    pub(crate) fn miss(&mut self) -> bool {
        self.enter(Stage::Missed);
        self.tries.is_none()
    }

    /// How long the write has been at its stage.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.duration_since(self.since)
    }

    /// A live read begins at `now`.
    pub(crate) fn begin_read(&mut self, now: Instant) {
        (self.stage, self.tries, self.since) = (Stage::Reading, None, now);
    }
}
