//! The kubectl plugin: what the binary is under the name `kubectl-warmpool`.

pub mod claim;
mod cluster;
pub mod edit;
mod follow;
pub mod history;
pub mod pool;
mod print;
pub mod rollout;
mod session;
pub mod status;
pub mod undo;
pub mod why;

use clap::{Args, Parser, Subcommand};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The name under which kubectl finds the plugin in the `PATH`.
const NAME: &str = "kubectl-warmpool";

/// Takes sandboxes out of pools, and rolls out their templates as kubectl does those of Deployments.
#[derive(Parser)]
#[command(name = NAME, bin_name = "kubectl warmpool", version, long_about = None, after_help = "\
Examples:
  kubectl warmpool claim python -it --rm --exec -- sh      a shell in a warm sandbox
  kubectl warmpool why run-42                              what does the claim wait for?
  kubectl warmpool rollout status python                   follow a rollout to its end
  kubectl warmpool rollout history python                  which templates has the pool had?
  kubectl warmpool rollout undo python --to-revision=2     go back to one of them
  kubectl warmpool rollout pause python -n sandboxes")]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Take a sandbox from a pool, wait for it, and run a command in it
    Claim(claim::Arguments),
    /// Say why a claim, a pool or a sandbox is where it is, and what the operator would do next
    Why(why::Arguments),
    /// Follow, undo, pause, resume or restart the rollout of a pool's template
    Rollout(rollout::Arguments),
}

/// Which cluster and namespace are meant: kubectl's own flags.
#[derive(Args)]
struct Connection {
    /// Namespace of what is meant [default: that of the kubeconfig context]
    #[arg(short, long, global = true)]
    namespace: Option<String>,
    /// Context of the kubeconfig to use [default: its current context]
    #[arg(long, global = true)]
    context: Option<String>,
    /// Path of the kubeconfig [default: as for kubectl]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Whether a program called `argv0` is the plugin.
pub fn is_plugin(argv0: Option<&OsStr>) -> bool {
    argv0.and_then(|path| Path::new(path).file_name()) == Some(OsStr::new(NAME))
}

/// Runs the verb that the arguments name.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let connection = &cli.connection;
    let outcome = match &cli.verb {
        Verb::Claim(arguments) => claim::run(connection, arguments).map_err(|e| e.to_string()),
        Verb::Rollout(arguments) => rollout::run(connection, arguments)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| e.to_string()),
        Verb::Why(arguments) => why::run(connection, arguments)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| e.to_string()),
    };
    outcome.unwrap_or_else(|said| {
        // The words of the API server stand for themselves, as in kubectl.
        let mark = if said.starts_with(cluster::FROM_SERVER) {
            ""
        } else {
            "error: "
        };
        print::note(&format!("{mark}{said}"));
        ExitCode::FAILURE
    })
}
