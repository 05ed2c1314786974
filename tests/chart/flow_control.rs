//! Checks that with `flowControl` bindings stay fast while another client floods the API server.

use crate::api::{ACCOUNTS, Api, CLAIMS, PODS, POOLS};
use crate::cluster::Recorded;
use crate::objects::{claim, pool};
use crate::plane::{CHART, Plane, TEAM};
use crate::wait::{ensure, until};
use jiff::SignedDuration;
use serde_json::json;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The schema of all ServiceAccounts. The flood comes under it, and so does the operator without the chart's own schema.
const OTHERS: &str = "service-accounts";
const OURS: &str = "warmpool";
/// Requests that the flood has under way at any time: several for each that the API server runs at once.
const FLOOD: usize = 60;
const CLAIMS_MADE: usize = 6;
/// Beside the flood the operator may renew its lease so late that it loses one with the usual times.
const LONG_LEASE: &str = "leaderElection.leaseDuration=120s,leaderElection.renewDeadline=100s";
/// How much faster the usual binding with a queue of its own is than the usual one without. Beside the flood a binding waits
/// twice, once for each of its writes, for a seat that the flood leaves, which takes a second or more. In its own queue it waits
/// for none, so it takes as long as at rest: some tens of milliseconds, on a busy machine a few times that. The slowest one says
/// less, because the API server may stand still for as long as a flood lasts.
const FASTER: i32 = 4;
/// A read that asks for a version that the API server has not seen waits for it, three seconds. So the flood fills the server
/// without work for the processors, which would slow down the operator in any queue.
const UNSEEN: &str = "?resourceVersionMatch=NotOlderThan&resourceVersion=9000000000000000000";

/// The sum of a metric of API priority and fairness over all series of a flow schema.
fn metric(plane: &Plane, name: &str, schema: &str) -> Result<f64, String> {
    let metrics = plane.cluster.kubectl(&["get", "--raw", "/metrics"], None)?;
    let (start, of_schema) = (
        format!("apiserver_flowcontrol_{name}{{"),
        format!("flow_schema=\"{schema}\""),
    );
    let series = metrics
        .lines()
        .filter(|line| line.starts_with(&start) && line.contains(&of_schema));
    Ok(series
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum())
}

/// A client of an account that may read the pods of the team.
fn reader(plane: &Plane) -> Result<Api, String> {
    let name = "flood";
    let account = json!({"metadata": {"name": name}});
    plane.api.create(ACCOUNTS, TEAM, &account)?;
    let subject = format!("--serviceaccount={TEAM}:{name}");
    let bind = [
        "-n",
        TEAM,
        "create",
        "rolebinding",
        name,
        "--clusterrole=view",
        &subject,
    ];
    plane.cluster.kubectl(&bind, None)?;
    let kubeconfig = plane.cluster.dir.join("flood.kubeconfig");
    let written = kubeconfig.to_string_lossy().into_owned();
    plane.cluster.tool(&["token", TEAM, name, "--out", &written])?;
    Api::connect(&kubeconfig, plane.api.runtime())
}

/// How long claims waited, each from the arrival of the claim to the answer that stored it as Bound: times of the API server.
struct Waits(Vec<SignedDuration>);

impl Waits {
    fn median(&self) -> SignedDuration {
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }

    fn slowest(&self) -> SignedDuration {
        self.0.last().copied().unwrap_or_default()
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, slowest) = (self.median().as_millis(), self.slowest().as_millis());
        write!(f, "{median} ms in the median and {slowest} ms at most")
    }
}

/// Makes claims, one after the other.
fn bind(plane: &Plane, prefix: &str) -> Result<Waits, String> {
    let names: Vec<String> = (0..CLAIMS_MADE)
        .map(|number| format!("{prefix}-{number}"))
        .collect();
    for name in &names {
        plane.create(CLAIMS, &claim(name, "python", &json!({})))?;
        plane.sandbox_of(name)?;
    }
    // A claim may be read as Bound before the audit log has the answer to that write.
    until("the audit log had the answers for each claim", 10, || {
        waits(plane, &names)
    })
}

