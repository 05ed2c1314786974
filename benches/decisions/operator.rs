//! One operator with its events, timers and answers, on simulated time.

use crate::Outcome;
use crate::api_server::{ApiServer, Event, Kind};
use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::request_limits::Sent;
use warmpool::cache::stale_answers::WatchProgress;
use warmpool::controllers::{claim, pool};
use warmpool::model::Key;
use warmpool::model::request::{Answer, Outcome as Answered, Request};
use warmpool::model::sandbox_state::SandboxState;
use warmpool::model::stored::{StoredClaim, StoredPod, StoredPool, StoredRevision};
use warmpool::planner::plan_pace::postponed;
use warmpool::telemetry::metrics::Metrics;

const POOL: &str = "python";

/// What happens next.
enum Next {
    Event(Event),
    Answer(Box<Sent>, Option<String>, WatchProgress),
    Wake(ReconcileRequest),
    Claim(String),
    Release(String),
}

pub struct Operator {
    index: Index,
    metrics: Metrics,
    api_server: ApiServer,
    now: Timestamp,
    timeline: BTreeMap<(Timestamp, u64), Next>,
    number: u64,
    /// The timer of each object.
    wakes: BTreeMap<String, (Timestamp, u64)>,
    /// Processor time of the operator.
    pub spent: Duration,
    /// Of `spent`, the time of the reconciles of the pool.
    pub planning: Duration,
    /// Plans of the pool.
    pub plans: usize,
}

