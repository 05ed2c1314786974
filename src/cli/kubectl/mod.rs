//! The kubectl plugin: the command line of the binary when it is called `kubectl-warmpool`.

pub mod claim;
mod claim_argument;
pub(super) mod cluster;
pub mod complete;
pub(super) mod connection;
pub mod drain;
pub mod dry_run;
pub mod exec;
pub mod operator_lease;
mod output_schemas;
mod pool;
mod pool_client;
pub mod pool_name;
pub mod pool_report;
pub mod pool_screen;
mod pool_target;
pub(super) mod print;
mod release;
pub mod rollout;
pub(super) mod selection;
pub mod set_image;
pub mod size;
mod status;
pub(super) mod table;
pub mod terminal;
pub mod top;
mod unfit_flags;
pub mod verb_error;
pub mod why;

use crate::cli::plan;
use clap::{CommandFactory, Parser, Subcommand};
use connection::Connection;
pub use output_schemas::output_schemas;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// The name under which kubectl finds the plugin in the `PATH`.
const NAME: &str = "kubectl-warmpool";

/// Claim sandboxes, explain what the operator does, and control rollouts as kubectl does for Deployments.
#[derive(Parser)]
#[command(name = NAME, bin_name = "kubectl warmpool", version, long_about = None, args_override_self = true, after_help = "\
Examples:
  kubectl warmpool claim python -it --rm -- sh             a shell in a warm sandbox
  kubectl warmpool exec run-42 -- python -V                run a command in the sandbox of a claim
  kubectl warmpool release run-42                          delete the claim, and the sandbox with it
  kubectl warmpool why run-42                              why does the claim wait?
  kubectl warmpool status python --watch                   one screen about the pool
  kubectl warmpool top -A                                  hits and waits of every pool
  kubectl warmpool plan                                    what would the operator do next in this namespace?
  kubectl warmpool set image python main=python:3.14       roll out another image
  kubectl warmpool drain node-1 --dry-run                  what would a drain of the node do?
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
    /// Run a command in a sandbox of a claim
    Exec(exec::Arguments),
    /// Delete claims, and with each its sandboxes
    Release(release::Arguments),
    /// Explain the state of a claim, a pool or a sandbox, and what the operator would do next
    Why(why::Arguments),
    /// Show a pool on one screen: sandboxes, claims, rollout, what happens next and why
    Status(status::Arguments),
    /// List how well pools serve their claims
    Top(top::Arguments),
    /// Print what the operator would do next and why, without writing to the cluster
    Plan(plan::Arguments),
    /// Show what a drain of a node would do to its sandboxes
    Drain(drain::Arguments),
    /// Print the size that the claims of a pool, or arrival times in a file, need for a hit rate
    Size(size::Arguments),
    /// Follow, list, undo, pause, resume or restart the rollouts of a pool
    Rollout(rollout::Arguments),
    /// Change the template of a pool
    Set(set_image::Set),
}

/// Whether `argv0` is the name of the plugin.
pub fn is_plugin(argv0: Option<&OsStr>) -> bool {
    argv0.and_then(|path| Path::new(path).file_name()) == Some(OsStr::new(NAME))
}

/// Whether `argv0` is the name under which kubectl asks for completions.
pub(super) fn completes(argv0: Option<&OsStr>) -> bool {
    complete::is_called(argv0)
}

/// Prints the completions of the words that follow the name of the program.
pub(super) fn complete() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match print::out(&complete::answer(&mut command(), &words)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error.to_string(), 1),
    }
}

/// The command line of the plugin.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Parses the words that follow the name of the program.
fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let all = [NAME.into()].into_iter().chain(words.iter().cloned());
    Cli::try_parse_from(all).map_err(|error| unfit_flags::with_advice(error, &mut command(), words))
}

/// The error about these words, as `kubectl warmpool` prints it; `None` when they can be parsed.
pub fn usage_error(words: &[&str]) -> Option<clap::Error> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    parse(&words).err()
}

/// Parses the arguments, runs the verb and returns its exit code.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let cli = match parse(&words) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let connection = &cli.connection;
    let outcome = match &cli.verb {
        Verb::Claim(arguments) => claim::run(connection, arguments).map_err(|e| e.to_string()),
        Verb::Exec(arguments) => exec::run(connection, arguments).map_err(|e| e.to_string()),
        Verb::Release(arguments) => release::run(connection, arguments).map_err(|e| e.to_string()),
        Verb::Status(arguments) => status::run(connection, arguments)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| e.to_string()),
        Verb::Top(arguments) => top::run(connection, arguments)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| e.to_string()),
        Verb::Set(arguments) => match set_image::run(connection, arguments) {
            Ok(code) => return code,
            Err(error) => return report(&error.to_string(), error.exit_code()),
        },
        Verb::Plan(arguments) => match plan::run(connection, arguments, plan::Scope::Context) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => return report(&error.to_string(), error.exit_code()),
        },
        Verb::Rollout(arguments) => rollout::run(connection, arguments).map_err(|e| e.to_string()),
        Verb::Drain(arguments) => drain::run(connection, arguments).map_err(|e| e.to_string()),
        Verb::Size(arguments) => size::run(connection, arguments)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| e.to_string()),
        Verb::Why(arguments) => why::run(connection, arguments)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| e.to_string()),
    };
    outcome.unwrap_or_else(|message| report(&message, 1))
}

/// Prints an error, and returns its exit code.
fn report(message: &str, code: u8) -> ExitCode {
    print::error(message);
    ExitCode::from(code)
}
