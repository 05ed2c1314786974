//! Catches the signals that end a process, so that it can clean up first.

use rustix::process::Signal as Number;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handlers for SIGINT, SIGTERM and SIGHUP.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Installs the handlers. From then on the signals do not end the process.
    ///
    /// # Errors
    /// A handler could not be installed.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Number {
        tokio::select! {
            _ = self.interrupt.recv() => Number::INT,
            _ = self.terminate.recv() => Number::TERM,
            _ = self.hang_up.recv() => Number::HUP,
        }
    }
}

/// The exit code of a process that a signal ended: 128 plus the number of the signal, as in a shell.
pub(crate) fn exit_code(number: i32) -> u8 {
    u8::try_from(number).map_or(u8::MAX, |n| n.saturating_add(128))
}
