//! Records the stacks of the operator with perf while a load runs, or from its first instruction.

use crate::Outcome;
use crate::operator::Operator;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Samples in a second of processor time. Under a load the operator uses less than a tenth of a processor.
const FREQUENCY: &str = "3989";
/// How long perf takes to begin.
const START: Duration = Duration::from_secs(1);

/// A recording that ends when it is dropped.
pub struct Recording(Child);

impl Recording {
    /// Records the stacks of `operator` into a file. perf follows its process through an `exec`, so an operator that waits to
    /// begin is recorded from its first instruction.
    pub async fn start(operator: &Operator, file: &Path) -> Outcome<Self> {
        let mut perf = Command::new("perf");
        // Not the event `cycles`, which virtual machines often lack.
        perf.args(["record", "--quiet", "--event", "cpu-clock", "--freq", FREQUENCY]);
        perf.args(["--call-graph", "fp", "--pid", &operator.id().to_string()]);
        perf.arg("--output").arg(file).stdin(Stdio::null());
        let mut recording = Self(perf.spawn().map_err(|e| format!("perf does not start: {e}"))?);
        tokio::time::sleep(START).await;
        match recording.0.try_wait()? {
            None => Ok(recording),
            Some(status) => Err(format!("perf ended by itself with {status}").into()),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // At this signal perf writes what it has recorded.
            _ = kill_process(pid, Signal::INT);
        }
        _ = self.0.wait();
    }
}
