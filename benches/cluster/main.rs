//! Measures the operator on a real control plane.
//!
//! It measures how fast claims are served, what that costs the API server, how fast a pool fills and rolls, and what the
//! operator uses at rest. The floor beside each figure comes from the same minutes: the same writes sent by hand right before and
//! right after.
//!
//!     cargo bench --bench cluster                           everything, three times, over an hour
//!     cargo bench --bench cluster -- --quick                some phases once, some five minutes
//!     cargo bench --bench cluster -- --only burst,idle      some phases, three times
//!
//! Times are from the moment at which a claim was meant to be POSTed to the watch of the same process showing it Ready.
//! A phase during which other processes used the machine is measured again. After three such tries its figures are marked.

mod at_once;
mod audit;
mod bare_client;
mod by_hand;
mod control_plane;
#[path = "../shared/document.rs"]
mod document;
mod figures;
mod lab;
mod load;
#[path = "../shared/machine.rs"]
mod machine;
#[path = "../shared/median.rs"]
mod median;
#[path = "../shared/memory.rs"]
mod memory;
mod operator;
mod parts;
mod phases;
mod plot;
mod rate;
mod report;
mod rows;
mod scene;
mod served;
#[path = "../shared/speed.rs"]
mod speed;
mod stacks;
mod watches;

use clap::Parser;
use control_plane::ControlPlane;
use lab::Lab;
use phases::Phase;
use plot::BurstOverTime;
use report::Report;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Measures the operator on a real control plane, which it starts and ends itself
#[derive(Parser)]
struct Arguments {
    /// Measure these phases only, each in every repetition
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PHASE")]
    only: Vec<Phase>,
    /// Measure 20 claims a second, a burst and a fill, each beside its floor, once
    #[arg(long, conflicts_with = "only")]
    quick: bool,
    /// Repetitions of all phases [default: 3, or 1 with --quick]
    #[arg(long, value_name = "COUNT")]
    repetitions: Option<usize>,
    /// Start although other processes use the machine, and measure no disturbed phase again; the figures are marked
    #[arg(long)]
    busy: bool,
    /// Write the tables into this Markdown file: that of the figures, between its comments `figures` and `end of figures`,
    /// if all phases are measured, and that of the writes if `verbs` is
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Draw a burst into this folder: burst.svg
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// An operator whose refill does not yield to bindings: its burst is drawn beside. benches/cluster/without_yield.py builds it
    #[arg(long, value_name = "FILE", requires = "plots")]
    without_yield: Option<PathBuf>,
    /// The operator to measure; by default the one of this checkout, built with optimization
    #[arg(long, value_name = "FILE", env = "WARMPOOL_BIN", default_value = env!("CARGO_BIN_EXE_warmpool"))]
    operator: PathBuf,
    /// Record the operator's stacks with perf into this folder: under the steady loads, in the burst, the fill and the start.
    /// Then no floor is measured
    #[arg(long, value_name = "FOLDER")]
    stacks: Option<PathBuf>,
    /// Measure pools that have no PodDisruptionBudgets, as the floor has none: what is left of the distance is the operator's
    #[arg(long, conflicts_with = "markdown")]
    without_budgets: bool,
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
    if std::env::args().nth(1).as_deref() == Some(operator::VERB) {
        return bare_client::main();
    }
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Outcome<()> {
    machine::require_quiet(arguments.busy)?;
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
    let lab = Lab::open(
        plane,
        &arguments.operator,
        &arguments.log,
        arguments.stacks.clone(),
        !arguments.without_budgets,
        if arguments.busy { 1 } else { report::TRIES },
    )
    .await?;
    let only = if arguments.quick {
        phases::QUICK
    } else {
        &arguments.only
    };
    let repetitions = arguments
        .repetitions
        .unwrap_or(if arguments.quick { 1 } else { 3 });
    let mut outcome = phases::run(&lab, only, repetitions).await;
    let mut bursts = Vec::new();
    if outcome.is_ok() && arguments.plots.is_some() {
        match phases::bursts_over_time(&lab, arguments.without_yield.as_deref()).await {
            Ok(drawn) => bursts = drawn,
            Err(error) => outcome = Err(error),
        }
    }
    // The report also shows what was measured before a failure.
    let report = lab.report();
    println!("\n{}", report.table());
    let file = plane.dir.join("result.json");
    report.append_to(&file)?;
    println!("appended to {}", file.display());
    if !report.is_quiet() {
        println!(
            "Figures marked as disturbed are worth nothing: other processes used the machine meanwhile."
        );
    }
    outcome?;
    publish(arguments, &report, only.is_empty(), &bursts)
}

/// Writes the tables and draws the bursts where that was asked for, on a quiet machine only.
fn publish(
    arguments: &Arguments,
    report: &Report,
    is_complete: bool,
    bursts: &[BurstOverTime],
) -> Outcome<()> {
    let is_asked_for = arguments.markdown.is_some() || arguments.plots.is_some();
    if is_asked_for && !report.is_quiet() {
        return Err("no document and no picture shows figures of a busy machine".into());
    }
    if let Some(document) = &arguments.markdown {
        if is_complete {
            document::write_table(document, "figures", &report.markdown())?;
        }
        if let Some(writes) = report.writes() {
            document::write_table(document, "writes", &writes)?;
        }
    }
    match &arguments.plots {
        Some(folder) => plot::draw_bursts(bursts, folder),
        None => Ok(()),
    }
}
