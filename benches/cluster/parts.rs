//! Measures the processor time and memory of each part of the control plane.

use crate::Outcome;
use crate::machine::{self, Surroundings, own_seconds};
use crate::memory::mib;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Processor time of a process so far, in seconds.
pub fn cpu_seconds(pid: u32) -> Outcome<f64> {
    machine::used_by(pid, 2)
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

/// Processor time since [`Meter::start`].
pub struct Meter {
    began: Instant,
    machine: machine::Meter,
    parts: BTreeMap<String, f64>,
}

impl Meter {
    /// Starts metering. `dir` is the directory of the control plane.
    pub fn start(dir: &Path) -> Outcome<Self> {
        let parts = parts(dir)?;
        Ok(Self {
            began: Instant::now(),
            machine: machine::Meter::start(parts.values().sum())?,
            parts,
        })
    }

    /// Processors used since the start, by part of the control plane, and by others.
    pub fn shares(&self, dir: &Path) -> Outcome<Shares> {
        let time = self.began.elapsed().as_secs_f64().max(0.01);
        let mut of_parts = parts(dir)?;
        let surroundings = self.machine.surroundings(of_parts.values().sum())?;
        for (part, used) in &mut of_parts {
            *used = (*used - self.parts.get(part).copied().unwrap_or_default()) / time;
        }
        Ok(Shares {
            of_parts,
            surroundings,
        })
    }
}

/// Processors used, by part of the control plane. `bench` is this process with its ended operators, and `others` are all
/// other processes of the machine.
pub struct Shares {
    of_parts: BTreeMap<String, f64>,
    pub surroundings: Surroundings,
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (part, used) in &self.of_parts {
            write!(f, "{part} {used:.2}, ")?;
        }
        write!(f, "others {:.2}", self.surroundings.others)
    }
}

/// The file that describes a process of the control plane.
#[derive(Deserialize)]
struct Process {
    pid: u32,
}

fn parts(dir: &Path) -> Outcome<BTreeMap<String, f64>> {
    let mut parts = BTreeMap::from([("bench".into(), own_seconds()?)]);
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
