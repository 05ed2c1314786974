//! `kubectl warmpool top`: how well pools serve their claims, from the API alone.

use crate::cache::index::Index;
use crate::cli::kubectl::cluster::Cluster;
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::print;
use crate::cli::kubectl::table::Table;
use crate::cli::kubectl::verb_error::VerbError;
use crate::cli::kubectl::why::format::between;
use crate::cli::runtime::block_on;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a cell without a value holds, as in kubectl.
const NONE: &str = "<none>";

/// Arguments of `kubectl warmpool top`.
#[derive(clap::Args)]
#[command(after_help = "\
Counts the claims that exist: released claims are gone. HITS is the share of them that found their sandboxes available, and \
WAIT-P50 and WAIT-P99 are the waits that half and 99% of them did not exceed. The metric warmpool_claim_wait_seconds has the \
same for all claims ever. Exit code 0: a table was printed. Exit code 1: the call failed. Exit code 2: the arguments are wrong.

Examples:
  kubectl warmpool top
  kubectl warmpool top -A")]
pub(super) struct Arguments {
    /// List the pools of all namespaces, whatever -n says
    #[arg(short = 'A', long)]
    all_namespaces: bool,
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<(), VerbError> {
    block_on(async {
        let cluster = Cluster::open(connection).await?;
        let namespace = (!arguments.all_namespaces).then_some(cluster.namespace.as_str());
        let index = cluster.read_of(namespace).await?;
        let lines = table(&index, arguments.all_namespaces, Timestamp::now());
        if lines.len() == 1 {
            match namespace {
                Some(namespace) => print::note(&format!("No pools found in {namespace} namespace.")),
                None => print::note("No pools found."),
            }
            return Ok(());
        }
        Ok(print::out(&(lines.join("\n") + "\n"))?)
    })?
}

/// What the claims of a pool went through.
#[derive(Default)]
struct Served {
    /// Waits of the claims that were bound, in seconds.
    waits: Vec<f64>,
    /// How many of them found all their sandboxes available.
    warm: usize,
    waiting: usize,
    /// Since when the oldest claim waits.
    oldest: Option<Timestamp>,
}

impl Served {
    fn add(&mut self, claim: &Claim) {
        if let Some(wait) = claim.status.wait_seconds {
            let is_warm = claim.status.sandboxes.iter().all(|sandbox| sandbox.warm);
            self.waits.push(wait);
            self.warm += usize::from(is_warm);
        }
        if claim.waiting() {
            let since = claim.waits_from(claim.created);
            self.waiting += 1;
            self.oldest = Some(self.oldest.map_or(since, |oldest| oldest.min(since)));
        }
    }

    /// The wait that so many percent of the claims did not exceed.
    fn percentile(&self, percent: usize) -> String {
        let mut waits = self.waits.clone();
        waits.sort_by(f64::total_cmp);
        let rank = (waits.len() * percent).div_ceil(100).saturating_sub(1);
        waits
            .get(rank)
            .map_or_else(|| NONE.to_string(), |wait| short(*wait))
    }

    fn hits(&self) -> String {
        match self.waits.len() {
            0 => NONE.to_string(),
            all => format!("{}%", self.warm * 100 / all),
        }
    }
}

/// A time in seconds, such as `12ms` or `3.4s`.
fn short(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0}ms", seconds * 1000.0)
    } else {
        format!("{seconds:.1}s")
    }
}

/// A row for each pool, after the titles.
pub fn table(index: &Index, with_namespace: bool, now: Timestamp) -> Vec<String> {
    let mut served: BTreeMap<Key, Served> = BTreeMap::new();
    for claim in index.claim_keys().iter().filter_map(|key| index.claim(key)) {
        let pool = Key::new(claim.key.namespace.clone(), claim.pool());
        served.entry(pool).or_default().add(&claim);
    }
    let namespace = with_namespace.then_some("NAMESPACE");
    let titles = [
        "NAME",
        "AVAILABLE",
        "BOUND",
        "HITS",
        "WAIT-P50",
        "WAIT-P99",
        "WAITING",
        "OLDEST",
    ];
    let mut table = Table::new(namespace.into_iter().chain(titles));
    for pool in index.pool_keys().iter().filter_map(|key| index.pool(key)) {
        let served = served.remove(&pool.key).unwrap_or_default();
        let namespace = with_namespace.then(|| pool.key.namespace.to_string());
        table.row(namespace.into_iter().chain(cells(&pool, &served, now)));
    }
    table.lines()
}

fn cells(pool: &Arc<Pool>, served: &Served, now: Timestamp) -> [String; 8] {
    let since = |since| between(since, now);
    [
        pool.key.name.to_string(),
        format!("{}/{}", pool.status.available, pool.spec.replicas),
        served.waits.len().to_string(),
        served.hits(),
        served.percentile(50),
        served.percentile(99),
        served.waiting.to_string(),
        served.oldest.map_or_else(|| NONE.to_string(), since),
    ]
}
