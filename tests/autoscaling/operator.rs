//! An autoscaled pool in virtual time: the real planner decides, and every write is carried out at once.

use crate::arrivals::Arrivals;
use crate::figures::Figures;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use smol_str::SmolStr;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use warmpool::api::{PoolStatus, labels};
use warmpool::cache::pod_disruption_budget_snapshot::BudgetSnapshot;
use warmpool::cache::snapshot::{Creation, PoolSnapshot, RevisionProgress, SandboxEntry};
use warmpool::cache::waiting_claim::Waiting;
use warmpool::model::Key;
use warmpool::model::claim::Claim;
use warmpool::model::demand::Demand;
use warmpool::model::known_nodes::KnownNodes;
use warmpool::model::pool::Pool;
use warmpool::model::revision::Revision;
use warmpool::model::sandbox::{Owner, PodPhase, Sandbox};
use warmpool::model::scheduling::Scheduling;
use warmpool::model::stored::{StoredClaim, StoredPool};
use warmpool::model::toleration::Tolerations;
use warmpool::planner::autoscale::at_chosen_size;
use warmpool::planner::{Plan, Step, plan};

const UID: &str = "pool-uid";

/// The pool, its pods and the claims that wait.
pub struct Operator {
    pub now: f64,
    pub warm_up: f64,
    /// The stored pool. Its status is what a restarted operator knows.
    pub pool: Arc<Pool>,
    pub demand: Option<Arc<Demand>>,
    unclaimed: BTreeMap<SmolStr, Arc<Sandbox>>,
    /// When pods become Ready, in order.
    starting: VecDeque<(f64, SmolStr)>,
    waiting: VecDeque<Waiting>,
    revisions: Vec<Arc<Revision>>,
    wake: Option<f64>,
    seed: u64,
    /// Statuses that were written.
    pub status_writes: usize,
    pub figures: Figures,
}

impl Operator {
    /// A pool with these fields of `autoscaling`, whose sandboxes take `warm_up` seconds to start.
    pub fn new(replicas: usize, autoscaling: Value, warm_up: f64) -> Self {
        let stored: StoredPool = serde_json::from_value(json!({
            "metadata": {"namespace": "default", "name": "python", "uid": UID, "generation": 1},
            "spec": {
                "replicas": replicas, "autoscaling": autoscaling,
                "template": {"spec": {"containers": [{"name": "main", "image": "image:1"}]}},
            },
        }))
        .unwrap();
        let mut operator = Self {
            now: 0.0,
            warm_up,
            pool: Arc::new(Pool::read(&stored)),
            demand: None,
            unclaimed: BTreeMap::new(),
            starting: VecDeque::new(),
            waiting: VecDeque::new(),
            revisions: Vec::new(),
            wake: None,
            seed: 0,
            status_writes: 0,
            figures: Figures::default(),
        };
        operator.step(None);
        operator
    }

    /// Serves the claims, and runs until `end`. Figures count from `from` on.
    pub fn run(&mut self, arrivals: &Arrivals, from: f64, end: f64) {
        for at in arrivals.iter().copied().chain([end]) {
            while let Some(next) = self.next_event().filter(|next| *next < at) {
                self.advance(next, from);
                self.step(None);
            }
            self.advance(at, from);
            if at < end {
                let hit = self.step(Some(at));
                if at >= from {
                    self.figures.claim(hit);
                }
            }
        }
    }

    /// Another operator takes over. It knows what is stored.
    pub fn restart(&mut self) {
        self.demand = None;
    }

    pub fn size(&self) -> usize {
        usize::try_from(self.pool.status.desired_replicas).unwrap()
    }

    pub fn status(&self) -> &PoolStatus {
        &self.pool.status
    }

    fn next_event(&self) -> Option<f64> {
        let ready = self.starting.front().map(|(at, _)| *at);
        [ready, self.wake].into_iter().flatten().reduce(f64::min)
    }

    fn advance(&mut self, to: f64, from: f64) {
        let counted = to - self.now.max(from);
        if counted > 0.0 {
            self.figures
                .pass(counted, self.size(), self.unclaimed.len() - self.starting.len());
        }
        self.figures.sample(to, self.size());
        self.now = to;
        while self.starting.front().is_some_and(|(at, _)| *at <= to) {
            let (_, name) = self.starting.pop_front().unwrap();
            // A pod that was deleted while it started.
            if let Some(pod) = self.unclaimed.get(&name) {
                let mut pod = Sandbox::clone(pod);
                let now = timestamp(to);
                (pod.phase, pod.ready_index) = (PodPhase::Running, Some(0));
                (pod.ready_since, pod.ready_changed) = (Some(now), Some(now));
                self.unclaimed.insert(name, Arc::new(pod));
            }
        }
    }

