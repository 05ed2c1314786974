//! Starts, measures and ends the operator as a process.

use crate::{Outcome, machine};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Lines of the log shown after a failure.
const TAIL: usize = 30;

pub struct Operator {
    child: Child,
}

impl Operator {
    pub fn start(binary: &Path, kubeconfig: &Path, filter: &str, log: &Path) -> Outcome<Self> {
        let file = File::create(log).map_err(|e| format!("{}: {e}", log.display()))?;
        let child = Command::new(binary)
            .args(["controller", "--leader-elect=false", "--log", filter])
            // Other processes on this machine may use the default ports.
            .args(["--metrics-bind-address=0", "--health-probe-bind-address=0"])
            .env("KUBECONFIG", kubeconfig)
            .env("NO_COLOR", "1")
            // Ctrl-C goes to the benchmark alone, which then ends the operator.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .map_err(|e| format!("{} does not start: {e}", binary.display()))?;
        Ok(Self { child })
    }

    /// Fails if the operator has ended by itself.
    pub fn is_running(&mut self) -> Outcome<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the operator ended by itself with {status}").into()),
        }
    }

    /// Processor time used so far, in seconds.
    pub fn cpu_seconds(&self) -> Outcome<f64> {
        machine::cpu_seconds(self.child.id())
    }

    /// Resident memory in MiB.
    pub fn resident_mib(&self) -> Outcome<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .ok_or("no VmRSS in status")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
        Ok(kib / 1024.0)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The end of an operator's log.
pub fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines.iter().skip(lines.len().saturating_sub(TAIL));
    shown.map(|line| format!("    {line}\n")).collect()
}
