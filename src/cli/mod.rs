//! The command line: one file per verb.

pub mod controller;
pub mod crds;
pub mod documents;
pub mod kubectl;
mod live;
pub mod plan;

use clap::{Parser, Subcommand};
use jiff::SignedDuration;
use std::process::ExitCode;
use std::time::Duration;

/// Exit code for input that cannot be understood.
const BAD_INPUT: u8 = 2;

/// Keeps sandboxes (pods) warm in a Pool and hands them to SandboxClaims in milliseconds.
#[derive(Parser)]
#[command(name = "warmpool", version, about, long_about = None, after_help = "\
Examples:
  warmpool crds | kubectl apply -f -        install the CustomResourceDefinitions
  warmpool controller                       run the operator against the current kubeconfig context
  warmpool plan                             what would the operator do next in this cluster, and why?
  kubectl get wp,sbc,pods,podtemplates,controllerrevisions -o yaml | warmpool plan -f -
                                            the same from a file, without a cluster

Linked into the PATH under the name kubectl-warmpool this program is a kubectl plugin:
  kubectl warmpool --help                   claim a sandbox, ask why, and steer a pool's rollout")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the operator: fill pools, bind claims, roll out templates
    Controller(controller::Arguments),
    /// Print the CustomResourceDefinitions, or write them to files
    Crds(crds::Arguments),
    /// Print what the operator would do next and why, without writing anything
    Plan(plan::Arguments),
}

/// Runs the verb that the arguments name; under its other name the binary is the kubectl plugin.
pub fn main() -> ExitCode {
    if kubectl::is_plugin(std::env::args_os().next().as_deref()) {
        return kubectl::main();
    }
    let outcome = match Cli::parse().verb {
        Verb::Controller(arguments) => return controller::main(&arguments),
        Verb::Crds(arguments) => crds::run(&arguments).map_err(|e| (1, e.to_string())),
        Verb::Plan(arguments) => plan::run(&arguments).map_err(|e| (e.exit_code(), e.to_string())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            eprintln!("error: {message}");
            ExitCode::from(code)
        }
    }
}

/// Starts the runtime that everything asynchronous runs on. What still hangs at the end, such as the look-up of a name, does
/// not hold it up.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T, std::io::Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(future);
    runtime.shutdown_background();
    Ok(outcome)
}

/// A duration as Go writes it. A bare 0 has no unit there either.
fn duration(written: &str) -> Result<Duration, String> {
    if written == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed: Option<SignedDuration> = written.parse().ok();
    parsed
        .and_then(|d| Duration::try_from(d).ok())
        .ok_or_else(|| "write a number with a unit, as in 30s, 5m or 1h30m".into())
}
