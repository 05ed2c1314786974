//! Tracks the objects of one namespace at one point of the history.

use super::claim::Claim;
use super::event::{Event, condition, is_ready, items, strings, text};
use super::hooks::all_on;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Who holds a pod, by its controller owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    Nobody,
    Pool(String),
    Claim { name: String, uid: String },
    Other,
}

/// Claims take the sandbox with the greatest of these, of the sandboxes of one revision on one node: deletion cost, longest
/// Ready, fewest restarts, oldest, then name.
pub type Preference = (
    i64,
    Reverse<Option<Timestamp>>,
    Reverse<u64>,
    Reverse<String>,
    String,
);

fn preference(event: &Event) -> Preference {
    let o = &event.object;
    let cost = o["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"].as_str();
    let restarts = items(o, "/status/containerStatuses").iter();
    (
        cost.and_then(|cost| cost.parse().ok()).unwrap_or(0),
        Reverse(is_ready(o).then(|| since(o, event.at))),
        Reverse(restarts.filter_map(|c| c["restartCount"].as_u64()).sum()),
        Reverse(text(o, "/metadata/creationTimestamp").into()),
        event.name().into(),
    )
}

#[derive(Clone, Debug)]
pub struct Pod {
    pub node: String,
    pub preference: Preference,
    pub uid: String,
    pub name: String,
    pub owner: Owner,
    pub pool: String,
    pub revision: String,
    pub state: String,
    pub claim_uid: String,
    pub phase: String,
    pub ready_since: Option<Timestamp>,
    pub gated: bool,
    /// Condition `DisruptionTarget` is True: an eviction sets it just before it deletes the pod.
    pub disrupted: bool,
    pub terminating: bool,
    pub labels: BTreeMap<String, String>,
    pub finalizers: Vec<String>,
}

impl Pod {
    fn read(event: &Event) -> Self {
        let o = &event.object;
        let label = |key: &str| {
            o["metadata"]["labels"][key]
                .as_str()
                .unwrap_or_default()
                .to_string()
        };
        Self {
            node: text(o, "/spec/nodeName").into(),
            preference: preference(event),
            uid: event.uid().into(),
            name: event.name().into(),
            owner: owner(o),
            pool: label("warmpool.dev/pool"),
            revision: label("warmpool.dev/revision"),
            state: label("warmpool.dev/state"),
            claim_uid: label("warmpool.dev/claim-uid"),
            phase: text(o, "/status/phase").into(),
            ready_since: is_ready(o).then(|| since(o, event.at)),
            disrupted: condition(o, "DisruptionTarget").is_some_and(|c| c["status"] == "True"),
            gated: !items(o, "/spec/schedulingGates").is_empty(),
            terminating: !text(o, "/metadata/deletionTimestamp").is_empty(),
            labels: strings(&o["metadata"]["labels"]),
            finalizers: names(o, "/metadata/finalizers"),
        }
    }

    /// Neither going, gone nor ended.
    pub fn is_alive(&self) -> bool {
        !self.terminating && !matches!(self.phase.as_str(), "Failed" | "Succeeded")
    }

    /// The claim that holds it: by owner reference, or else by label. A pool's own pod is no claim's.
    pub fn claim(&self) -> Option<&str> {
        match &self.owner {
            Owner::Claim { uid, .. } => Some(uid),
            Owner::Pool(_) => None,
            _ if !self.claim_uid.is_empty() => Some(&self.claim_uid),
            _ => None,
        }
    }

    /// A sandbox that the pool keeps for claims to come.
    pub fn is_unclaimed(&self, pool: &str) -> bool {
        self.pool == pool && self.state == "warm" && self.owner == Owner::Pool(pool.into())
    }

    /// Unclaimed, and neither going nor gone.
    pub fn counts(&self, pool: &str) -> bool {
        self.is_unclaimed(pool) && self.is_alive()
    }

