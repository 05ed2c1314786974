//! `kubectl warmpool drain NODE --dry-run`: what a drain of a node would do to its sandboxes.
//!
//! The order and the rounds come from the planner of the controllers, so they match what the operator does.

pub mod forecast;
pub(super) mod report;

use crate::cli::kubectl::cluster::Cluster;
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::print::{self, Data};
use crate::cli::kubectl::verb_error::VerbError;
use crate::cli::runtime::block_on;
use crate::model::stored::StoredNode;
use forecast::forecast;
use jiff::Timestamp;
use kube::Api;
use std::process::ExitCode;

/// Exit code when the drain would not end by itself.
const BLOCKED: u8 = 2;

/// Arguments of `kubectl warmpool drain`.
#[derive(clap::Args)]
#[command(after_help = "\
Nothing is drained: 'kubectl drain NODE' does that. With -n, only the sandboxes of that namespace are shown. Exit code 0: \
the drain would end by itself. Exit code 2: something blocks it; the table says what. Exit code 1: any other error.

Examples:
  kubectl warmpool drain node-1 --dry-run
  kubectl warmpool drain node-1 --dry-run -o json | jq '.sandboxes[] | select(.blocks)'")]
pub(super) struct Arguments {
    /// The node
    #[arg(value_name = "NODE")]
    node: String,
    /// Only show what a drain would do; there is no drain without it, because kubectl drains nodes
    #[arg(long, required = true)]
    dry_run: bool,
    /// Print the forecast in this format [default: a table]
    #[arg(short, long, value_enum)]
    output: Option<Data>,
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<ExitCode, VerbError> {
    block_on(async {
        let cluster = Cluster::open(connection).await?;
        let nodes = Api::<StoredNode>::all(cluster.client.clone());
        let node = cluster.ask(nodes.get(&arguments.node)).await?;
        let mut index = cluster.read_of(connection.namespace.as_deref()).await?;
        let forecast = forecast(&mut index, node, Timestamp::now());
        let text = match arguments.output {
            Some(format) => print::data(format, &report::report(&forecast))?,
            None => report::table(&forecast),
        };
        print::out(&text)?;
        Ok(if forecast.blocks() {
            ExitCode::from(BLOCKED)
        } else {
            ExitCode::SUCCESS
        })
    })?
}
