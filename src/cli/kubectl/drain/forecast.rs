//! Forecasts a drain: plans each pool again and again as if its replacements had become available.

use crate::api::claim::Disruption;
use crate::api::labels;
use crate::cache::index::Index;
use crate::cache::snapshot::{Creation, PoolSnapshot, SandboxEntry};
use crate::model::Key;
use crate::model::node::Node;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::stored::StoredNode;
use crate::planner::{self, Step};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::sync::Arc;

/// The node of the replacements: any other.
const ELSEWHERE: &str = "another node";
/// A forecast of more plans than this is worth nothing.
const MAX_PLANS: usize = 10_000;
/// The step in which a pool is planned again when nobody knows how long its sandboxes take to warm up.
const UNMEASURED: SignedDuration = SignedDuration::from_secs(1);

/// What a drain of a node does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// The node.
    pub node: String,
    /// The sandboxes there, in the order in which they go; those that do not go are last.
    pub sandboxes: Vec<Row>,
}

/// One sandbox of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Namespace and name of the pod.
    pub pod: Key,
    /// Its pool.
    pub pool: String,
    /// The claim that owns it.
    pub claim: Option<String>,
    /// The round of replacements that lets it go; 0: it waits for none.
    pub round: Option<usize>,
    /// How long after the cordon it goes, as far as that can be known.
    pub after: Option<SignedDuration>,
    /// What happens to it, for a person.
    pub outcome: String,
    /// The drain does not end before somebody does something about it.
    pub blocks: bool,
}

impl Forecast {
    /// The drain does not end by itself.
    pub fn blocks(&self) -> bool {
        self.sandboxes.iter().any(|row| row.blocks)
    }

    /// How long the drain takes; `None` if it does not end, or nobody knows how long sandboxes take to warm up.
    pub fn takes(&self) -> Option<SignedDuration> {
        let all: Option<Vec<_>> = self.sandboxes.iter().map(|row| row.after).collect();
        all.map(|all| all.into_iter().max().unwrap_or_default())
            .filter(|_| !self.blocks())
    }
}

/// Cordons `node` in `index` and forecasts what follows from `now` on.
pub fn forecast(index: &mut Index, mut node: StoredNode, now: Timestamp) -> Forecast {
    let name = node.metadata.name.clone().unwrap_or_default();
    node.spec.unschedulable = Some(true);
    index.apply_node(&node, now);
    let here = |sandbox: &Sandbox| sandbox.node.as_deref() == Some(name.as_str()) && !sandbox.terminating;
    let mut sandboxes = Vec::new();
    for key in index.pool_keys() {
        let Some(snapshot) = planner::pool_snapshot(index, &key, now, 0) else {
            continue;
        };
        if snapshot.sandboxes.iter().any(|entry| here(&entry.sandbox)) {
            sandboxes.extend(unclaimed(snapshot, &name));
        }
    }
    let pods = index.pod_keys();
    let pods = pods.iter().filter_map(|key| index.pod(key));
    sandboxes.extend(
        pods.filter(|pod| here(pod))
            .filter_map(|pod| claimed(index, &pod, now)),
    );
    sandboxes.sort_by(|a, b| {
        let order = |row: &Row| (row.blocks, row.after.is_none(), row.after, row.round);
        order(a).cmp(&order(b))
    });
    Forecast {
        node: name,
        sandboxes,
    }
}

/// Plans a pool until none of its unclaimed sandboxes is on the node. Replacements become available as fast as its
/// sandboxes did.
fn unclaimed(mut snapshot: PoolSnapshot, node: &str) -> Vec<Row> {
    let begin = snapshot.now;
    let measured = warm_up(&snapshot);
    let elsewhere = StoredNode {
        metadata: name_of(ELSEWHERE),
        ..StoredNode::default()
    };
    let elsewhere = Arc::new(Node::read(&elsewhere, None, begin));
    snapshot.nodes.nodes.insert(ELSEWHERE.into(), elsewhere);
    snapshot.claims.clear();
    snapshot.creating.clear();
    snapshot.creation = Creation::Open;
    snapshot.creation_proven = true;
    let mut rows = Vec::new();
    let mut round = 0;
    for _ in 0..MAX_PLANS {
        if left_on(&snapshot, node).next().is_none() {
            break;
        }
        let plan = planner::plan(&snapshot);
        let mut made = Vec::new();
        let mut gone = 0;
        for action in &plan.actions {
            match &action.step {
                Step::CreatePod { name, revision } => made.extend(replacement(&snapshot, name, revision)),
                Step::DeletePod { sandbox } | Step::DrainPod { sandbox } => {
                    gone += 1;
                    if sandbox.node.as_deref() == Some(node) {
                        let after = measured.map(|_| snapshot.now.duration_since(begin));
                        rows.push(row(sandbox, round, after, action.reason));
                    }
                    snapshot
                        .sandboxes
                        .retain(|entry| entry.sandbox.uid != sandbox.uid);
                }
                Step::RestorePod { .. } | Step::BindClaim { .. } | Step::FailClaim { .. } => {}
            }
        }
        let pause = match (made.is_empty(), gone, plan.next) {
            (false, ..) => {
                round += 1;
                measured.unwrap_or(UNMEASURED)
            }
            (true, 0, Some(next)) => next.duration_since(snapshot.now),
            (true, 0, None) => break,
            (true, ..) => SignedDuration::ZERO,
        };
        snapshot.now = snapshot.now.checked_add(pause).unwrap_or(Timestamp::MAX);
        let min_ready = snapshot.pool.spec.availability_rule.min_ready;
        let ready = snapshot.now.checked_sub(min_ready).unwrap_or(Timestamp::MIN);
        snapshot
            .sandboxes
            .extend(made.into_iter().map(|sandbox| SandboxEntry {
                sandbox: Arc::new(Sandbox {
                    ready_since: Some(ready),
                    ready_changed: Some(ready),
                    ..sandbox
                }),
                expected: None,
            }));
    }
    rows.extend(left_on(&snapshot, node).map(|sandbox| Row {
        round: None,
        after: None,
        outcome:
            "stays: the pool makes no replacement; 'kubectl warmpool why' says what holds the pool".into(),
        blocks: true,
        ..row(sandbox, 0, None, "")
    }));
    rows
}

