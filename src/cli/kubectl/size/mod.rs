//! `kubectl warmpool size`: which size recent claims, or those of a file, would have needed.

pub mod arrivals;
pub mod needed;

use crate::api::PoolStatus;
use crate::cache::index::Index;
use crate::cli::duration;
use crate::cli::kubectl::cluster::Cluster;
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::pool_name::PoolName;
use crate::cli::kubectl::print::{self, Data};
use crate::cli::kubectl::size::arrivals::{Arrival, ArrivalError};
use crate::cli::kubectl::size::needed::Needed;
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use crate::cli::runtime::block_on;
use crate::model::Key;
use crate::model::autoscaling::{COMMON_HIT_RATES, HitRate};
use crate::model::demand::warm_up_times::DEFAULT_WARM_UP;
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Arguments of `kubectl warmpool size`.
#[derive(clap::Args)]
#[command(after_help = "\
Of a pool with autoscaling, the operator's own count of the last hours is printed. Of another pool, the claims that still
exist are counted. IDLE is the mean number of available sandboxes, followed by their sandbox hours per day.

A file has one arrival in each line: a time like 2026-01-31T12:00:00Z or a number of seconds, and the number of sandboxes
after it if it is not 1. Without a pool, no cluster is needed.

Examples:
  kubectl warmpool size python                            sizes for 90%, 95%, 99% and 99.9%
  kubectl warmpool size python --target 99.5%
  kubectl warmpool size python -o json | jq '.sizes[] | {hitRate, size}'
  kubectl warmpool size --from arrivals.txt --warm-up 8s")]
pub(super) struct Arguments {
    /// Name of the pool: NAME, pool/NAME or pool.warmpool.dev/NAME
    #[arg(value_name = "POOL", required_unless_present = "from")]
    pool: Option<PoolName>,
    /// Print the size for this hit rate only, such as 99%
    #[arg(long, value_parser = hit_rate)]
    target: Option<HitRate>,
    /// File with arrival times; - reads standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Time that a sandbox takes until it is available [default: what the pool's status says, or 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    warm_up: Option<Duration>,
    /// Print the sizes in this format [default: a table]
    #[arg(short, long, value_enum)]
    output: Option<Data>,
}

fn hit_rate(written: &str) -> Result<HitRate, String> {
    HitRate::parse(written)
        .ok_or_else(|| "write a percentage above 0% and below 100%, like 99% or 99.9%".into())
}

/// No size was printed.
#[derive(Debug, Error)]
pub enum SizeError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A line of the file is no arrival.
    #[error(transparent)]
    Arrival(#[from] ArrivalError),
    /// Nothing says how many claims come.
    #[error("no claims to count: {0}; collect arrival times in a file and use --from")]
    NoClaims(&'static str),
    /// As for every verb.
    #[error(transparent)]
    Verb(VerbError),
}

wraps_verb_error!(SizeError);

/// What `kubectl warmpool size -o json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SizeReport {
    /// Number of claims that were counted.
    pub claims: i64,
    /// Hours from the first to the last of them; null where the operator has counted them, over some hours.
    pub hours: Option<f64>,
    /// Sandboxes requested per hour.
    pub sandboxes_per_hour: f64,
    /// Time that a sandbox takes until it is available.
    pub warm_up_seconds: f64,
    /// The sizes, by hit rate.
    pub sizes: Vec<Size>,
}

/// The size for one hit rate.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// Share of claims that find a sandbox available, such as 99%.
    pub hit_rate: String,
    /// The least spec.replicas with which that many do.
    pub size: usize,
    /// Mean number of available sandboxes.
    pub idle: f64,
    /// What they come to in sandbox hours per day.
    pub sandbox_hours_per_day: f64,
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<(), SizeError> {
    let of_file = arguments.from.as_ref().map(|path| {
        let arrivals = arrivals::parse(&read(path)?)?;
        Ok::<_, SizeError>(arrivals)
    });
    let arrivals = of_file.transpose()?;
    let report = match &arguments.pool {
        None => of_arrivals(
            &arrivals.unwrap_or_default(),
            warm_up(arguments, None),
            arguments.target,
        )
        .ok_or(SizeError::NoClaims("the file has none"))?,
        Some(pool) => block_on(async {
            let cluster = Cluster::open(connection).await?;
            let index = cluster.read().await?;
            let key = Key::new(cluster.namespace.clone(), &pool.0);
            of_pool(&index, &key, arrivals, arguments)
        })??,
    };
    Ok(print::out(&match arguments.output {
        Some(format) => print::data(format, &report)?,
        None => report.text(),
    })?)
}

fn read(path: &PathBuf) -> Result<String, SizeError> {
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(path).map(|read| text = read)
    };
    read.map_err(|source| SizeError::Read {
        path: path.clone(),
        source,
    })?;
    Ok(text)
}

fn warm_up(arguments: &Arguments, status: Option<&PoolStatus>) -> SignedDuration {
    let written = arguments
        .warm_up
        .and_then(|written| SignedDuration::try_from(written).ok());
    let learned = status.and_then(|status| status.autoscaling.as_ref());
    let learned = learned.map(|learned| SignedDuration::from_millis(learned.warm_up_milliseconds));
    written
        .or(learned.filter(|learned| learned.is_positive()))
        .unwrap_or(DEFAULT_WARM_UP)
}