    /// A sandbox that a claim could take at this moment.
    pub fn is_available(&self, pool: &Pool, now: Timestamp) -> bool {
        let ready_for = self.ready_since.map(|since| now.duration_since(since));
        self.is_fit(pool)
            && ready_for
                .is_some_and(|age| pool.min_ready == 0 || age >= SignedDuration::from_secs(pool.min_ready))
    }

    /// Available as soon as it has been Ready for long enough.
    pub fn is_fit(&self, pool: &Pool) -> bool {
        self.is_unclaimed(&pool.name)
            && !self.terminating
            && self.phase == "Running"
            && self.ready_since.is_some()
            && all_on(&pool.pre_normal, self)
    }

    /// When it has been Ready for long enough.
    pub fn ripe_at(&self, pool: &Pool) -> Option<Timestamp> {
        self.ready_since?
            .checked_add(SignedDuration::from_secs(pool.min_ready))
            .ok()
    }
}

/// The labels and finalizers of a lifecycle hook.
pub type Handlers = (BTreeMap<String, String>, Vec<String>);

fn handlers(hook: &Value) -> Handlers {
    (strings(&hook["labelsHandler"]), names(hook, "/finalizersHandler"))
}

fn names(object: &Value, pointer: &str) -> Vec<String> {
    let all = items(object, pointer).iter();
    all.map(|name| name.as_str().unwrap_or_default().to_string())
        .collect()
}

fn owner(object: &Value) -> Owner {
    let Some(owner) = items(object, "/metadata/ownerReferences")
        .iter()
        .find(|o| o["controller"] == true)
    else {
        return Owner::Nobody;
    };
    match (text(owner, "/kind"), text(owner, "/name")) {
        ("Pool", name) => Owner::Pool(name.into()),
        ("SandboxClaim", name) => Owner::Claim {
            name: name.into(),
            uid: text(owner, "/uid").into(),
        },
        _ => Owner::Other,
    }
}

fn since(pod: &Value, otherwise: Timestamp) -> Timestamp {
    let stamp = condition(pod, "Ready")
        .map(|c| text(c, "/lastTransitionTime"))
        .unwrap_or_default();
    stamp.parse().unwrap_or(otherwise)
}

#[derive(Clone, Debug)]
pub struct Pool {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// What its status said last of the revision of its template, and of the one that was complete last.
    pub update_revision: String,
    pub current_revision: String,
    /// A rollout is under way, or its status does not say yet whether one is.
    pub may_roll: bool,
    pub replicas: i64,
    /// The highest size that autoscaling may choose, and `replicas` without it.
    pub most: i64,
    /// How many may be unavailable in a rollout; with strategy Recreate all.
    pub max_unavailable: i64,
    pub max_surge: i64,
    /// Both come to 0: a surge of 1 or, where `maxTotal` forbids it, one missing.
    pub both_zero: bool,
    pub min_total: i64,
    pub max_total: Option<i64>,
    pub min_ready: i64,
    /// The lifetime, in seconds, of claims that name none.
    pub lifetime: Option<i64>,
    /// What must be on a sandbox before it is available.
    pub pre_normal: Handlers,
    /// What must be off a sandbox before it is deleted.
    pub pre_delete: Handlers,
}

impl Pool {
    /// How many must stay available in a rollout beside `claimed` sandboxes. Where `maxTotal` leaves capacity for fewer
    /// than the replicas, one of those that fit may go.
    pub fn floor(&self, claimed: i64) -> i64 {
        let capacity = self.max_total.map_or(i64::MAX, |max| max - claimed);
        let max_unavailable = if self.both_zero && capacity <= self.replicas {
            self.max_unavailable.max(1)
        } else {
            self.max_unavailable
        };
        let floor = self.replicas - max_unavailable;
        if capacity < self.replicas {
            floor.min(capacity - max_unavailable.min(1))
        } else {
            floor
        }
    }

