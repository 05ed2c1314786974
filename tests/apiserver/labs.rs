//! Holds the labs of this run. Tests in one of them disturb none in another.

use crate::figures;
use crate::gate::{Gate, Group, Pass};
use crate::interrupt::close_on_signal;
use crate::lab::{Lab, number};
use crate::left_behind::clear_away;
use std::sync::OnceLock;
use tokio::runtime::Runtime;

struct Labs {
    gate: Gate,
    /// Each is opened by the first test that is let into it.
    labs: Vec<OnceLock<Result<Lab, String>>>,
    runtime: Runtime,
}

static LABS: OnceLock<Result<Labs, String>> = OnceLock::new();

/// Waits for a lab for a test of that group.
pub fn enter(group: Group) -> Result<(&'static Lab, Pass<'static>), String> {
    let Labs { gate, labs, runtime } = LABS.get_or_init(Labs::new).as_ref().map_err(Clone::clone)?;
    let pass = gate.enter(group);
    let lab = labs.get(pass.lab).ok_or("the gate leads to no lab")?;
    let lab = lab.get_or_init(|| Lab::open(pass.lab, runtime.handle()));
    Ok((lab.as_ref().map_err(Clone::clone)?, pass))
}

/// Ends all labs, and prints what their tests have measured and why some have failed.
pub fn close() {
    let Some(Ok(Labs { labs, .. })) = LABS.get() else {
        return;
    };
    let open = labs.iter().filter_map(|lab| lab.get()?.as_ref().ok());
    let open: Vec<_> = open.collect();
    std::thread::scope(|ends| {
        for lab in &open {
            ends.spawn(|| lab.close());
        }
    });
    let mut lines: Vec<_> = open.iter().flat_map(|lab| lab.take_summary()).collect();
    lines.sort();
    lines.iter().for_each(|line| eprintln!("{line}"));
    let figures: Vec<_> = open.iter().flat_map(|lab| lab.take_figures()).collect();
    figures::print(&figures);
    for lab in &open {
        let (all, waited) = lab.processor_waits().in_all();
        let (all, waited) = (all.as_secs(), waited.as_secs());
        eprintln!("for {waited} of {all} s an operator or the API server waited for a processor");
        eprintln!(
            "operators ran for {} of them",
            lab.processor_waits().ran().as_secs()
        );
    }
    // Last, where they are looked for and where a log that is cut still has them.
    let failures = open.iter().flat_map(|lab| lab.take_failures());
    failures.for_each(|why| eprintln!("{why}"));
}

impl Labs {
    fn new() -> Result<Self, String> {
        let count = match number("LABS", 1)? {
            0 => return Err("LABS=0 leaves the tests no control plane; write it like LABS=4".into()),
            count => usize::try_from(count).map_err(|e| e.to_string())?,
        };
        clear_away()?;
        let runtime = Runtime::new().map_err(|e| e.to_string())?;
        runtime.spawn(close_on_signal(close));
        Ok(Self {
            gate: Gate::new(count),
            labs: (0..count).map(|_| OnceLock::new()).collect(),
            runtime,
        })
    }
}
