//! The signals by which a person or a supervisor ends a call, caught so that a claim can be cleaned up first.

use rustix::process::Signal as Number;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a call.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// From now on the signals no longer end the process by themselves.
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Number {
        tokio::select! {
            _ = self.interrupt.recv() => Number::INT,
            _ = self.terminate.recv() => Number::TERM,
            _ = self.hang_up.recv() => Number::HUP,
        }
    }
}

/// The exit code of a process that the signal with this number has ended, as a shell tells it.
pub(super) fn exit_code(number: i32) -> u8 {
    u8::try_from(number).map_or(u8::MAX, |n| n.saturating_add(128))
}