    fn read(event: &Event) -> Self {
        let spec = &event.object["spec"];
        let replicas = spec["replicas"].as_i64().unwrap_or(0);
        let strategy = &spec["updateStrategy"];
        let max_unavailable = resolved(&strategy["maxUnavailable"], replicas, 0);
        let most = spec["autoscaling"]["maxReplicas"].as_i64().unwrap_or(replicas);
        let max_surge = resolved(&strategy["maxSurge"], most, 99);
        let both_zero = max_unavailable == 0 && max_surge == 0;
        let all_at_once = strategy["type"] == "Recreate";
        Self {
            name: event.name().into(),
            labels: strings(&event.object["metadata"]["labels"]),
            current_revision: text(&event.object, "/status/currentRevision").into(),
            update_revision: text(&event.object, "/status/updateRevision").into(),
            may_roll: {
                let status = &event.object["status"];
                let is_known = status["observedGeneration"] == event.object["metadata"]["generation"];
                !is_known || status["updateRevision"] != status["currentRevision"]
            },
            replicas,
            most,
            max_unavailable: if all_at_once { replicas } else { max_unavailable },
            max_surge: max_surge.max(i64::from(both_zero)),
            both_zero,
            min_total: spec["capacity"]["minTotal"].as_i64().unwrap_or(0),
            max_total: spec["capacity"]["maxTotal"].as_i64(),
            min_ready: spec["minReadySeconds"].as_i64().unwrap_or(0),
            lifetime: spec["claimDefaults"]["lifetimeSeconds"].as_i64(),
            pre_normal: handlers(&spec["lifecycle"]["preNormal"]),
            pre_delete: handlers(&spec["lifecycle"]["preDelete"]),
        }
    }
}

/// A number, or a percentage of `of`, with `up` hundredths more before it is rounded down; anything else is
/// no budget at all.
fn resolved(value: &Value, of: i64, up: i64) -> i64 {
    let percent = value
        .as_str()
        .and_then(|s| s.strip_suffix('%'))
        .and_then(|s| s.parse::<i64>().ok());
    value
        .as_i64()
        .or(percent.map(|p| (of * p + up) / 100))
        .unwrap_or(0)
}

/// The values that a count had, the one in force at the start of the window included.
#[derive(Clone, Debug, Default)]
pub struct Recent(Vec<(Timestamp, i64)>);

impl Recent {
    pub fn push(&mut self, at: Timestamp, value: i64) {
        if self.0.last().is_none_or(|(_, last)| *last != value) {
            self.0.push((at, value));
        }
    }

    /// The values since `from`.
    pub fn since(&self, from: Timestamp) -> impl Iterator<Item = i64> {
        let begun = self.0.partition_point(|(at, _)| *at <= from);
        let values = self.0.iter().skip(begun.saturating_sub(1));
        values.map(|(_, value)| *value)
    }
}

/// Every object that exists, by UID (pools by name).
#[derive(Clone, Debug, Default)]
pub struct World {
    pub pods: BTreeMap<String, Pod>,
    pub claims: BTreeMap<String, Claim>,
    pub pools: BTreeMap<String, Pool>,
}

/// What one event did to one object: before and after, `None` where it does not exist.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Step {
    Pod(Option<Pod>, Option<Pod>),
    Claim(Option<Claim>, Option<Claim>),
    Pool(Option<Pool>),
}

impl World {
    /// What `event` will change; nothing is changed yet.
    pub fn step(&self, event: &Event) -> Step {
        use super::event::{Change, Kind};
        let exists = event.change != Change::Deleted;
        match event.kind {
            Kind::Pod => Step::Pod(
                self.pods.get(event.uid()).cloned(),
                exists.then(|| Pod::read(event)),
            ),
            Kind::Claim => {
                let before = self.claims.get(event.uid());
                Step::Claim(before.cloned(), exists.then(|| Claim::read(event, before)))
            }
            Kind::Pool => Step::Pool(exists.then(|| Pool::read(event))),
        }
    }

