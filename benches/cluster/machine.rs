//! Measures which processes used the processors during a phase.

use crate::Outcome;
use crate::memory::mib;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Units of processor time in `/proc`. Linux has 100 a second on every architecture.
const TICKS_A_SECOND: f64 = 100.0;
/// First of four fields of `/proc/PID/stat`, counted after the process's name: user and system time of the process, and of
/// its ended children.
const OWN_TIME: usize = 11;

/// Processors that other processes may use without disturbing a measurement.
const QUIET: f64 = 0.15;
/// How long the machine is watched before anything starts.
const BEFORE_START: Duration = Duration::from_secs(3);

/// What else ran on the machine during a phase.
#[derive(Clone, Copy)]
pub struct Surroundings {
    /// The load average before the phase. The phases before it count, too.
    pub load_average: f64,
    /// Processors that processes used which are no part of the benchmark.
    pub others: f64,
}

impl Surroundings {
    /// What the machine does while the benchmark has started nothing.
    pub fn before_start() -> Outcome<Self> {
        let (load_average, busy_before) = (load_average()?, busy()?);
        std::thread::sleep(BEFORE_START);
        Ok(Self {
            load_average,
            others: (busy()? - busy_before) / BEFORE_START.as_secs_f64(),
        })
    }

    /// Why figures measured now are worth nothing; `None` on a quiet machine.
    pub fn disturbance(self) -> Option<String> {
        let others = self.others;
        (others > QUIET)
            .then(|| format!("other processes use {others:.2} processors, and {QUIET} may disturb nothing"))
    }
}

/// The load average over the last minute.
pub fn load_average() -> Outcome<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}

/// Processor time of a process so far, in seconds.
pub fn cpu_seconds(pid: u32) -> Outcome<f64> {
    stat(pid, 2)
}

/// Processor time of a part of the control plane so far, in seconds.
pub fn cpu_of(dir: &Path, part: &str) -> Outcome<f64> {
    let parts = parts(dir)?;
    Ok(parts
        .get(part)
        .copied()
        .ok_or_else(|| format!("no part {part}"))?)
}

/// Memory of a process that is in RAM, in MiB.
pub fn resident_mib(pid: u32) -> Outcome<f64> {
    mib(pid, "VmRSS:")
}

/// The most that [`resident_mib`] has been since the process started.
pub fn peak_mib(pid: u32) -> Outcome<f64> {
    mib(pid, "VmHWM:")
}

/// Memory of each part of the control plane that is in RAM, in MiB.
pub fn resident_of_parts(dir: &Path) -> Outcome<BTreeMap<String, f64>> {
    let pids = pids(dir)?.into_iter();
    pids.map(|(part, pid)| Ok((part, resident_mib(pid)?))).collect()
}

fn stat(pid: u32, fields: usize) -> Outcome<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name is in parentheses and may contain spaces.
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    seconds(after_name.split_whitespace().skip(OWN_TIME).take(fields))
}

fn seconds<'a>(ticks: impl Iterator<Item = &'a str>) -> Outcome<f64> {
    let ticks: Vec<f64> = ticks.map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS_A_SECOND)
}

/// Processor time since [`Meter::start`].
pub struct Meter {
    began: Instant,
    busy: f64,
    parts: BTreeMap<String, f64>,
}

impl Meter {
    /// Starts metering. `dir` is the directory of the control plane.
    pub fn start(dir: &Path) -> Outcome<Self> {
        Ok(Self {
            began: Instant::now(),
            busy: busy()?,
            parts: parts(dir)?,
        })
    }

    /// Processors used since the start, by part of the control plane.
    pub fn shares(&self, dir: &Path) -> Outcome<Shares> {
        let time = self.began.elapsed().as_secs_f64().max(0.01);
        let mut of_parts = parts(dir)?;
        for (part, used) in &mut of_parts {
            *used -= self.parts.get(part).copied().unwrap_or_default();
        }
        let ours: f64 = of_parts.values().sum();
        of_parts.insert("others".into(), (busy()? - self.busy - ours).max(0.0));
        of_parts.values_mut().for_each(|used| *used /= time);
        Ok(Shares(of_parts))
    }
}

/// Processors used, by part of the control plane. `bench` is this process with its ended operators, and `others` are all
/// other processes of the machine.
pub struct Shares(BTreeMap<String, f64>);

impl Shares {
    pub fn others(&self) -> f64 {
        self.0.get("others").copied().unwrap_or_default()
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares: Vec<_> = self
            .0
            .iter()
            .map(|(part, used)| format!("{part} {used:.2}"))
            .collect();
        write!(f, "{}", shares.join(", "))
    }
}

/// The file that describes a process of the control plane.
#[derive(Deserialize)]
struct Process {
    pid: u32,
}

fn parts(dir: &Path) -> Outcome<BTreeMap<String, f64>> {
    let mut parts = BTreeMap::from([("bench".into(), stat(std::process::id(), 4)?)]);
    for (part, pid) in pids(dir)? {
        parts.insert(part, cpu_seconds(pid)?);
    }
    Ok(parts)
}

/// The processes of the control plane by part.
fn pids(dir: &Path) -> Outcome<BTreeMap<String, u32>> {
    let mut pids = BTreeMap::new();
    for entry in fs::read_dir(dir.join("run"))? {
        let path = entry?.path();
        let process: Process = serde_json::from_slice(&fs::read(&path)?)?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        pids.insert(name, process.pid);
    }
    Ok(pids)
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
