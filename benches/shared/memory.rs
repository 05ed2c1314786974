//! Reads the memory of a process.

use crate::Outcome;
use std::fs;

/// A field of `/proc/PID/status`, such as `VmRSS:`, in MiB.
pub fn mib(pid: u32, field: &str) -> Outcome<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.unwrap_or_default().trim().trim_end_matches(" kB");
    let kib: f64 = kib
        .parse()
        .map_err(|e| format!("{field} of process {pid}: {e}"))?;
    Ok(kib / 1024.0)
}
