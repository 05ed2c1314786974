//! Measures what deciding costs: decoding an event, the cache, the plan and its commit, without requests.
//!
//!     cargo bench --bench decisions                                   all sizes
//!     cargo bench --bench decisions -- fill:1000                      one row, for a profiler
//!     cargo bench --bench decisions -- --markdown FILE --plots FOLDER
//!
//! A simulated API server answers 180 writes a second, as a real one does on two processors, and makes each pod Ready.
//! Only the operator's part is timed, in processor time of its thread. Each row has a process of its own: memory that one row
//! leaves to the allocator would be no growth for the next.

mod api_server;
#[path = "../shared/document.rs"]
mod document;
mod heartbeats;
mod listed;
#[path = "../shared/machine.rs"]
mod machine;
#[path = "../shared/memory.rs"]
mod memory;
mod operator;
mod plot;

use clap::Parser;
use machine::{DISTURBED, Meter, own_seconds};
use operator::Operator;
use serde::{Deserialize, Serialize};
use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Claims of a row, at 20 a second.
const CLAIMS: usize = 400;
/// Sandboxes of the pool that claims arrive at beside others, and of each other.
const BESIDE: (usize, usize) = (100, 20);
const ROWS: &[&str] = &[
    "fill:100",
    "fill:1000",
    "fill:10000",
    "claims:100",
    "claims:1000",
    "claims:10000",
    "beside:0",
    "beside:100",
    "beside:1000",
    "heartbeats:5000",
    "list:1000",
    "list:10000",
    "list:50000",
];

/// Measures what deciding costs the operator, for each sandbox and each claim
#[derive(Parser)]
struct Arguments {
    /// Rows: fill:SIZE, claims:SIZE (20 claims/s on a pool), beside:POOLS (20 claims/s beside other pools),
    /// heartbeats:NODES (a status of each node) or list:PODS (the list of a start)
    #[arg(value_name = "ROW")]
    rows: Vec<String>,
    /// Write the table into this Markdown file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Draw the cost against the size into this folder: cost.svg
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// Start although other processes use the machine; the rows are marked
    #[arg(long)]
    busy: bool,
    /// Measure one row in this process, and print it as JSON.
    #[arg(long, hide = true, value_name = "ROW")]
    measure: Option<String>,
    /// Cargo passes this flag to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What one row cost.
#[derive(Serialize, Deserialize)]
pub struct Cost {
    /// The kind of the row: fill, claims, beside, heartbeats or list.
    pub kind: String,
    /// Its size.
    pub size: usize,
    description: String,
    /// Processor time for each sandbox or claim, in microseconds.
    pub each: f64,
    plans: f64,
    plan: f64,
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    if let Some(row) = &arguments.measure {
        println!("{}", serde_json::to_string(&measure(row)?)?);
        return Ok(());
    }
    machine::require_quiet(arguments.busy)?;
    let rows = match arguments.rows.as_slice() {
        [] => ROWS.iter().map(ToString::to_string).collect(),
        rows => rows.to_vec(),
    };
    let headings = [
        "one operator",
        "CPU us each",
        "goal, requests included",
        "plans each",
        "CPU us a plan",
    ];
    println!(
        "{:<48} {:>12} {:>24} {:>12} {:>14}",
        headings[0], headings[1], headings[2], headings[3], headings[4]
    );
    let mut table = format!("| {} |\n|---|---|---|---|---|\n", headings.join(" | "));
    let (mut costs, mut is_quiet) = (Vec::new(), true);
    for row in rows {
        let meter = Meter::start(own_seconds()?)?;
        let cost = measure_apart(&row)?;
        let disturbance = meter.surroundings(own_seconds()?)?.disturbance();
        is_quiet &= disturbance.is_none();
        let mark = disturbance.map_or("", |_| DISTURBED);
        let goal = goal(&cost.kind);
        let Cost {
            description,
            each,
            plans,
            plan,
            ..
        } = &cost;
        println!("{description:<48} {each:>12.0} {goal:>24} {plans:>12.2} {plan:>14.1}{mark}");
        table += &format!("| {description} | {each:.0} | {goal} | {plans:.2} | {plan:.1} |\n");
        costs.push(cost);
    }
    if !is_quiet {
        println!("Other processes used the machine during the rows marked as disturbed.");
        if arguments.markdown.is_some() || arguments.plots.is_some() {
            return Err("no document and no picture shows figures of a busy machine".into());
        }
    }
    if let Some(document) = &arguments.markdown {
        document::write_table(document, "decisions", &table)?;
    }
    if let Some(folder) = &arguments.plots {
        plot::draw_cost(&costs, folder)?;
    }
    Ok(())
}

/// The most processor time that the operator is to use for one sandbox or claim, in microseconds. It has to hold for every
/// size, with requests, of which this benchmark sends none.
fn goal(kind: &str) -> &'static str {
    match kind {
        "fill" => "500",
        "claims" | "beside" => "2000",
        _ => "-",
    }
}

