//! `kubectl warmpool status`: one screen about each pool, once or again and again.

use crate::cli::kubectl::cluster::Cluster;
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::operator_lease;
use crate::cli::kubectl::pool_name::PoolName;
use crate::cli::kubectl::pool_report::{StatusReport, report};
use crate::cli::kubectl::pool_screen::screen;
use crate::cli::kubectl::print::{self, View};
use crate::cli::kubectl::selection::{Selection, note_none};
use crate::cli::kubectl::terminal::{width, wrapped};
use crate::cli::kubectl::verb_error::VerbError;
use crate::cli::runtime::block_on;
use crate::model::Key;
use jiff::Timestamp;
use std::io::IsTerminal;
use std::time::Duration;

/// Time between two screens.
const INTERVAL: Duration = Duration::from_secs(2);
/// Clears the terminal and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Arguments of `kubectl warmpool status`.
#[derive(clap::Args)]
#[command(after_help = "\
Without POOL, every selected pool has its screen. Exit code 0: the state was printed. Exit code 1: the pool does not exist, or \
the call failed. Exit code 2: the arguments are wrong. With --watch the call ends when a signal ends it.

Examples:
  kubectl warmpool status python
  kubectl warmpool status python --watch
  kubectl warmpool status python -o wide                 with each sandbox, and each claim with all its sandboxes
  kubectl warmpool status -l lang=python -o json | jq '.pools[].explanation'")]
pub(super) struct Arguments {
    /// Name of the pool: NAME, pool/NAME or pool.warmpool.dev/NAME [default: every selected pool]
    #[arg(value_name = "POOL", conflicts_with_all = ["selector", "all_namespaces"])]
    pool: Option<PoolName>,
    #[command(flatten)]
    selection: Selection,
    /// Print the state anew every two seconds
    #[arg(short, long)]
    watch: bool,
    /// Print the state in this format [default: text]
    #[arg(short, long, value_enum)]
    output: Option<View>,
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<(), VerbError> {
    block_on(async {
        let cluster = Cluster::open(connection).await?;
        let is_text = matches!(arguments.output, None | Some(View::Wide));
        let clear = if std::io::stdout().is_terminal() && is_text {
            CLEAR
        } else {
            ""
        };
        print::out(&text(&cluster, arguments).await?)?;
        if !arguments.watch {
            return Ok(());
        }
        loop {
            tokio::time::sleep(INTERVAL).await;
            let text = text(&cluster, arguments).await?;
            print::out(&format!("{clear}{text}"))?;
        }
    })?
}

async fn text(cluster: &Cluster, arguments: &Arguments) -> Result<String, VerbError> {
    let selection = &arguments.selection;
    let namespace = selection.namespace(cluster);
    let selected = selection.read(cluster, namespace).await?;
    let named = arguments.pool.as_ref();
    let named = named.map(|pool| vec![Key::new(cluster.namespace.as_str(), &pool.0)]);
    let now = Timestamp::now();
    let only = named.as_ref().and_then(|keys| selected.index.pool(keys.first()?));
    let mut status = StatusReport {
        operator: operator_lease::hint(cluster, only.as_ref().map(|pool| &pool.labels)).await,
        pools: Vec::new(),
    };
    for key in named.as_ref().unwrap_or(&selected.pools) {
        let pool = report(&selected.index, key, now);
        status
            .pools
            .push(pool.ok_or_else(|| VerbError::NoPool(key.name.to_string()))?);
    }
    let names = status.pools.iter().map(|pool| print::title(&pool.name));
    let screens = |is_wide: bool| {
        if status.pools.is_empty() {
            note_none("pools", namespace);
        }
        screens(&status, is_wide, now)
    };
    Ok(print::view(arguments.output, &status, names, screens)?)
}

/// The screens of all pools, with an empty line between two, for the width of the terminal.
fn screens(status: &StatusReport, is_wide: bool, now: Timestamp) -> String {
    let screens = status.pools.iter().enumerate().flat_map(|(n, pool)| {
        let between = (n > 0).then(String::new);
        between.into_iter().chain(screen(pool, is_wide, now))
    });
    let width = width();
    let lines = status.operator.iter().cloned().chain(screens);
    lines.map(|line| wrapped(&line, width) + "\n").collect()
}
