//! Says whether other processes used the machine during a measurement.

use crate::Outcome;
use std::fs;
use std::time::{Duration, Instant};

/// Units of processor time in `/proc`. Linux has 100 a second on every architecture.
const TICKS_A_SECOND: f64 = 100.0;
/// First of four fields of `/proc/PID/stat`, counted after the process's name: user and system time of the process, and of
/// its ended children.
const OWN_TIME: usize = 11;

/// Processors that other processes may use without disturbing a measurement.
const QUIET: f64 = 0.15;
/// Up to this many seconds may seem to be used by others because each of the ten counters of `busy` and `used_by` has whole
/// ticks.
const ROUNDING: f64 = 0.1;
/// How long the machine is watched before anything starts.
const BEFORE_START: Duration = Duration::from_secs(3);

/// Follows the name of a figure that was measured while other processes used the machine.
pub const DISTURBED: &str = " (disturbed)";

/// What else ran on the machine during a measurement.
#[derive(Clone, Copy)]
pub struct Surroundings {
    /// The load average before the measurement. What was measured before it counts, too.
    pub load_average: f64,
    /// Processors that processes used which are no part of the benchmark.
    pub others: f64,
}

impl Surroundings {
    /// Why figures measured now are worth nothing; `None` on a quiet machine.
    pub fn disturbance(self) -> Option<String> {
        let Self { load_average, others } = self;
        (others > QUIET).then(|| {
            format!(
                "other processes use {others:.2} processors, and {QUIET} may disturb nothing (load average {load_average:.1})"
            )
        })
    }
}

/// Watches the machine while the benchmark has started nothing. On a busy machine it fails, or prints that the figures are
/// worth little where `accepted` is set.
pub fn require_quiet(accepted: bool) -> Outcome<()> {
    let meter = Meter::start(own_seconds()?)?;
    std::thread::sleep(BEFORE_START);
    match meter.surroundings(own_seconds()?)?.disturbance() {
        None => Ok(()),
        Some(disturbance) if accepted => {
            println!("{disturbance}: the figures are worth little");
            Ok(())
        }
        Some(disturbance) => Err(format!("{disturbance}; stop them, or measure with --busy").into()),
    }
}

/// Time since [`Meter::start`], and what others used of the processors meanwhile.
pub struct Meter {
    began: Instant,
    load_average: f64,
    busy: f64,
    ours: f64,
}

impl Meter {
    /// Starts metering. `ours` is the processor time of the benchmark so far, in seconds.
    pub fn start(ours: f64) -> Outcome<Self> {
        Ok(Self {
            began: Instant::now(),
            load_average: load_average()?,
            busy: busy()?,
            ours,
        })
    }

    /// What else ran since the start. `ours` is the processor time of the benchmark so far, in seconds.
    pub fn surroundings(&self, ours: f64) -> Outcome<Surroundings> {
        Ok(Surroundings {
            load_average: self.load_average,
            others: used_by_others(busy()? - self.busy, ours - self.ours, self.began.elapsed()),
        })
    }
}

/// Processors that others used within `elapsed`, in which all processes were busy for `busy` seconds and the benchmark for `ours`.
pub fn used_by_others(busy: f64, ours: f64, elapsed: Duration) -> f64 {
    (busy - ours - ROUNDING).max(0.0) / elapsed.as_secs_f64().max(0.01)
}

/// Processor time of this process and its ended children so far, in seconds.
pub fn own_seconds() -> Outcome<f64> {
    used_by(std::process::id(), 4)
}

/// Processor time of a process so far, in seconds: the first two of its `fields`, or all four with its ended children.
pub fn used_by(pid: u32, fields: usize) -> Outcome<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name is in parentheses and may contain spaces.
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    seconds(after_name.split_whitespace().skip(OWN_TIME).take(fields))
}

/// The load average over the last minute.
fn load_average() -> Outcome<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}

/// Time that all processors together were busy, or that the host of the virtual machine used.
fn busy() -> Outcome<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    // user, nice, system, idle, iowait, irq, softirq, steal
    let fields = line.split_whitespace().skip(1).take(8).enumerate();
    seconds(
        fields
            .filter(|(index, _)| !(3..=4).contains(index))
            .map(|(_, field)| field),
    )
}

fn seconds<'a>(ticks: impl Iterator<Item = &'a str>) -> Outcome<f64> {
    let ticks: Vec<f64> = ticks.map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS_A_SECOND)
}
