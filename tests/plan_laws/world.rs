//! Builds a small world of one pool, plans it and applies the plans.

use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use warmpool::api::{PoolStatus, labels};
use warmpool::cache::pod_disruption_budget_snapshot::BudgetSnapshot;
use warmpool::cache::recent_claims::LATELY;
use warmpool::cache::snapshot::{Creation, PoolSnapshot, RevisionProgress, SandboxEntry, WarmUpFailures};
use warmpool::cache::waiting_claim::Waiting;
use warmpool::model::Key;
use warmpool::model::claim::Claim;
use warmpool::model::demand::Demand;
use warmpool::model::known_nodes::KnownNodes;
use warmpool::model::pool::Pool;
use warmpool::model::pool_error::PoolError;
use warmpool::model::revision::{Revision, Template};
use warmpool::model::sandbox::{Owner, PodPhase, Sandbox};
use warmpool::model::scheduling::Scheduling;
use warmpool::model::stored::{StoredClaim, StoredPool};
use warmpool::model::toleration::Tolerations;
use warmpool::planner;
use warmpool::planner::revise::Store;
use warmpool::planner::{Plan, PlanPhase, Step};

pub const POOL_UID: &str = "pool-uid";

/// One pool, its pods, claims and revisions, as the API server holds them.
#[derive(Clone, Debug)]
pub struct World {
    pub now: Timestamp,
    pub spec: Value,
    pub status: Value,
    pub generation: i64,
    pub change_cause: Option<String>,
    pub sandboxes: BTreeMap<SmolStr, Sandbox>,
    pub nodes: KnownNodes,
    pub claims: BTreeMap<SmolStr, Claim>,
    pub revisions: Vec<Arc<Revision>>,
    pub creation: Creation,
    pub failures: BTreeMap<String, WarmUpFailures>,
    /// When this operator wrote the status last.
    pub status_written_at: Option<Timestamp>,
    pub recent_claims: Vec<Timestamp>,
    /// The PodDisruptionBudgets, as far as the operator knows.
    pub budgets: BudgetSnapshot,
    /// What this operator remembers of the demand.
    pub demand: Option<Arc<Demand>>,
    /// UIDs of the claims that a plan of any operator has counted.
    pub counted: BTreeSet<SmolStr>,
    /// The PodTemplate that the pool names, or why it cannot be used. `None` means an inline template.
    pub pod_template: Option<Result<Arc<Template>, PoolError>>,
    pub counter: u64,
}

