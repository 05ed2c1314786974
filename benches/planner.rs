//! Measures how long one plan takes, and how the time grows with the pods.
//!
//!     cargo bench --bench planner
//!
//! It does not start while other processes use the machine, and marks the rows that they disturbed.

#[path = "shared/machine.rs"]
mod machine;
#[path = "shared/median.rs"]
mod median;

use clap::Parser;
use jiff::{SignedDuration, Timestamp};
use machine::{DISTURBED, Meter, own_seconds};
use median::median;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use warmpool::api::labels;
use warmpool::cache::pod_disruption_budget_snapshot::BudgetSnapshot;
use warmpool::cache::snapshot::{Creation, CreationInFlight, PoolSnapshot, RevisionProgress, SandboxEntry};
use warmpool::cache::waiting_claim::Waiting;
use warmpool::model::Key;
use warmpool::model::autoscaling::ResolvedAutoscaling;
use warmpool::model::claim::Claim;
use warmpool::model::demand::Demand;
use warmpool::model::known_nodes::{KnownNodes, NodeAccess};
use warmpool::model::node::Node;
use warmpool::model::pool::Pool;
use warmpool::model::revision::{Revision, Template};
use warmpool::model::sandbox::{Owner, PodPhase, Sandbox};
use warmpool::model::scheduling::Scheduling;
use warmpool::model::stored::{StoredClaim, StoredPool};
use warmpool::model::toleration::Tolerations;
use warmpool::planner::autoscale::at_chosen_size;
use warmpool::planner::plan;

const POOL_UID: &str = "6f0c1e5e-0000-4000-8000-000000000000";
const OLD: &str = "bcdfghjklm";
const NEW: &str = "npqrstvwxz";
/// Pods of one pool share nodes, because the order of removal depends on the pods per node.
const NODES: usize = 50;
/// A plan is repeated for this long and at least [`FEWEST`] times, so that the p99 is meaningful.
const TIME: Duration = Duration::from_secs(2);
const FEWEST: usize = 200;
/// Upper limit for the time of a plan over 10,000 pods.
const GOAL_MS: f64 = 20.0;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Measures how long one plan takes
#[derive(Parser)]
struct Arguments {
    /// Start although other processes use the machine; the rows are marked
    #[arg(long)]
    busy: bool,
    /// Cargo passes this flag to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Outcome<()> {
    machine::require_quiet(Arguments::parse().busy)?;
    let sizes = [100, 1_000, 10_000];
    println!(
        "{:<34} {:>7} {:>9} {:>9} {:>10} {:>12}",
        "one plan", "actions", "median ms", "p99 ms", "ns each", "grows by"
    );
    rows("rollout in mid-flight", &sizes, rollout)?;
    rows("as many waiting claims as pods", &sizes, claims)?;
    rows("waiting claims, none available", &sizes, waiting)?;
    rows("full and at rest", &sizes, rest)?;
    autoscaled()?;
    println!("\n`grows by` is the time per pod or claim beside that of a tenth of them: 1 is linear.");
    println!("Goal: 10,000 pods under {GOAL_MS} ms.");
    Ok(())
}

fn rows(name: &str, sizes: &[usize], snapshot: fn(usize) -> Outcome<PoolSnapshot>) -> Outcome<()> {
    let mut before = None;
    for size in sizes {
        let snapshot = snapshot(*size)?;
        let meter = Meter::start(own_seconds()?)?;
        let actions = plan(&snapshot).actions.len();
        let (median, p99) = time(&snapshot);
        let each = median * 1e6 / f64::from(u32::try_from(*size)?);
        let mark = mark(&meter)?;
        let growth = before.map_or_else(String::new, |before: f64| format!("{:.2}", each / before));
        println!(
            "{:<34} {actions:>7} {median:>9.3} {p99:>9.3} {each:>10.0} {growth:>12}{mark}",
            format!("{name}, {size}"),
        );
        before = Some(each);
    }
    Ok(())
}