    /// Plans until nothing is left to do, with a claim that arrives now if there is one. Returns whether that claim was
    /// bound at once.
    fn step(&mut self, arrival: Option<f64>) -> bool {
        let mut arrived = arrival.map(|at| {
            self.seed += 1;
            let claim = self.claim(at);
            self.waiting.push_back(claim);
            format!("c{}", self.seed)
        });
        let name = arrived.take();
        loop {
            let plan = plan(&at_chosen_size(self.snapshot()));
            self.demand.clone_from(&plan.demand);
            self.waiting.iter_mut().for_each(|waiting| waiting.is_new = false);
            if plan.revisions.store.is_some() {
                self.store_revision(&plan);
            }
            plan.actions.iter().for_each(|action| self.apply(&action.step));
            if plan.status != self.pool.status {
                self.status_writes += 1;
                Arc::make_mut(&mut self.pool).status = plan.status;
            }
            self.wake = plan.next.map(seconds);
            if plan.actions.is_empty() {
                break;
            }
        }
        name.is_some_and(|name| self.waiting.iter().all(|waiting| waiting.claim.key.name != name))
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::CreatePod { name, revision } => {
                let pod = Arc::new(sandbox(name, revision, timestamp(self.now)));
                self.unclaimed.insert(name.clone(), pod);
                self.starting.push_back((self.now + self.warm_up, name.clone()));
            }
            Step::DeletePod { sandbox } => {
                self.unclaimed.remove(&sandbox.key.name);
                self.starting.retain(|(_, name)| *name != sandbox.key.name);
            }
            Step::BindClaim { claim, sandbox } => {
                self.unclaimed.remove(&sandbox.key.name);
                self.waiting.retain(|waiting| waiting.claim.uid != claim.uid);
            }
            other => panic!("{other:?}"),
        }
    }

    fn claim(&self, at: f64) -> Waiting {
        let stored: StoredClaim = serde_json::from_value(json!({
            "metadata": {
                "namespace": "default", "name": format!("c{}", self.seed), "uid": format!("c{}", self.seed),
                "resourceVersion": "1",
            },
            "spec": {"poolRef": {"name": "python"}},
        }))
        .unwrap();
        let claim = Arc::new(Claim::read(&stored, self.seed, timestamp(at)));
        Waiting {
            resolved_spec: claim.resolved_spec(Some(&self.pool.claim_defaults)),
            is_new: true,
            held: 0,
            binding: 0,
            busy: false,
            retry_at: None,
            is_rejected: false,
            rejected_sandboxes: Arc::default(),
            claim,
        }
    }

    fn store_revision(&mut self, plan: &Plan) {
        let update = &plan.revisions.update;
        self.revisions.push(Arc::new(Revision {
            key: Key::new("default", format!("python-{}", update.hash)),
            uid: "revision".into(),
            owner: UID.into(),
            pool: "python".into(),
            hash: update.hash.clone(),
            number: 1,
            template: Arc::clone(&update.template),
            change_cause: None,
        }));
    }

    fn snapshot(&mut self) -> PoolSnapshot {
        self.seed += 1;
        PoolSnapshot {
            now: timestamp(self.now),
            seed: self.seed,
            pool: Arc::clone(&self.pool),
            sandboxes: self
                .unclaimed
                .values()
                .map(|sandbox| SandboxEntry {
                    sandbox: Arc::clone(sandbox),
                    expected: None,
                })
                .collect(),
            creating: Vec::new(),
            claims: self.waiting.iter().cloned().collect(),
            selected_pools: BTreeMap::new(),
            revisions: self.revisions.clone(),
            status_write: None,
            status_written_at: None,
            revision_request: RevisionProgress::Idle,
            creation: Creation::Open,
            creation_proven: true,
            failures: BTreeMap::new(),
            recent_claims: Vec::new(),
            nodes: KnownNodes::default(),
            disruption_budgets: BudgetSnapshot::default(),
            demand: self.demand.clone(),
            sizing: None,
        }
    }
}

fn sandbox(name: &SmolStr, revision: &str, now: Timestamp) -> Sandbox {
    Sandbox {
        key: Key::new("default", name.clone()),
        uid: name.clone(),
        resource_version: "1".into(),
        pool: "python".into(),
        revision: revision.into(),
        state: labels::WARM.into(),
        owner: Owner::Pool { uid: UID.into() },
        owner_index: 0,
        created: now,
        terminating: false,
        evict: false,
        phase: PodPhase::Pending,
        node: Some("node-1".into()),
        ip: SmolStr::default(),
        ready_index: None,
        ready_since: None,
        ready_changed: None,
        deletion_cost: 0,
        restarts: 0,
        not_running_reason: None,
        not_running_detail: Box::default(),
        scheduling: Scheduling::Unknown,
        tolerations: Tolerations::default(),
        disruption_target: None,
        allows_disruption: false,
        disruption_deadline: None,
        chosen_on: SmolStr::default(),
        labels: BTreeMap::new(),
        finalizers: Vec::new(),
        annotated: false,
    }
}

fn timestamp(seconds: f64) -> Timestamp {
    let passed = SignedDuration::from_secs_f64(seconds);
    "2026-01-31T12:00:00Z".parse::<Timestamp>().unwrap() + passed
}

fn seconds(at: Timestamp) -> f64 {
    at.duration_since(timestamp(0.0)).as_secs_f64()
}