impl World {
    /// An empty pool of `replicas`, with `fields` merged into its spec.
    pub fn new(replicas: usize, fields: Value) -> Self {
        let mut spec = json!({
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "main", "image": "image:1"}]}},
        });
        merge(&mut spec, fields);
        Self {
            now: "2026-01-31T12:00:00Z".parse().unwrap(),
            spec,
            status: Value::Null,
            generation: 1,
            change_cause: None,
            sandboxes: BTreeMap::new(),
            nodes: KnownNodes::default(),
            claims: BTreeMap::new(),
            revisions: Vec::new(),
            creation: Creation::Open,
            failures: BTreeMap::new(),
            status_written_at: None,
            recent_claims: Vec::new(),
            budgets: BudgetSnapshot::default(),
            demand: None,
            counted: BTreeSet::new(),
            pod_template: None,
            counter: 0,
        }
    }

    /// A pool of `replicas` after it has converged.
    pub fn full(replicas: usize, fields: Value) -> Self {
        let mut world = Self::new(replicas, fields);
        world.converge();
        world
    }

    pub fn set(&mut self, fields: Value) -> &mut Self {
        merge(&mut self.spec, fields);
        self.generation += 1;
        self
    }

    pub fn set_image(&mut self, image: &str) -> &mut Self {
        self.set(json!({"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}))
    }

    pub fn pool(&self) -> Pool {
        let cause = self.change_cause.iter();
        let annotations: BTreeMap<_, _> = cause.map(|c| ("kubernetes.io/change-cause", c)).collect();
        let metadata = json!({
            "namespace": "default", "name": "python", "uid": POOL_UID,
            "generation": self.generation, "resourceVersion": "1",
            "annotations": annotations,
        });
        let stored = json!({"metadata": metadata, "spec": self.spec, "status": self.status});
        let pool = Pool::read(&serde_json::from_value::<StoredPool>(stored).unwrap());
        match &self.pod_template {
            Some(template) => pool.with_template(template.clone()),
            None => pool,
        }
    }

    pub fn claim(&mut self, name: &str, fields: Value) -> &mut Self {
        self.counter += 1;
        let mut spec = json!({"poolRef": {"name": "python"}});
        merge(&mut spec, fields);
        let stored = json!({
            "metadata": {
                "namespace": "default", "name": name, "uid": format!("{name}-{}", self.counter),
                "resourceVersion": "1", "creationTimestamp": whole_seconds(self.now).to_string(),
            },
            "spec": spec,
        });
        let stored: StoredClaim = serde_json::from_value(stored).unwrap();
        self.claims
            .insert(name.into(), Claim::read(&stored, self.counter, self.now));
        self
    }

    /// Adds an unclaimed sandbox of `revision`, and applies `change` after it is Running and Ready.
    pub fn sandbox(&mut self, name: &str, revision: &str, change: impl FnOnce(&mut Sandbox)) -> &mut Self {
        let mut sandbox = self.warming(name, revision);
        self.make_ready(&mut sandbox);
        change(&mut sandbox);
        self.sandboxes.insert(name.into(), sandbox);
        self
    }

    pub fn make_ready(&self, sandbox: &mut Sandbox) {
        sandbox.phase = PodPhase::Running;
        let node = sandbox.node.take().or_else(|| Some(self.free_node()?.into()));
        sandbox.node = node.or_else(|| Some("node-1".into()));
        sandbox.ready_index = Some(0);
        sandbox.ready_since = Some(self.now);
        sandbox.ready_changed = Some(self.now);
    }

    pub fn warming(&mut self, name: &str, revision: &str) -> Sandbox {
        self.counter += 1;
        Sandbox {
            key: Key::new("default", name),
            uid: format!("uid-{}", self.counter).into(),
            resource_version: self.counter.to_string().into(),
            pool: "python".into(),
            revision: revision.into(),
            state: labels::WARM.into(),
            owner: Owner::Pool { uid: POOL_UID.into() },
            owner_index: 0,
            created: self.now,
            terminating: false,
            evict: false,
            allows_disruption: false,
            disruption_deadline: None,
            chosen_on: SmolStr::default(),
            phase: PodPhase::Pending,
            node: None,
            scheduling: Scheduling::Unknown,
            tolerations: Tolerations::default(),
            disruption_target: None,
            ip: SmolStr::default(),
            ready_index: None,
            ready_since: None,
            ready_changed: None,
            deletion_cost: 0,
            restarts: 0,
            not_running_reason: None,
            not_running_detail: Box::default(),
            labels: BTreeMap::new(),
            finalizers: Vec::new(),
            annotated: false,
        }
    }

    pub fn snapshot(&self) -> PoolSnapshot {
        let pool = self.pool();
        let held = |claim: &Claim| {
            let is_owned = |s: &&Sandbox| matches!(&s.owner, Owner::Claim { uid, .. } if *uid == claim.uid);
            let owned = self.sandboxes.values().filter(is_owned);
            owned.filter(|s| !s.terminating && !s.finished()).count()
        };
        planner::autoscale::at_chosen_size(PoolSnapshot {
            now: self.now,
            seed: self.counter,
            selected_pools: BTreeMap::new(),
            sandboxes: self
                .sandboxes
                .values()
                .map(|s| SandboxEntry {
                    sandbox: Arc::new(s.clone()),
                    expected: None,
                })
                .collect(),
            nodes: self.nodes.clone(),
            creating: Vec::new(),
            claims: self
                .claims
                .values()
                .filter(|c| c.waiting())
                .map(|c| Waiting {
                    claim: Arc::new(c.clone()),
                    resolved_spec: c.resolved_spec(Some(&pool.claim_defaults)),
                    is_new: !self.counted.contains(&c.uid),
                    held: held(c),
                    binding: 0,
                    busy: false,
                    retry_at: None,
                    is_rejected: false,
                    rejected_sandboxes: Arc::default(),
                })
                .collect(),
            revisions: self.revisions.clone(),
            status_write: None,
            status_written_at: self.status_written_at,
            pool: Arc::new(pool),
            creation: self.creation.clone(),
            creation_proven: false,
            disruption_budgets: self.budgets.clone(),
            revision_request: RevisionProgress::default(),
            failures: self.failures.clone(),
            recent_claims: self
                .recent_claims
                .iter()
                .copied()
                .filter(|at| self.now.duration_since(*at) < LATELY)
                .collect(),
            demand: self.demand.clone(),
            sizing: None,
        })
    }

    pub fn plan(&self) -> Plan {
        planner::plan(&self.snapshot())
    }

    /// Plans, and applies every action as the API server would.
    pub fn step(&mut self) -> Plan {
        let plan = self.plan();
        self.store(&plan);
        self.failures.clone_from(&plan.failures);
        self.demand.clone_from(&plan.demand);
        self.counted
            .extend(self.claims.values().map(|claim| claim.uid.clone()));
        for action in &plan.actions {
            self.apply(action);
        }
        let status = serde_json::to_value(&plan.status).unwrap();
        if status != self.status {
            self.status_written_at = Some(self.now);
        }
        self.status = status;
        plan
    }

    /// Another operator process takes over. It knows only what is stored.
    pub fn restart(&mut self) {
        self.failures.clear();
        self.recent_claims.clear();
        self.demand = None;
        self.status_written_at = None;
    }

    pub fn store(&mut self, plan: &Plan) {
        let template: Template = (*plan.revisions.update.template).clone();
        match &plan.revisions.store {
            None => {}
            Some(Store::Create(number)) => self.add_revision(&plan.revisions.update.hash, *number, template),
            Some(Store::Renumber(old, number)) => {
                self.revisions.retain(|r| r.hash != old.hash);
                self.add_revision(&old.hash, *number, template);
            }
        }
        self.revisions
            .retain(|r| plan.revisions.trim.iter().all(|t| t.hash != r.hash));
    }

    fn add_revision(&mut self, hash: &str, number: i64, template: Template) {
        self.revisions.push(Arc::new(Revision {
            key: Key::new("default", format!("python-{hash}")),
            uid: format!("revision-{hash}").into(),
            owner: POOL_UID.into(),
            pool: "python".into(),
            hash: hash.into(),
            number,
            template: Arc::new(template),
            change_cause: self.change_cause.clone(),
        }));
    }

    pub fn unclaimed(&self) -> impl Iterator<Item = &Sandbox> {
        self.sandboxes
            .values()
            .filter(|s| matches!(&s.owner, Owner::Pool { uid } if uid == POOL_UID))
    }

    pub fn available(&self) -> usize {
        let availability_rule = self.pool().spec.availability_rule;
        self.unclaimed()
            .filter(|s| {
                s.available_at(&availability_rule)
                    .is_some_and(|at| at <= self.now)
            })
            .count()
    }

    pub fn bound_to(&self, claim: &str) -> Option<&Sandbox> {
        let uid = &self.claims.get(claim)?.uid;
        self.sandboxes
            .values()
            .find(|s| matches!(&s.owner, Owner::Claim { uid: owner, .. } if owner == uid))
    }

    /// The status that the last step wrote.
    pub fn written(&self) -> PoolStatus {
        serde_json::from_value(self.status.clone()).unwrap()
    }

    /// Reason and message of the pool's condition `Progressing`.
    pub fn progressing(&self) -> (String, String) {
        let conditions = self.written().conditions;
        let condition = conditions.iter().find(|c| c.type_ == "Progressing").unwrap();
        (condition.reason.clone(), condition.message.clone())
    }

    /// Revision of the pool's current template.
    pub fn update(&self) -> String {
        self.plan().revisions.update.hash
    }
}

/// A time as the API server stores it.
pub fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap()
}

/// Merges `fields` into `value`. Replaces lists as a whole.
fn merge(value: &mut Value, fields: Value) {
    match (value, fields) {
        (Value::Object(into), Value::Object(fields)) => {
            for (key, field) in fields {
                merge(into.entry(key).or_insert(Value::Null), field);
            }
        }
        (_, Value::Null) => {}
        (into, field) => *into = field,
    }
}

/// The actions of a phase as short lines, such as `DeletePod b OldRevision`.
pub fn lines(plan: &Plan, phase: PlanPhase) -> Vec<String> {
    let of_phase = plan.actions.iter().filter(|a| a.phase == phase);
    of_phase
        .map(|a| match &a.step {
            Step::CreatePod { revision, .. } => format!("CreatePod {revision} {}", a.reason),
            Step::DeletePod { sandbox } => format!("DeletePod {} {}", sandbox.key.name, a.reason),
            Step::DrainPod { sandbox } => format!("DrainPod {} {}", sandbox.key.name, a.reason),
            Step::RestorePod { sandbox } => format!("RestorePod {} {}", sandbox.key.name, a.reason),
            Step::BindClaim { claim, sandbox } => {
                format!("BindClaim {} {}", claim.key.name, sandbox.key.name)
            }
            Step::FailClaim { claim, .. } => format!("FailClaim {} {}", claim.key.name, a.reason),
        })
        .collect()
}