/// What follows a row that other processes disturbed.
fn mark(meter: &Meter) -> Outcome<&'static str> {
    let disturbance = meter.surroundings(own_seconds()?)?.disturbance();
    Ok(disturbance.map_or("", |_| DISTURBED))
}

/// A full pool as each plan of one claim's life sees it: a claim arrives, it holds its sandbox, the replacement is seen, and the
/// replacement is available. The status of the pool was written just before.
fn life_of_a_claim(mut snapshot: PoolSnapshot, number: usize) -> Outcome<[PoolSnapshot; 4]> {
    let status = plan(&at_chosen_size(snapshot.clone())).status;
    Arc::make_mut(&mut snapshot.pool).status = status;
    snapshot.status_written_at = Some(snapshot.now);
    let mut waiting = claim(number, snapshot.now)?;
    waiting.is_new = true;
    let claim = Arc::clone(&waiting.claim);
    let mut arrives = snapshot.clone();
    arrives.claims.push(waiting);

    let mut replaced = snapshot;
    replaced.demand = plan(&at_chosen_size(arrives.clone())).demand;
    let mut warming = Sandbox::clone(&replaced.sandboxes.first().ok_or("the pool is empty")?.sandbox);
    warming.key = Key::new("bench", format!("python-new-{number}"));
    warming.uid = "new".into();
    (warming.phase, warming.ready_since, warming.created) = (PodPhase::Pending, None, replaced.now);
    if let Some(entry) = replaced.sandboxes.last_mut() {
        let claimed = Arc::make_mut(&mut entry.sandbox);
        claimed.state = labels::CLAIMED.into();
        claimed.owner = Owner::Claim {
            name: claim.key.name.clone(),
            uid: claim.uid.clone(),
        };
    }
    let mut holds = replaced.clone();
    holds.creating.push(CreationInFlight {
        name: warming.key.name.clone(),
        revision: NEW.into(),
        is_answered: false,
    });
    let with = |sandbox: Sandbox| {
        let mut seen = replaced.clone();
        seen.sandboxes.push(SandboxEntry {
            sandbox: Arc::new(sandbox),
            expected: None,
        });
        seen
    };
    let mut available = warming.clone();
    (available.phase, available.ready_since) = (PodPhase::Running, Some(replaced.now));
    Ok([arrives, holds, with(warming), with(available)])
}

/// What autoscaling adds to the plans of a thousand pools of 20, each with a claim: to all that the claim causes, and to the
/// first alone.
fn autoscaled() -> Outcome<()> {
    let fields = json!({"maxReplicas": 100}).to_string();
    let resolved = ResolvedAutoscaling::resolve(&serde_json::from_str(&fields)?, 20)?;
    let (mut plain, mut sized) = (Vec::new(), Vec::new());
    for number in 0..1_000 {
        let mut snapshot = at_rest(20, NEW)?;
        plain.push(life_of_a_claim(snapshot.clone(), number)?);
        Arc::make_mut(&mut snapshot.pool).spec.autoscaling = Some(Ok(resolved.clone()));
        let mut demand = Demand {
            size: 20,
            ..Demand::default()
        };
        for second in 0..600 {
            let at = snapshot.now - SignedDuration::from_secs(600 - second);
            demand.arrive(1 + usize::from(second % 7 == 0), at);
        }
        snapshot.demand = Some(Arc::new(demand));
        sized.push(life_of_a_claim(snapshot, number)?);
    }
    println!();
    for (what, plans) in [("the claim causes", 4), ("see the claim arrive", 1)] {
        let first = |lives: &[[PoolSnapshot; 4]]| -> Vec<PoolSnapshot> {
            let lives = lives.iter().map(|life| life.iter().take(plans));
            lives.flatten().cloned().collect()
        };
        let meter = Meter::start(own_seconds()?)?;
        let (without, with) = cpu_of(&first(&plain), &first(&sized));
        let mark = mark(&meter)?;
        println!(
            "A thousand pools of 20 with a claim each, plans that {what}: {without:.1} ms of CPU, with autoscaling \
             {with:.1} ms, {:.2} times as much.{mark}",
            with / without
        );
    }
    Ok(())
}

