//! Holds the labs of this run. Tests in one of them disturb none in another.

use crate::figures;
use crate::gate::{Gate, Group, Pass};
use crate::interrupt::close_on_signal;
use crate::lab::{Lab, number};
use crate::left_behind::clear_away;
use jiff::SignedDuration;
use std::sync::OnceLock;
use tokio::runtime::Runtime;

struct Labs {
    gate: Gate,
    /// Each is opened by the first test that is let into it.
    labs: Vec<OnceLock<Result<Lab, String>>>,
    runtime: Runtime,
}

/// Operators may run for one part in so many of the time: waiting for a processor excuses them, and they must not wait for each other.
/// Built without optimization they take a tenth.
const MOST: i32 = 3;
/// A run so short says nothing of that.
const SHORT: SignedDuration = SignedDuration::from_secs(60);

static LABS: OnceLock<Result<Labs, String>> = OnceLock::new();

/// Waits for a lab for a test of that group.
pub fn enter(group: Group) -> Result<(&'static Lab, Pass<'static>), String> {
    let Labs { gate, labs, runtime } = LABS.get_or_init(Labs::new).as_ref().map_err(Clone::clone)?;
    let pass = gate.enter(group);
    let lab = labs.get(pass.lab).ok_or("the gate leads to no lab")?;
    let lab = lab.get_or_init(|| Lab::open(pass.lab, runtime.handle()));
    Ok((lab.as_ref().map_err(Clone::clone)?, pass))
}

/// Ends all labs, and prints what their tests have measured and why some have failed. Returns whether the operators left the
/// processors to others.
pub fn close() -> bool {
    let Some(Ok(Labs { labs, .. })) = LABS.get() else {
        return true;
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
    let mut are_modest = true;
    for lab in &open {
        let waits = lab.processor_waits();
        let ((all, waited), ran) = (waits.in_all(), waits.ran());
        let [waited_s, all_s, ran_s] = [waited, all, ran].map(|time| time.as_secs());
        eprintln!(
            "for {waited_s} of {all_s} s an operator or the API server waited for a processor; operators ran for {ran_s} s"
        );
        if all > SHORT && ran > all / MOST {
            eprintln!(
                "error: operators ran for more than 1/{MOST} of the time, and may have waited for each other"
            );
            are_modest = false;
        }
    }
    // Last, where they are looked for and where a log that is cut still has them.
    let failures = open.iter().flat_map(|lab| lab.take_failures());
    failures.for_each(|why| eprintln!("{why}"));
    are_modest
}

impl Labs {
    fn new() -> Result<Self, String> {
        let count = match number("LABS", 1)? {
            0 => return Err("LABS=0 leaves the tests no control plane; write it like LABS=4".into()),
            count => usize::try_from(count).map_err(|e| e.to_string())?,
        };
        clear_away()?;
        let runtime = Runtime::new().map_err(|e| e.to_string())?;
        runtime.spawn(close_on_signal(|| _ = close()));
        Ok(Self {
            gate: Gate::new(count),
            labs: (0..count).map(|_| OnceLock::new()).collect(),
            runtime,
        })
    }
}
