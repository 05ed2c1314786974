//! The kubectl plugin: the command line of the binary when it is called `kubectl-warmpool`.

pub mod claim;
mod cluster;
mod connection;
mod pool;
mod pool_client;
pub mod pool_name;
mod print;
pub mod rollout;
pub mod size;
pub mod why;

use clap::{Parser, Subcommand};
use connection::Connection;
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

/// The name under which kubectl finds the plugin in the `PATH`.
const NAME: &str = "kubectl-warmpool";

/// Claim sandboxes, explain what the operator does, and control rollouts as kubectl does for Deployments.
#[derive(Parser)]
#[command(name = NAME, bin_name = "kubectl warmpool", version, long_about = None, after_help = "\
Examples:
  kubectl warmpool claim python -it --rm --exec -- sh      a shell in a warm sandbox
  kubectl warmpool why run-42                              why does the claim wait?
  kubectl warmpool size python                             which size would its claims need?
  kubectl warmpool rollout status python                   follow a rollout until it completes
  kubectl warmpool rollout history python                  list the revisions of the template
  kubectl warmpool rollout undo python --to-revision=2     roll back to revision 2
  kubectl warmpool rollout pause python -n sandboxes")]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Claim a sandbox of a pool, wait for it, and run a command in it
    Claim(claim::Arguments),
    /// Explain the state of a claim, a pool or a sandbox, and what the operator would do next
    Why(why::Arguments),
    /// Print the size that the claims of a pool, or arrival times in a file, need for a hit rate
    Size(size::Arguments),
    /// Follow, list, undo, pause, resume or restart the rollouts of a pool
    Rollout(rollout::Arguments),
}

/// Whether `argv0` is the name of the plugin.
pub fn is_plugin(argv0: Option<&OsStr>) -> bool {
    argv0.and_then(|path| Path::new(path).file_name()) == Some(OsStr::new(NAME))
}

/// Parses the arguments, runs the verb and returns its exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let connection = &cli.connection;
    let outcome = match &cli.verb {
        Verb::Claim(arguments) => claim::run(connection, arguments).map_err(|e| e.to_string()),
        Verb::Rollout(arguments) => rollout::run(connection, arguments)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| e.to_string()),
        Verb::Size(arguments) => size::run(connection, arguments)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| e.to_string()),
        Verb::Why(arguments) => why::run(connection, arguments)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| e.to_string()),
    };
    outcome.unwrap_or_else(|message| {
        // Like kubectl, print an error of the API server without a prefix.
        let prefix = if message.starts_with(cluster::FROM_SERVER) {
            ""
        } else {
            "error: "
        };
        print::note(&format!("{prefix}{message}"));
        ExitCode::FAILURE
    })
}