/// CPU time in milliseconds that it takes to plan each of these two lists: the medians of 31 turns.
fn cpu_of(plain: &[PoolSnapshot], sized: &[PoolSnapshot]) -> (f64, f64) {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..31 {
        for (snapshots, times) in [(plain, &mut without), (sized, &mut with)] {
            let snapshots = snapshots.to_vec();
            let from = cpu_time();
            for snapshot in snapshots {
                black_box(plan(&at_chosen_size(black_box(snapshot))));
            }
            times.push(milliseconds(cpu_time().saturating_sub(from)));
        }
    }
    (
        median(&without).unwrap_or_default(),
        median(&with).unwrap_or_default(),
    )
}

/// CPU time of this thread, so that whatever else runs on the machine does not count.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

/// Median and p99 in milliseconds.
fn time(snapshot: &PoolSnapshot) -> (f64, f64) {
    let began = Instant::now();
    let mut times = Vec::new();
    while times.len() < FEWEST || began.elapsed() < TIME {
        let from = Instant::now();
        black_box(plan(black_box(snapshot)));
        times.push(milliseconds(from.elapsed()));
    }
    times.sort_by(f64::total_cmp);
    let p99 = times.get(times.len() * 99 / 100).copied();
    (median(&times).unwrap_or_default(), p99.unwrap_or_default())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Half of the pods are old and available, three eighths new and available, and one eighth new and warming. That is within
/// `maxUnavailable`, so the plan replaces old pods.
fn rollout(size: usize) -> Outcome<PoolSnapshot> {
    let mut snapshot = at_rest(size, OLD)?;
    for (number, entry) in snapshot.sandboxes.iter_mut().enumerate() {
        let mut sandbox = (*entry.sandbox).clone();
        if number % 8 < 4 {
            sandbox.revision = OLD.into();
        }
        if number % 8 == 7 {
            sandbox.phase = PodPhase::Pending;
            sandbox.ready_since = None;
        }
        entry.sandbox = Arc::new(sandbox);
    }
    Ok(snapshot)
}

/// Every pod is available, and one claim waits for each.
fn claims(size: usize) -> Outcome<PoolSnapshot> {
    let mut snapshot = at_rest(size, NEW)?;
    snapshot.claims = (0..size)
        .map(|n| claim(n, snapshot.now))
        .collect::<Outcome<_>>()?;
    Ok(snapshot)
}

/// A pool of 20 warming pods, and `size` claims that wait for them.
fn waiting(size: usize) -> Outcome<PoolSnapshot> {
    let mut snapshot = at_rest(20, NEW)?;
    for entry in &mut snapshot.sandboxes {
        let mut sandbox = (*entry.sandbox).clone();
        sandbox.phase = PodPhase::Pending;
        sandbox.ready_since = None;
        sandbox.created = snapshot.now;
        entry.sandbox = Arc::new(sandbox);
    }
    snapshot.claims = (0..size)
        .map(|n| claim(n, snapshot.now))
        .collect::<Outcome<_>>()?;
    Ok(snapshot)
}

fn rest(size: usize) -> Outcome<PoolSnapshot> {
    at_rest(size, NEW)
}

/// A full pool. `complete` is its last complete revision, and its template is that of revision `NEW`.
fn at_rest(size: usize, complete: &str) -> Outcome<PoolSnapshot> {
    let now: Timestamp = "2026-01-31T12:00:00Z".parse()?;
    let stored: StoredPool = serde_json::from_value(json!({
        "metadata": {"namespace": "bench", "name": "python", "uid": POOL_UID, "generation": 2},
        "spec": {"replicas": size, "template": template(NEW)},
        "status": {"currentRevision": complete, "updateRevision": NEW},
    }))?;
    let revisions = [(OLD, 1), (NEW, 2)].map(|(hash, number)| {
        Arc::new(Revision {
            key: Key::new("bench", format!("python-{hash}")),
            uid: hash.into(),
            owner: POOL_UID.into(),
            pool: "python".into(),
            hash: hash.into(),
            number,
            template: Arc::new(Template::new(template(hash))),
            change_cause: None,
        })
    });
    let entry = |number| SandboxEntry {
        sandbox: Arc::new(sandbox(number, now)),
        expected: None,
    };
    Ok(PoolSnapshot {
        now,
        seed: 1,
        pool: Arc::new(Pool::read(&stored)),
        sandboxes: (0..size).map(entry).collect(),
        nodes: nodes(now)?,
        creating: Vec::new(),
        claims: Vec::new(),
        selected_pools: BTreeMap::new(),
        revisions: revisions.into(),
        status_write: None,
        status_written_at: None,
        revision_request: RevisionProgress::Idle,
        creation: Creation::Open,
        creation_proven: true,
        failures: BTreeMap::new(),
        recent_claims: Vec::new(),
        disruption_budgets: BudgetSnapshot::default(),
        demand: None,
        sizing: None,
    })
}

/// The nodes of the cluster, in three zones.
fn nodes(now: Timestamp) -> Outcome<KnownNodes> {
    let node = |number: usize| -> Outcome<_> {
        let name = format!("node-{number}");
        let labels = json!({"topology.kubernetes.io/zone": format!("zone-{}", number % 3)});
        let stored = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}}))?;
        Ok((name.into(), Arc::new(Node::read(&stored, None, now))))
    };
    Ok(KnownNodes {
        access: NodeAccess::Listed,
        nodes: (0..NODES).map(node).collect::<Outcome<_>>()?,
        ..KnownNodes::default()
    })
}

