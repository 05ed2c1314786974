//! `kubectl warmpool top`: how well pools serve their claims, from the API alone.

use crate::api::claim::Phase;
use crate::cache::index::Index;
use crate::cli::kubectl::cluster::Cluster;
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::print::{self, View};
use crate::cli::kubectl::selection::{Selection, note_none};
use crate::cli::kubectl::table::{NONE, Table};
use crate::cli::kubectl::verb_error::VerbError;
use crate::cli::kubectl::why::format::{between, short};
use crate::cli::runtime::block_on;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Arguments of `kubectl warmpool top`.
#[derive(clap::Args)]
#[command(after_help = "\
Counts the claims that exist: released claims are gone. HITS is the share of them that found their sandboxes available, and \
WAIT-P50 and WAIT-P99 are the waits that half and 99% of them did not exceed. The metric warmpool_claim_wait_seconds has the \
same for all claims ever. Exit code 0: a table was printed. Exit code 1: the call failed. Exit code 2: the arguments are wrong.

Examples:
  kubectl warmpool top
  kubectl warmpool top -A -o wide
  kubectl warmpool top -l lang=python -o json | jq '.pools[] | {name, hitRatio}'")]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// Print the pools in this format [default: a table]
    #[arg(short, long, value_enum)]
    output: Option<View>,
}

/// What `kubectl warmpool top -o json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopReport {
    /// The pools, by namespace and name.
    pub pools: Vec<TopPool>,
}

/// How well a pool serves the claims that exist.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopPool {
    /// Namespace of the pool.
    pub namespace: String,
    /// Name of the pool.
    pub name: String,
    /// Available unclaimed sandboxes, from the pool's status.
    pub available: i32,
    /// spec.replicas: the size of the pool, or its least size with autoscaling, where status.desiredReplicas is the
    /// size.
    pub replicas: usize,
    /// Claimed and unclaimed sandboxes, from the pool's status.
    pub total: i32,
    /// Claims that were bound.
    pub bound: usize,
    /// Of them, the claims that found all their sandboxes available.
    pub bound_warm: usize,
    /// Share of the bound claims that found all their sandboxes available, from 0 to 1.
    pub hit_ratio: Option<f64>,
    /// The wait in seconds that half of the bound claims did not exceed.
    pub wait_seconds_p50: Option<f64>,
    /// The wait in seconds that 99% of the bound claims did not exceed.
    pub wait_seconds_p99: Option<f64>,
    /// Claims that wait.
    pub waiting: usize,
    /// Since when the oldest of them waits.
    pub oldest_waiting_since: Option<String>,
    /// Claims in phase Failed.
    pub failed: usize,
    /// Claims in phase Expired.
    pub expired: usize,
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<(), VerbError> {
    block_on(async {
        let cluster = Cluster::open(connection).await?;
        let selection = &arguments.selection;
        let namespace = selection.namespace(&cluster);
        let selected = selection.read(&cluster, namespace).await?;
        let report = report(&selected.index, &selected.pools);
        let names = report.pools.iter().map(|pool| print::title(&pool.name));
        let rows = |is_wide| {
            if report.pools.is_empty() {
                note_none("pools", namespace);
                return String::new();
            }
            let lines = table(&report, namespace.is_none(), is_wide, Timestamp::now());
            lines.join("\n") + "\n"
        };
        Ok(print::out(&print::view(arguments.output, &report, names, rows)?)?)
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
    failed: usize,
    expired: usize,
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
        self.failed += usize::from(claim.status.phase == Some(Phase::Failed));
        self.expired += usize::from(claim.status.phase == Some(Phase::Expired));
    }

    fn report(mut self, pool: &Pool) -> TopPool {
        self.waits.sort_by(f64::total_cmp);
        let bound = self.waits.len();
        // The wait that so many percent of the claims did not exceed.
        let percentile = |percent: usize| {
            let rank = (bound * percent).div_ceil(100).saturating_sub(1);
            self.waits.get(rank).copied()
        };
        TopPool {
            namespace: pool.key.namespace.to_string(),
            name: pool.key.name.to_string(),
            available: pool.status.available,
            replicas: pool.spec.replicas,
            total: pool.status.total,
            bound,
            bound_warm: self.warm,
            hit_ratio: (bound > 0).then(|| self.warm as f64 / bound as f64),
            wait_seconds_p50: percentile(50),
            wait_seconds_p99: percentile(99),
            waiting: self.waiting,
            oldest_waiting_since: self.oldest.map(|oldest| oldest.to_string()),
            failed: self.failed,
            expired: self.expired,
        }
    }
}

/// How well these pools serve their claims.
pub fn report(index: &Index, pools: &[Key]) -> TopReport {
    let mut served: BTreeMap<Key, Served> = BTreeMap::new();
    for claim in index.claim_keys().iter().filter_map(|key| index.claim(key)) {
        let pool = Key::new(claim.key.namespace.clone(), claim.pool());
        served.entry(pool).or_default().add(&claim);
    }
    let pools = pools.iter().filter_map(|key| index.pool(key));
    TopReport {
        pools: pools
            .map(|pool| served.remove(&pool.key).unwrap_or_default().report(&pool))
            .collect(),
    }
}

/// A row for each pool, after the titles.
pub fn table(report: &TopReport, with_namespace: bool, is_wide: bool, now: Timestamp) -> Vec<String> {
    let namespace: &[&str] = if with_namespace { &["NAMESPACE"] } else { &[] };
    let wide: &[&str] = if is_wide {
        &["TOTAL", "FAILED", "EXPIRED"]
    } else {
        &[]
    };
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
    let mut table = Table::new(namespace.iter().chain(&titles).chain(wide).copied());
    for pool in &report.pools {
        let namespace = with_namespace.then(|| pool.namespace.clone());
        let wide = is_wide.then(|| {
            [
                pool.total.to_string(),
                pool.failed.to_string(),
                pool.expired.to_string(),
            ]
        });
        let cells = namespace.into_iter().chain(cells(pool, now));
        table.row(cells.chain(wide.into_iter().flatten()));
    }
    table.lines()
}

fn cells(pool: &TopPool, now: Timestamp) -> [String; 8] {
    let since = |since: &String| Some(between(since.parse().ok()?, now));
    let or_none = |cell: Option<String>| cell.unwrap_or_else(|| NONE.into());
    [
        pool.name.clone(),
        format!("{}/{}", pool.available, pool.replicas),
        pool.bound.to_string(),
        or_none(
            (pool.bound_warm * 100)
                .checked_div(pool.bound)
                .map(|share| format!("{share}%")),
        ),
        or_none(pool.wait_seconds_p50.map(short)),
        or_none(pool.wait_seconds_p99.map(short)),
        pool.waiting.to_string(),
        or_none(pool.oldest_waiting_since.as_ref().and_then(since)),
    ]
}