/// How long these claims waited, according to the audit log.
fn waits(plane: &Plane, names: &[String]) -> Result<Waits, String> {
    let audit = plane.cluster.audit(TEAM)?;
    let answered = |name: &str, verb: &str, resource: &str| -> Result<&Recorded, String> {
        // Where the server stood still, it may have said of a request that it failed, and carried it out.
        let found = audit
            .iter()
            .rfind(|write| write.name == name && write.verb == verb && write.resource == resource);
        found.ok_or_else(|| format!("the audit log has no {verb} of {resource} {name}"))
    };
    let waits = names.iter().map(|name| {
        let made = answered(name, "create", "sandboxclaims")?;
        let bound = answered(name, "update", "sandboxclaims/status")?;
        Ok(bound.answered.duration_since(made.at))
    });
    let mut waits = waits.collect::<Result<Vec<_>, String>>()?;
    waits.sort();
    Ok(Waits(waits))
}

/// What the API server did with requests while it was flooded.
#[derive(Debug)]
struct Served {
    /// Requests under the operator's own schema.
    ours: f64,
    /// Seconds that requests waited in queues: those under the operator's schema, and those of all other accounts.
    ours_waited: f64,
    others_waited: f64,
}

impl Served {
    fn so_far(plane: &Plane) -> Result<Self, String> {
        let waited = "request_wait_duration_seconds_sum";
        Ok(Self {
            ours: metric(plane, "dispatched_requests_total", OURS)?,
            ours_waited: metric(plane, waited, OURS)?,
            others_waited: metric(plane, waited, OTHERS)?,
        })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            ours: self.ours - before.ours,
            ours_waited: self.ours_waited - before.ours_waited,
            others_waited: self.others_waited - before.others_waited,
        }
    }
}

/// Makes claims while `flood` fills the API server and its queue.
fn bind_in_flood(plane: &Plane, flood: &Api, prefix: &str) -> Result<(Waits, Served), String> {
    let over = AtomicBool::new(false);
    let path = format!("{}{UNSEEN}", PODS.path(TEAM));
    let queued = || -> Result<(), String> {
        let waiting = metric(plane, "current_inqueue_requests", OTHERS)?;
        ensure(waiting >= FLOOD as f64 / 2.0, || {
            format!("{waiting} of {FLOOD} wait")
        })
    };
    let before = Served::so_far(plane)?;
    let bound = thread::scope(|scope| {
        for _ in 0..FLOOD {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    // The answer is that the version is not there, or that there are too many requests.
                    _ = flood.runtime().block_on(flood.call_async("GET", &path, None));
                }
            });
        }
        let bound = until("the flood waited in its queue", 30, queued)
            .and_then(|()| bind(plane, prefix))
            .and_then(|waits| queued().map(|()| waits));
        over.store(true, Ordering::SeqCst);
        bound
    })?;
    Ok((bound, Served::so_far(plane)?.since(&before)))
}

pub fn bindings_stay_fast_while_another_client_floods_the_server(plane: &Plane) -> Result<(), String> {
    plane.install(CHART, &["--create-namespace", "--set", LONG_LEASE])?;
    plane.team()?;
    let mut operator = plane.operator()?;
    let replicas = i64::try_from(2 * CLAIMS_MADE).map_err(|e| e.to_string())?;
    plane.create(POOLS, &pool("python", replicas, &json!({})))?;
    plane.available("python", replicas)?;
    let flood = reader(plane)?;
    let quiet = bind(plane, "quiet")?;
    plane.available("python", replicas)?;
    let (shared, without) = bind_in_flood(plane, &flood, "shared")?;
    plane.available("python", replicas)?;
    let enable = ["--reuse-values", "--set", "flowControl.enabled=true"];
    plane.upgrade(CHART, &enable)?;
    // The operator renews its lease every few seconds.
    until("the API server knew the operator's own queue", 30, || {
        let served = metric(plane, "dispatched_requests_total", OURS)?;
        ensure(served > 0.0, || format!("{served} requests were served"))
    })?;
    let (own, with) = bind_in_flood(plane, &flood, "own")?;
    eprintln!(
        "a claim waited {quiet} at rest; in the flood {shared} without flowControl ({without:?}), and {own} with it ({with:?})"
    );
    operator.lives()?;
    ensure(without.others_waited > 0.0 && with.others_waited > 0.0, || {
        format!("the flood waited in no queue: {without:?}, {with:?}")
    })?;
    // Two writes bind a claim, and its sandbox is replaced.
    let least = 3.0 * CLAIMS_MADE as f64;
    ensure(with.ours >= least, || {
        format!(
            "only {} requests were served under the operator's own schema",
            with.ours
        )
    })?;
    ensure(own.median() * FASTER < shared.median(), || {
        format!("in the flood a claim waited {shared} without flowControl, and with it {own}")
    })?;
    plane.nothing_was_forbidden()?;
    operator.stop()
}