/// Measures one row in a process of its own.
fn measure_apart(row: &str) -> Outcome<Cost> {
    let child = Command::new(env::current_exe()?)
        .args(["--measure", row])
        .stderr(Stdio::inherit())
        .output()?;
    if !child.status.success() {
        return Err(format!("{row} was not measured: {}", child.status).into());
    }
    Ok(serde_json::from_slice(&child.stdout)?)
}

fn measure(row: &str) -> Outcome<Cost> {
    let (kind, size) = row.split_once(':').ok_or("a row is KIND:SIZE")?;
    let size = size.parse()?;
    let each = |time: Duration, count: usize| time.as_secs_f64() * 1e6 / count.max(1) as f64;
    if kind == "heartbeats" {
        return Ok(Cost {
            kind: kind.to_string(),
            size,
            description: format!("a status of {size} nodes, per node"),
            each: each(heartbeats::heartbeats(size)?, size),
            plans: 0.0,
            plan: 0.0,
        });
    }
    if kind == "list" {
        let (spent, mib) = listed::listed(size)?;
        return Ok(Cost {
            kind: kind.to_string(),
            size,
            description: format!("a list of {size} pods, {mib:.1} MiB kept, per pod"),
            each: each(spent, size),
            plans: 0.0,
            plan: 0.0,
        });
    }
    let (operator, count, description) = match kind {
        "fill" => (fill(size)?, size, format!("fill of {size}, per sandbox")),
        "claims" => (
            claims(fill(size)?, size)?,
            CLAIMS,
            format!("20 claims/s on {size}, per claim"),
        ),
        "beside" => {
            let (here, elsewhere) = BESIDE;
            let operator = Operator::new(here, size, elsewhere)?;
            let description = format!("20 claims/s on {here} beside {size} pools, per claim");
            (claims(operator, here)?, CLAIMS, description)
        }
        _ => return Err(format!("no row is named {kind}").into()),
    };
    Ok(Cost {
        kind: kind.to_string(),
        size,
        description,
        each: each(operator.spent, count),
        plans: operator.plans as f64 / count as f64,
        plan: each(operator.planning, operator.plans),
    })
}

/// A new pool, until all its sandboxes are available and its status says so.
fn fill(size: usize) -> Outcome<Operator> {
    let mut operator = Operator::new(size, 0, 0)?;
    operator.run()?;
    operator.is_full(size)?;
    Ok(operator)
}

/// 20 claims a second, each deleted after 3 s and its sandbox replaced.
fn claims(mut operator: Operator, size: usize) -> Outcome<Operator> {
    operator.run()?;
    operator.forget_times();
    operator.claim(CLAIMS, Duration::from_millis(50), Duration::from_secs(3))?;
    operator.run()?;
    operator.is_full(size)?;
    Ok(operator)
}