fn left_on<'a>(snapshot: &'a PoolSnapshot, node: &'a str) -> impl Iterator<Item = &'a Arc<Sandbox>> {
    let sandboxes = snapshot.sandboxes.iter().map(|entry| &entry.sandbox);
    sandboxes.filter(move |sandbox| {
        let is_ours = matches!(&sandbox.owner, Owner::Pool { uid } if *uid == snapshot.pool.uid);
        is_ours && !sandbox.terminating && sandbox.node.as_deref() == Some(node)
    })
}

fn row(sandbox: &Sandbox, round: usize, after: Option<SignedDuration>, reason: &str) -> Row {
    let outcome = match round {
        0 => format!("deleted ({reason})"),
        _ => format!("deleted once replaced ({reason})"),
    };
    Row {
        pod: sandbox.key.clone(),
        pool: sandbox.pool.to_string(),
        claim: None,
        round: Some(round),
        after,
        outcome,
        blocks: false,
    }
}

/// A sandbox like one that exists, on another node.
fn replacement(snapshot: &PoolSnapshot, name: &str, revision: &str) -> Option<Sandbox> {
    let like = snapshot.sandboxes.iter().map(|entry| &entry.sandbox);
    let like = like
        .filter(|sandbox| sandbox.state == labels::WARM)
        .max_by_key(|s| s.ready_since)?;
    Some(Sandbox {
        key: Key::new(snapshot.key().namespace.clone(), name),
        uid: name.into(),
        revision: revision.into(),
        node: Some(ELSEWHERE.into()),
        created: snapshot.now,
        evict: false,
        disruption_target: None,
        ..Sandbox::clone(like)
    })
}

/// How long the unclaimed sandboxes of a pool took to become Ready: the median.
fn warm_up(snapshot: &PoolSnapshot) -> Option<SignedDuration> {
    let sandboxes = snapshot.sandboxes.iter().map(|entry| &entry.sandbox);
    let unclaimed = sandboxes.filter(|sandbox| sandbox.state == labels::WARM);
    let took = |sandbox: &Arc<Sandbox>| Some(sandbox.ready_since?.duration_since(sandbox.created));
    let mut all: Vec<_> = unclaimed.filter_map(took).collect();
    all.sort_unstable();
    let median = all.get(all.len() / 2)?;
    // The API server stores whole seconds.
    Some((*median).max(UNMEASURED) + snapshot.pool.spec.availability_rule.min_ready)
}

/// What happens to a claimed sandbox; `None` for one that no claim owns.
fn claimed(index: &Index, sandbox: &Sandbox, now: Timestamp) -> Option<Row> {
    let Owner::Claim { name, .. } = &sandbox.owner else {
        return None;
    };
    let key = Key::new(sandbox.key.namespace.clone(), name.clone());
    let snapshot = index.claim_snapshot(&key, now)?;
    let spec = &snapshot.resolved_spec;
    let (after, outcome) = match spec.disruption {
        // No budget holds for a pod that has ended.
        _ if sandbox.finished() => (Some(SignedDuration::ZERO), "evicted (it has ended)".to_string()),
        Disruption::Allow => (
            Some(SignedDuration::ZERO),
            "evicted (disruption Allow)".to_string(),
        ),
        Disruption::Notify => {
            let grace = sandbox.disruption_deadline.map(|at| at.duration_since(now));
            let after = grace.unwrap_or(spec.disruption_grace).max(SignedDuration::ZERO);
            (
                Some(after),
                "evicted after its grace (disruption Notify)".to_string(),
            )
        }
        Disruption::Block => {
            let end = snapshot.claim.lets_go(spec);
            let end = end.unwrap_or_else(|| "is deleted".into());
            (
                None,
                format!("blocks the drain until the claim {end} (disruption Block)"),
            )
        }
    };
    Some(Row {
        pod: sandbox.key.clone(),
        pool: sandbox.pool.to_string(),
        claim: Some(name.to_string()),
        round: after.map(|_| 0),
        blocks: after.is_none(),
        after,
        outcome,
    })
}

fn name_of(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        ..Default::default()
    }
}
