//! Measures the operator on a real control plane.
//!
//! It measures how fast claims are served, what that costs the API server, how fast a pool fills and rolls, and what the
//! operator uses at rest. The floor beside each figure comes from the same run: the same writes sent by hand.
//!
//!     cargo bench --bench cluster                           everything, some seven minutes
//!     cargo bench --bench cluster -- --only burst,idle      some phases
//!
//! Times are from just before a claim's POST to the watch of the same process showing it Ready.

mod audit;
mod by_hand;
mod control_plane;
mod lab;
mod load;
mod machine;
mod operator;
mod phases;
mod report;
mod scene;
mod watches;

use clap::Parser;
use control_plane::ControlPlane;
use lab::Lab;
use phases::Phase;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Measures the operator on a real control plane, which it starts and ends itself
#[derive(Parser)]
struct Arguments {
    /// Measure these phases only
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PHASE")]
    only: Vec<Phase>,
    /// The operator to measure; by default the one of this checkout, built with optimization
    #[arg(long, value_name = "FILE", env = "WARMPOOL_BIN", default_value = env!("CARGO_BIN_EXE_warmpool"))]
    operator: PathBuf,
    /// Log filter of the operator; each phase has a log in .cluster/bench/log
    #[arg(long, value_name = "FILTER", default_value = "warn,warmpool=info")]
    log: String,
    /// Leave the control plane running at the end
    #[arg(long)]
    keep: bool,
    /// Cargo passes this flag to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Outcome<()> {
    // Dropping the control plane ends it, however this function returns.
    let plane = ControlPlane::up(arguments.keep)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            outcome = measure(&plane, arguments) => outcome,
            _ = terminate.recv() => Err("ended by SIGTERM".into()),
            _ = interrupt.recv() => Err("interrupted".into()),
        }
    });
    runtime.shutdown_background();
    outcome
}

async fn measure(plane: &ControlPlane, arguments: &Arguments) -> Outcome<()> {
    let lab = Lab::open(plane, &arguments.operator, &arguments.log).await?;
    let outcome = phases::run(&lab, &arguments.only).await;
    // The report also shows what was measured before a failure.
    let report = lab.report();
    println!("\n{}", report.table());
    let file = plane.dir.join("result.json");
    report.append_to(&file)?;
    println!("appended to {}", file.display());
    outcome
}