impl Operator {
    /// An operator, a pool of `replicas`, and `others` further pools, all of which have just been created.
    pub fn new(replicas: usize, others: usize, in_others: usize) -> Outcome<Self> {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse()?;
        let mut operator = Self {
            index: Index::default(),
            metrics: Metrics::default(),
            api_server: ApiServer::default(),
            now,
            timeline: BTreeMap::new(),
            number: 0,
            wakes: BTreeMap::new(),
            spent: Duration::ZERO,
            planning: Duration::ZERO,
            plans: 0,
        };
        let names = (0..others).map(|number| (format!("other-{number}"), in_others));
        for (name, replicas) in std::iter::once((POOL.to_string(), replicas)).chain(names) {
            let template = json!({"spec": {"containers": [{"name": "sandbox", "image": "image:1"}]}});
            let pool =
                json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "template": template}});
            operator.api_server.create(Kind::Pool, pool, now)?;
        }
        operator.take_events();
        Ok(operator)
    }

    /// `count` claims arrive, `every` so often, and each is deleted `held` later.
    pub fn claim(&mut self, count: usize, every: Duration, held: Duration) -> Outcome<()> {
        let mut at = self.now;
        for number in 0..count {
            at = at.checked_add(SignedDuration::try_from(every)?)?;
            let end = at.checked_add(SignedDuration::try_from(held)?)?;
            let name = format!("run-{number}");
            self.add(at, Next::Claim(name.clone()));
            self.add(end, Next::Release(name));
        }
        Ok(())
    }

    /// Runs until nothing is left to do.
    pub fn run(&mut self) -> Outcome<()> {
        while let Some(((at, _), next)) = self.timeline.pop_first() {
            self.now = at;
            let claim = |name: &str| json!({"metadata": {"name": name}, "spec": {"poolRef": {"name": POOL}}});
            match next {
                Next::Claim(name) => {
                    self.api_server.create(Kind::Claim, claim(&name), at)?;
                }
                Next::Release(name) => self.api_server.release(&name, at),
                Next::Event(event) => {
                    let began = used();
                    let due = self.show(&event)?;
                    self.reconcile(due, began)?;
                }
                Next::Answer(sent, text, before) => {
                    let began = used();
                    let outcome = answer(&sent.request, text.as_deref())?;
                    self.index.requests.answered(&sent);
                    let due = self.index.take_over(&sent.request, outcome, before, at);
                    self.reconcile(due, began)?;
                }
                Next::Wake(object) => self.reconcile(vec![object], used())?,
            }
            self.take_events();
        }
        Ok(())
    }

    /// Fails unless `size` sandboxes are available and the status of the pool says so.
    pub fn is_full(&self, size: usize) -> Outcome<()> {
        let key = Key::new("bench", POOL);
        let pool = self.index.pool(&key).ok_or("no pool")?;
        let rule = &pool.spec.availability_rule;
        let states = self
            .index
            .pod_keys()
            .into_iter()
            .filter_map(|key| self.index.pod(&key));
        let available = states
            .filter(|s| s.pool == POOL && s.state_at(&pool.uid, rule, self.now) == SandboxState::Available);
        let (available, said) = (available.count(), pool.status.available);
        if (available, usize::try_from(said)?) == (size, size) && self.index.expectations.is_empty() {
            return Ok(());
        }
        Err(format!("{available} of {size} are available, the status says {said}").into())
    }

    /// Forgets what was measured so far.
    pub fn forget_times(&mut self) {
        (self.spent, self.planning, self.plans) = (Duration::ZERO, Duration::ZERO, 0);
    }

    fn show(&mut self, event: &Event) -> Outcome<Vec<ReconcileRequest>> {
        let (index, text) = (&mut self.index, event.text.as_str());
        Ok(match (event.kind, event.gone) {
            (Kind::Pool, false) => {
                let pool: StoredPool = decode(text)?;
                let metadata = &pool.metadata;
                let known = index.pool(&Key::new("bench", metadata.name.as_deref().unwrap_or_default()));
                if known.is_some_and(|known| {
                    metadata.resource_version.as_deref() == Some(&known.resource_version)
                }) {
                    return Ok(Vec::new());
                }
                index.apply_pool(&pool)
            }
            (Kind::Pool, true) => index.delete_pool(&decode(text)?),
            (Kind::Claim, false) => {
                let claim: StoredClaim = decode(text)?;
                if index.knows_claim(&claim) {
                    return Ok(Vec::new());
                }
                index.apply_claim(&claim, true, self.now)
            }
            (Kind::Claim, true) => index.delete_claim(&decode(text)?),
            (Kind::Pod, false) => index.apply_pod(&decode::<StoredPod>(text)?),
            (Kind::Pod, true) => index.delete_pod(&decode(text)?),
            (Kind::Revision, false) => index.apply_revision(&decode::<StoredRevision>(text)?),
            (Kind::Revision, true) => index.delete_revision(&decode(text)?),
        })
    }

    /// Reconciles what is due and what follows from that, then serves the requests.
    fn reconcile(&mut self, mut due: Vec<ReconcileRequest>, began: Duration) -> Outcome<()> {
        while let Some(object) = due.pop() {
            due.retain(|other| *other != object);
            let committed = match &object {
                ReconcileRequest::Pool(key) => {
                    let is_planned = postponed(&self.index, key, self.now).is_none();
                    let began = used();
                    let committed =
                        pool::decide_in_turn(&mut self.index, key, self.now, self.number, &self.metrics);
                    if is_planned {
                        self.plans += 1;
                        self.planning += used() - began;
                    }
                    committed
                }
                ReconcileRequest::Claim(key) => claim::decide(&mut self.index, key, self.now),
                ReconcileRequest::FailedWrites => return Err("a write failed".into()),
            };
            due.extend(committed.to_reconcile);
            self.set_timer(object, committed.next);
        }
        let sent: Vec<Sent> = std::iter::from_fn(|| self.index.requests.take_next()).collect();
        self.spent += used() - began;
        for sent in sent {
            let before = self.index.watch_progress();
            let (at, text) = self.api_server.serve(&sent.request, self.now)?;
            // The answer comes a moment before the event.
            self.add(at, Next::Answer(Box::new(sent), text, before));
        }
        Ok(())
    }

    /// One timer for each object, as a controller of kube-rs keeps them. Those more than a minute away never come.
    fn set_timer(&mut self, object: ReconcileRequest, next: Option<Timestamp>) {
        let name = format!("{object:?}");
        if let Some(known) = self.wakes.remove(&name) {
            self.timeline.remove(&known);
        }
        let soon = |at: &Timestamp| at.duration_since(self.now) < SignedDuration::from_mins(1);
        if let Some(at) = next.filter(soon) {
            let at = at.max(self.now);
            let key = self.add(at, Next::Wake(object));
            self.wakes.insert(name, key);
        }
    }

    fn take_events(&mut self) {
        for event in std::mem::take(&mut self.api_server.events) {
            self.add(event.at, Next::Event(event));
        }
    }

    fn add(&mut self, at: Timestamp, next: Next) -> (Timestamp, u64) {
        self.number += 1;
        self.timeline.insert((at, self.number), next);
        (at, self.number)
    }
}

fn decode<K: DeserializeOwned>(text: &str) -> Outcome<K> {
    Ok(serde_json::from_str(text)?)
}

fn answer(request: &Request, text: Option<&str>) -> Outcome<Answered> {
    let text = text.ok_or("no answer")?;
    Ok(Ok(match request {
        Request::WritePod(_) | Request::CreatePod(_) => Answer::Pod(Box::new(decode(text)?)),
        Request::WriteClaim(_) => Answer::Claim(Box::new(decode(text)?)),
        Request::WritePool(_) => Answer::Pool(Box::new(decode(text)?)),
        _ => Answer::Revision(Box::new(decode(text)?)),
    }))
}

/// Processor time of this thread.
pub fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}
