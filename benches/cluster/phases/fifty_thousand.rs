//! Measures the operator with 50,000 warm sandboxes, and what the control plane needs for them.
//!
//! It is not part of a default run: to fill the pool takes long. The sizes of the control plane's parts are printed, to show
//! what gives out first.

use super::start::{self, Size};
use crate::Outcome;
use crate::lab::Lab;
use crate::parts::{Meter, resident_of_parts};
use std::fs;

const FIFTY_THOUSAND: Size = Size {
    phase: "fifty-thousand",
    warm: 50_000,
    starts: 3,
    fill: "fill50k",
    memory: "memory50k",
    first: "start50k",
};

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let meter = Meter::start(lab.dir())?;
    let scene = start::filled(lab, &FIFTY_THOUSAND).await?;
    println!("  processors used by the fill: {}", meter.shares(lab.dir())?);
    print_control_plane(lab)?;
    let scene = start::restarted(lab, scene, &FIFTY_THOUSAND).await?;
    print_control_plane(lab)?;
    start::close(scene).await
}

/// Prints the memory of each part of the control plane, and the size of etcd beside the default quota.
fn print_control_plane(lab: &Lab<'_>) -> Outcome<()> {
    let parts = resident_of_parts(lab.dir())?.into_iter();
    let parts: Vec<_> = parts.map(|(part, mib)| format!("{part} {mib:.0}")).collect();
    let etcd = fs::metadata(lab.dir().join("etcd/member/snap/db"))?.len();
    println!(
        "  control plane, resident MiB: {}; etcd stores {} MiB, of 2,048 by default",
        parts.join(", "),
        etcd >> 20
    );
    Ok(())
}
