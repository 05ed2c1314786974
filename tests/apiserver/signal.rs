//! Sends signals to processes.

use crate::wait;
use std::process::Command;

/// Sends a signal: TERM, STOP, CONT.
pub fn send(pid: u32, name: &str) -> Result<(), String> {
    let sent = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status()
        .map_err(|e| e.to_string())?;
    wait::ensure(sent.success(), || format!("SIG{name} could not be sent to {pid}"))
}