/// The sizes for a pool of a cluster: for the arrivals of a file, if there are any, with the warm-up time of the pool.
fn of_pool(
    index: &Index,
    key: &Key,
    from_file: Option<Vec<Arrival>>,
    arguments: &Arguments,
) -> Result<SizeReport, SizeError> {
    let pool = index
        .pool(key)
        .ok_or_else(|| VerbError::NoPool(key.name.to_string()))?;
    let is_listed = |status: &PoolStatus| {
        let sizes = status.autoscaling.iter().flat_map(|learned| &learned.sizes);
        let wanted = arguments.target.map(|target| target.to_string());
        sizes
            .into_iter()
            .any(|size| wanted.as_ref().is_none_or(|wanted| *wanted == size.hit_rate))
    };
    let warm_up = warm_up(arguments, Some(&pool.status));
    if let Some(arrivals) = from_file {
        return of_arrivals(&arrivals, warm_up, arguments.target)
            .ok_or(SizeError::NoClaims("the file has none"));
    }
    if arguments.warm_up.is_none() && is_listed(&pool.status) {
        return Ok(learned(&pool.status, arguments.target));
    }
    let claims = index
        .claim_keys()
        .into_iter()
        .filter_map(|claim| index.claim(&claim));
    let mut arrivals: Vec<_> = claims
        .filter(|claim| claim.key.namespace == key.namespace && claim.pool() == key.name)
        .map(|claim| Arrival {
            at: claim.created,
            count: claim.wanted(),
        })
        .collect();
    arrivals.sort_by_key(|arrival| arrival.at);
    of_arrivals(&arrivals, warm_up, arguments.target).ok_or(SizeError::NoClaims(
        "the pool has none, and its status has no sizes for the hit rate",
    ))
}

/// What the operator has counted.
fn learned(status: &PoolStatus, target: Option<HitRate>) -> SizeReport {
    let learned = status.autoscaling.clone().unwrap_or_default();
    let warm_up = learned.warm_up_milliseconds as f64 / 1000.0;
    let per_hour = learned.arrivals_per_hour as f64;
    let warming = per_hour / 3600.0 * warm_up;
    let sizes = learned.sizes.iter().filter_map(|size| {
        let rate = HitRate::parse(&size.hit_rate)?;
        let is_shown = target.map_or(COMMON_HIT_RATES.contains(&rate), |target| target == rate);
        let replicas = usize::try_from(size.replicas).ok()?;
        is_shown.then(|| Size::new(rate, replicas, (replicas as f64 - warming).max(0.0)))
    });
    SizeReport {
        claims: learned.claims,
        hours: None,
        sandboxes_per_hour: per_hour,
        warm_up_seconds: warm_up,
        sizes: sizes.collect(),
    }
}

/// What these arrivals would have needed; `None` without any.
pub fn of_arrivals(
    arrivals: &[Arrival],
    warm_up: SignedDuration,
    target: Option<HitRate>,
) -> Option<SizeReport> {
    let needed = Needed::of(arrivals, warm_up);
    if needed.claims() == 0 {
        return None;
    }
    let rates = target.map_or(COMMON_HIT_RATES.to_vec(), |target| vec![target]);
    let sizes = rates.into_iter().map(|rate| {
        let size = needed.size(rate.share());
        Size::new(rate, size, needed.idle(size))
    });
    Some(SizeReport {
        claims: i64::try_from(needed.claims()).unwrap_or(i64::MAX),
        hours: Some(needed.hours()),
        sandboxes_per_hour: needed.per_hour(),
        warm_up_seconds: warm_up.as_secs_f64(),
        sizes: sizes.collect(),
    })
}

impl Size {
    fn new(rate: HitRate, size: usize, idle: f64) -> Self {
        Self {
            hit_rate: rate.to_string(),
            size,
            idle,
            sandbox_hours_per_day: idle * 24.0,
        }
    }
}

impl SizeReport {
    /// The report for people: what was counted, and a row for each hit rate.
    pub fn text(&self) -> String {
        let Self {
            claims,
            hours,
            sandboxes_per_hour: per_hour,
            warm_up_seconds: warm_up,
            sizes,
        } = self;
        let mut text = match hours {
            Some(hours) => format!("{claims} claims in {hours:.1} hours, {per_hour:.0} sandboxes per hour, "),
            None => {
                format!("About {claims} claims of the last hours, {per_hour:.0} sandboxes per hour lately, ")
            }
        };
        _ = writeln!(text, "warm-up time {warm_up:.1} s.");
        let (rate, size, idle) = ("HIT RATE", "SIZE", "IDLE");
        _ = writeln!(text, "{rate:<10} {size:>6} {idle:>8}   SANDBOX HOURS PER DAY");
        for row in sizes {
            let (rate, size, idle, hours) = (&row.hit_rate, row.size, row.idle, row.sandbox_hours_per_day);
            _ = writeln!(text, "{rate:<10} {size:>6} {idle:>8.1}   {hours:.0}");
        }
        text
    }
}
