//! The command line: parses the verb and runs it.

mod completion;
pub mod controller;
pub mod crds;
pub mod documents;
mod duration;
pub mod kubectl;
mod list_objects;
pub mod plan;
mod pool_plan;
mod runtime;
mod unix_signals;
mod unknown_fields;

use clap::{CommandFactory, Parser, Subcommand};
use kubectl::connection::Connection;
use std::process::ExitCode;

/// Keep sandboxes (pods) warm in a Pool and bind them to SandboxClaims in milliseconds.
#[derive(Parser)]
#[command(name = "warmpool", version, long_about = None, after_help = "\
Examples:
  warmpool crds | kubectl apply -f -        install the CustomResourceDefinitions
  warmpool controller                       run the operator against the current kubeconfig context
  warmpool plan                             print what the operator would do next in this cluster, and why
  kubectl get wp,sbc,pods,podtemplates,controllerrevisions -o yaml | warmpool plan -f -
                                            the same from a file, without a cluster

Linked into the PATH as kubectl-warmpool, this program is a kubectl plugin:
  kubectl warmpool --help                   claim sandboxes, explain objects, and control rollouts")]
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
    /// Print what the operator would do next and why, without writing to the cluster
    Plan {
        #[command(flatten)]
        connection: Box<Connection>,
        #[command(flatten)]
        arguments: plan::Arguments,
    },
    /// Print the completion script of a shell
    Completion(completion::CompletionArguments),
    /// Write the man pages of this program and of the plugin
    Man(completion::ManArguments),
}

/// Parses the arguments, runs the verb and returns its exit code. Runs the kubectl plugin when the binary is called
/// `kubectl-warmpool`, and its completion when it is called `kubectl_complete-warmpool`.
pub fn main() -> ExitCode {
    let name = std::env::args_os().next();
    if kubectl::is_plugin(name.as_deref()) {
        return kubectl::main();
    }
    if kubectl::completes(name.as_deref()) {
        return kubectl::complete();
    }
    let outcome = match Cli::parse().verb {
        Verb::Controller(arguments) => return controller::main(&arguments),
        Verb::Crds(arguments) => crds::run(&arguments).map_err(|e| (1, e.to_string())),
        Verb::Plan {
            connection,
            arguments,
        } => plan::run(&connection, &arguments, plan::Scope::All).map_err(|e| (e.exit_code(), e.to_string())),
        Verb::Completion(arguments) => {
            completion::print(Cli::command(), &arguments).map_err(|e| (1, e.to_string()))
        }
        Verb::Man(arguments) => completion::write_pages([Cli::command(), kubectl::command()], &arguments)
            .map_err(|e| (1, e.to_string())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            eprintln!("error: {message}");
            ExitCode::from(code)
        }
    }
}