fn template(image: &str) -> serde_json::Value {
    json!({"spec": {"containers": [{"name": "sandbox", "image": image}]}})
}

/// An available sandbox. As in a cluster, names and ages do not follow the order of the list.
fn sandbox(number: usize, now: Timestamp) -> Sandbox {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let age = SignedDuration::from_secs(i64::try_from(mixed % 3600).unwrap_or_default());
    let created = now.checked_sub(age).unwrap_or(now);
    Sandbox {
        key: Key::new("bench", format!("python-{mixed:016x}")),
        uid: format!("{mixed:016x}-uid").into(),
        resource_version: number.to_string().into(),
        pool: "python".into(),
        revision: NEW.into(),
        state: labels::WARM.into(),
        owner: Owner::Pool { uid: POOL_UID.into() },
        owner_index: 0,
        created,
        terminating: false,
        evict: false,
        allows_disruption: false,
        disruption_deadline: None,
        chosen_on: SmolStr::default(),
        phase: PodPhase::Running,
        node: Some(format!("node-{}", mixed % NODES).into()),
        scheduling: Scheduling::Unknown,
        tolerations: Tolerations::default(),
        disruption_target: None,
        ip: "10.0.0.1".into(),
        ready_index: Some(3),
        ready_since: Some(created),
        ready_changed: Some(created),
        deletion_cost: 0,
        restarts: 0,
        not_running_reason: None,
        not_running_detail: Box::default(),
        labels: BTreeMap::new(),
        finalizers: Vec::new(),
        annotated: false,
    }
}

fn claim(number: usize, now: Timestamp) -> Outcome<Waiting> {
    let stored: StoredClaim = serde_json::from_value(json!({
        "metadata": {
            "namespace": "bench", "name": format!("run-{number}"), "uid": format!("claim-uid-{number}"),
            "resourceVersion": number.to_string(), "creationTimestamp": now.to_string(),
        },
        "spec": {"poolRef": {"name": "python"}},
    }))?;
    let claim = Arc::new(Claim::read(&stored, u64::try_from(number)?, now));
    Ok(Waiting {
        resolved_spec: claim.resolved_spec(None),
        is_new: false,
        held: 0,
        binding: 0,
        busy: false,
        retry_at: None,
        is_rejected: false,
        rejected_sandboxes: Arc::default(),
        claim,
    })
}
