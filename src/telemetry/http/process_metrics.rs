//! The metrics that every process has, with the names of the Prometheus client libraries.

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::fs;

/// Clock ticks in a second, as the kernel counts them for programs (`USER_HZ`).
const TICKS: f64 = 100.0;
/// Position of the user time in `/proc/self/stat` after the name of the program; the system time follows.
const USER_TIME: usize = 11;

/// The collector. It reads `/proc`, and leaves out what it cannot read.
#[derive(Debug)]
pub(super) struct ProcessMetrics {
    began: Timestamp,
}

impl ProcessMetrics {
    /// A collector of a process that begins now.
    pub(super) fn begin() -> Self {
        Self {
            began: Timestamp::now(),
        }
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let seconds = Some(&Unit::Seconds);
        if let Some(used) = cpu_seconds() {
            let counter = ConstCounter::new(used);
            let help = "User and system CPU time of the process";
            let name = "process_cpu";
            counter.encode(encoder.encode_descriptor(name, help, seconds, counter.metric_type())?)?;
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kilobytes = |field: &str| number_after(&status, field).map(|kb| kb * 1024.0);
        let began = self.began.as_millisecond() as f64 / 1000.0;
        let open = fs::read_dir("/proc/self/fd")
            .ok()
            .map(|files| files.count() as f64);
        let limit = getrlimit(Resource::Nofile).current.map(|limit| limit as f64);
        let gauges = [
            (
                "process_resident_memory",
                "Resident memory of the process",
                Some(&Unit::Bytes),
                kilobytes("VmRSS:"),
            ),
            (
                "process_virtual_memory",
                "Virtual memory of the process",
                Some(&Unit::Bytes),
                kilobytes("VmSize:"),
            ),
            (
                "process_start_time",
                "Start of the process since the Unix epoch",
                seconds,
                Some(began),
            ),
            (
                "process_threads",
                "Threads of the process",
                None,
                number_after(&status, "Threads:"),
            ),
            (
                "process_open_fds",
                "Open file descriptors of the process",
                None,
                open,
            ),
            (
                "process_max_fds",
                "Maximum number of file descriptors that the process may open",
                None,
                limit,
            ),
        ];
        for (name, help, unit, value) in gauges {
            if let Some(value) = value {
                let gauge = ConstGauge::new(value);
                gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)?;
            }
        }
        Ok(())
    }
}

/// CPU time of the process so far.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program stands in parentheses and may hold blanks.
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(USER_TIME).take(2);
    let ticks: f64 = times.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Some(ticks / TICKS)
}

/// The number that follows `field` in the text of `/proc/self/status`.
fn number_after(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}