    pub fn apply(&mut self, event: &Event, step: Step) {
        match step {
            Step::Pod(_, Some(pod)) => {
                let holder = pod.claim().map(ToString::to_string);
                self.pods.insert(event.uid().into(), pod);
                if let Some(uid) = holder {
                    let held = self.held_by(&uid);
                    if let Some(claim) = self.claims.get_mut(&uid).filter(|c| held >= c.wanted) {
                        claim.served_at.get_or_insert(event.at);
                        claim.first_served.get_or_insert(event.at);
                    }
                }
            }
            Step::Pod(_, None) => {
                if let Some(pod) = self.pods.remove(event.uid()) {
                    self.lost(&pod, event.at);
                }
            }
            Step::Claim(_, Some(claim)) => _ = self.claims.insert(event.uid().into(), claim),
            Step::Claim(_, None) => _ = self.claims.remove(event.uid()),
            Step::Pool(Some(pool)) => _ = self.pools.insert(event.name().into(), pool),
            Step::Pool(None) => _ = self.pools.remove(event.name()),
        }
    }

    /// A claim that lost a pod before its status named all of them is as good as never served.
    fn lost(&mut self, pod: &Pod, now: Timestamp) {
        let Some(uid) = pod.claim() else { return };
        let held = self.held_by(uid);
        if let Some(claim) = self.claims.get_mut(uid).filter(|claim| held < claim.wanted)
            && claim.served_at.take().is_some()
        {
            claim.waits_since = now;
        }
    }

    /// Sandboxes that the claim with that UID holds.
    pub fn held_by(&self, claim: &str) -> usize {
        let pods = self.pods.values();
        pods.filter(|p| p.is_alive() && p.claim() == Some(claim)).count()
    }

    /// Sandboxes that a waiting claim still needs.
    pub fn needs(&self, claim: &Claim) -> usize {
        match claim.wanted {
            1 => 1,
            wanted => wanted.saturating_sub(self.held_by(&claim.uid)),
        }
    }

    pub fn available(&self, pool: &Pool, now: Timestamp) -> i64 {
        count(self.pods.values(), |p| p.is_available(pool, now))
    }

    pub fn unclaimed(&self, pool: &str) -> i64 {
        count(self.pods.values(), |p| p.counts(pool))
    }

    /// Unclaimed pods that are about to be terminated.
    pub fn disrupted(&self, pool: &str) -> i64 {
        count(self.pods.values(), |p| p.counts(pool) && p.disrupted)
    }

    pub fn claimed(&self, pool: &str) -> i64 {
        count(self.pods.values(), |p| {
            p.pool == pool && matches!(p.owner, Owner::Claim { .. }) && !p.terminating
        })
    }

    /// Every pod of the pool, claimed and terminating ones included.
    pub fn total(&self, pool: &str) -> i64 {
        count(self.pods.values(), |p| {
            p.pool == pool || p.owner == Owner::Pool(pool.into())
        })
    }

    /// Sandboxes that undecided claims on the pool, or perhaps on it, ask for.
    pub fn waiting(&self, pool: &Pool) -> i64 {
        let asking = self.claims.values().filter(|c| c.is_undecided());
        let perhaps = |c: &Claim| c.pool.is_empty() && c.accepts(&pool.name, &pool.labels);
        let here = asking.filter(|c| c.pool == pool.name || perhaps(c));
        here.map(|c| i64::try_from(c.wanted).unwrap_or(i64::MAX)).sum()
    }

    /// Whether the pool could ever hold what the claim asks for. Other claims need not wait for a claim that it
    /// cannot serve.
    pub fn can_ever_serve(&self, claim: &Claim) -> bool {
        let wanted = i64::try_from(claim.wanted).unwrap_or(i64::MAX);
        self.pools.get(&claim.pool).is_some_and(|pool| {
            let kept = claim.wanted == 1 || !claim.only_waits || wanted <= pool.most.max(pool.min_total);
            pool.max_total
                .is_none_or(|max| claim.wanted == 1 || wanted <= max)
                && kept
        })
    }
}

fn count<T>(all: impl Iterator<Item = T>, which: impl Fn(&T) -> bool) -> i64 {
    i64::try_from(all.filter(|item| which(item)).count()).unwrap_or(i64::MAX)
}
