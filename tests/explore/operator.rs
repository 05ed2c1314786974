//! One operator: its index, the events on their way to it, what it has to reconcile, and its requests in flight.

use crate::api_server::{ApiServer, Event, Kind};
use crate::object::Object;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use warmpool::cache::expectations::EXPECTATION_TIMEOUT;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::request_limits::Sent;
use warmpool::cache::snapshot::{RevisionProgress, SandboxRead};
use warmpool::cache::stale_answers::WatchProgress;
use warmpool::cache::synced_cache::is_complete;
use warmpool::cache::watch::{Indexed, take_over_list};
use warmpool::controllers::commit::Committed;
use warmpool::controllers::{claim, pool, retry_loop};
use warmpool::model::Key;
use warmpool::model::request::{Outcome, PodChange, Request, RevisionStep};
use warmpool::model::retry::ObjectWrite;
use warmpool::model::stored;
use warmpool::model::stored::{
    StoredClaim, StoredNode, StoredPod, StoredPodTemplate, StoredPool, StoredRevision,
};
use warmpool::telemetry::metrics::Metrics;

thread_local! {
    static METRICS: Metrics = Metrics::default();
}

/// What is to be reconciled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Due {
    Pool(String),
    Claim(String),
    FailedWrites,
}

impl From<ReconcileRequest> for Due {
    fn from(request: ReconcileRequest) -> Self {
        match request {
            ReconcileRequest::Pool(key) => Self::Pool(key.name.to_string()),
            ReconcileRequest::Claim(key) => Self::Claim(key.name.to_string()),
            ReconcileRequest::FailedWrites => Self::FailedWrites,
        }
    }
}

/// What a request was decided on.
#[derive(Clone, Debug)]
pub struct Decision {
    pub at: Timestamp,
    /// The index after the decision.
    pub known: Arc<Index>,
    /// Bindings that the API server had made by then.
    pub bindings: usize,
}

/// A request that was sent, and its outcome once the API server has served it.
#[derive(Clone, Debug)]
pub struct InFlight {
    pub sent: Sent,
    /// How far the watches had got when it was sent.
    pub before: WatchProgress,
    pub decision: Decision,
    pub outcome: Option<Outcome>,
}

impl InFlight {
    pub fn request(&self) -> &Request {
        &self.sent.request
    }
}

/// The request changes nothing.
pub fn is_read(request: &Request) -> bool {
    match request {
        Request::ReadPod(_) | Request::ReadLostPod(..) | Request::ReadClaim(_) => true,
        Request::Revision(request) => matches!(request.step, RevisionStep::Read { .. }),
        _ => false,
    }
}

/// The request binds a pod to a claim.
pub fn binds(request: &Request) -> bool {
    matches!(request, Request::WritePod(write) if matches!(write.change, PodChange::Bind { .. }))
}

/// What the operator's steps need to know of the world.
#[derive(Clone, Copy)]
pub struct Moment {
    pub now: Timestamp,
    pub seed: u64,
    pub bindings: usize,
}

/// The operator after a decision, and what follows.
struct Decided {
    index: Index,
    committed: Committed,
    sent: Vec<Sent>,
}

#[derive(Clone, Debug, Default)]
pub struct Operator {
    pub index: Arc<Index>,
    /// Events not delivered yet, of each kind that has been listed.
    pub inbox: BTreeMap<Kind, VecDeque<Event>>,
    pub due: BTreeSet<Due>,
    wakes: BTreeMap<Due, Timestamp>,
    pub in_flight: Vec<Arc<InFlight>>,
    /// Writes on pods that failed and may be sent again. The decision stays the same.
    pub failed: Vec<Arc<InFlight>>,
    /// What a reconcile sends a request for, as far as that is known and nothing has changed since.
    busy: BTreeSet<Due>,
}

impl Operator {
    /// The index, to be changed.
    fn index_mut(&mut self) -> &mut Index {
        self.busy.clear();
        Arc::make_mut(&mut self.index)
    }

    /// An operator that has just started. Where there are no PodTemplates, they are listed at once; where there are no nodes,
    /// nothing is known of them.
    pub fn started(has_templates: bool, has_nodes: bool) -> Self {
        let mut operator = Self::default();
        if !has_nodes {
            operator.inbox.insert(Kind::Nodes, VecDeque::new());
        }
        if !has_templates {
            operator.inbox.insert(Kind::Templates, VecDeque::new());
        }
        operator
    }

    /// So many watches have listed that the operator plans.
    pub fn is_up(&self) -> bool {
        is_complete(self.inbox.len())
    }

    fn note(&mut self, to_reconcile: impl IntoIterator<Item = ReconcileRequest>) {
        self.due.extend(to_reconcile.into_iter().map(Due::from));
    }

    /// When time alone has something to be reconciled.
    pub fn wakes(&self) -> impl Iterator<Item = (&Due, Timestamp)> {
        let expectations = &self.index.expectations;
        let none_failed =
            expectations.failed_writes().is_empty() && expectations.failed_creations().is_empty();
        let wakes = self.wakes.iter().map(|(due, at)| (due, *at));
        wakes.filter(move |(due, _)| **due != Due::FailedWrites || !none_failed)
    }

    /// A request for this object failed and is due again.
    pub fn retries(&self, due: &Due) -> bool {
        let index = &self.index;
        let key = |name: &String| Key::new("default", name);
        let failed = |write: &ObjectWrite| write.tries.is_some();
        match due {
            Due::Pool(name) => index
                .pool(&key(name))
                .and_then(|pool| index.pool_memory(&pool))
                .is_some_and(|memory| {
                    let revision = &memory.revision_request;
                    memory.status_write.as_ref().is_some_and(failed)
                        || matches!(
                            revision,
                            RevisionProgress::Failed(..) | RevisionProgress::TrimFailed(_)
                        )
                }),
            Due::Claim(name) => index
                .claim(&key(name))
                .and_then(|claim| index.claim_memory(&claim))
                .is_some_and(|memory| {
                    let mut reads = memory.reads.values();
                    memory.write.as_deref().is_some_and(failed)
                        || reads.any(|read| matches!(read, SandboxRead::Again(_)))
                }),
            Due::FailedWrites => true,
        }
    }

    /// A complete list of a kind. Events that were on their way never arrive.
    pub fn list(&mut self, kind: Kind, api_server: &ApiServer, now: Timestamp) {
        let index = self.index_mut();
        match kind {
            Kind::Pools => take_over_list(index, listed::<StoredPool>(api_server, kind)),
            Kind::Claims => take_over_list(index, listed::<StoredClaim>(api_server, kind)),
            Kind::Pods => take_over_list(index, listed::<StoredPod>(api_server, kind)),
            Kind::Revisions => take_over_list(index, listed::<StoredRevision>(api_server, kind)),
            Kind::Templates => take_over_list(index, listed::<StoredPodTemplate>(api_server, kind)),
            // The watch takes the time from the clock.
            Kind::Nodes => {
                let nodes = listed::<StoredNode>(api_server, kind);
                StoredNode::retain(
                    index,
                    &nodes.iter().map(|node| stored::key(&node.metadata)).collect(),
                );
                for node in &nodes {
                    index.apply_node(node, now);
                }
            }
        }
        self.inbox.insert(kind, VecDeque::new());
        if self.is_up() {
            let all = self.index.all();
            self.note(all);
        }
    }

    /// The next event of a kind.
    pub fn deliver(&mut self, kind: Kind, now: Timestamp) {
        let Some(event) = self.inbox.get_mut(&kind).and_then(VecDeque::pop_front) else {
            return;
        };
        let index = self.index_mut();
        let to_reconcile = match kind {
            Kind::Pools => show(index, &event, StoredPool::apply),
            // The watch takes the time from the clock.
            Kind::Claims => show(index, &event, |claim: &StoredClaim, index, live| {
                if index.knows_claim(claim) {
                    return Vec::new();
                }
                index.apply_claim(claim, live, now)
            }),
            Kind::Pods => show(index, &event, StoredPod::apply),
            Kind::Revisions => show(index, &event, StoredRevision::apply),
            Kind::Templates => show(index, &event, StoredPodTemplate::apply),
            Kind::Nodes => show(index, &event, |node: &StoredNode, index, _| {
                index.apply_node(node, now)
            }),
        };
        self.note(to_reconcile);
    }

    /// Time has passed: what was waited for may be due.
    pub fn wake_up(&mut self, now: Timestamp) {
        self.busy.clear();
        let (woken, asleep) = std::mem::take(&mut self.wakes)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, at)| *at <= now);
        self.due.extend(woken.into_keys());
        self.wakes = asleep;
    }

    fn decide(&self, due: &Due, moment: Moment) -> Decided {
        let mut index = Index::clone(&self.index);
        let key = |name: &String| Key::new("default", name);
        let committed = match due {
            _ if !self.is_up() => Committed::default(),
            Due::Pool(name) => {
                METRICS.with(|metrics| pool::decide(&mut index, &key(name), moment.now, moment.seed, metrics))
            }
            Due::Claim(name) => claim::decide(&mut index, &key(name), moment.now),
            Due::FailedWrites => retry_loop::decide(&mut index, moment.now),
        };
        let sent = next_requests(&mut index);
        Decided {
            index,
            committed,
            sent,
        }
    }

    /// Reconciles one object. Returns the requests that it sent.
    pub fn reconcile(&mut self, due: &Due, moment: Moment) -> Vec<Request> {
        let decided = self.decide(due, moment);
        self.commit(due, decided, moment)
    }

    /// Reconciles one object, unless that sends any request but those `left_out`. Returns whether it did.
    pub fn reconcile_if_idle(
        &mut self,
        due: &Due,
        moment: Moment,
        left_out: impl Fn(&Request) -> bool,
    ) -> bool {
        if self.busy.contains(due) {
            return false;
        }
        let decided = self.decide(due, moment);
        let is_idle = decided.sent.iter().all(|sent| left_out(&sent.request));
        if is_idle {
            self.commit(due, decided, moment);
        } else {
            self.busy.insert(due.clone());
        }
        is_idle
    }

    fn commit(&mut self, due: &Due, decided: Decided, moment: Moment) -> Vec<Request> {
        self.busy.clear();
        self.index = Arc::new(decided.index);
        self.due.remove(due);
        self.wakes.remove(due);
        if let Some(next) = decided.committed.next {
            self.wakes.insert(due.clone(), next);
        }
        self.note(decided.committed.to_reconcile);
        let requests = decided.sent.iter().map(|sent| sent.request.clone()).collect();
        self.send(decided.sent, moment);
        requests
    }

    fn send(&mut self, sent: Vec<Sent>, moment: Moment) {
        for sent in sent {
            let failed = self
                .failed
                .iter()
                .position(|failed| is_same(failed.request(), &sent.request));
            let decision = match failed {
                Some(position) => self.failed.remove(position).decision.clone(),
                None => Decision {
                    at: moment.now,
                    known: Arc::clone(&self.index),
                    bindings: moment.bindings,
                },
            };
            self.in_flight.push(Arc::new(InFlight {
                before: self.index.watch_progress(),
                sent,
                decision,
                outcome: None,
            }));
        }
    }

    /// The outcome of a request in flight arrives.
    pub fn take_over(&mut self, number: usize, outcome: Outcome, moment: Moment) {
        let in_flight = self.in_flight.remove(number);
        let may_follow = outcome.is_err();
        let index = self.index_mut();
        index.requests.answered(&in_flight.sent);
        let to_reconcile = index.take_over(in_flight.request(), outcome, in_flight.before, moment.now);
        let sent = next_requests(index);
        self.note(to_reconcile);
        if may_follow {
            self.failed.push(in_flight);
        }
        let index = Arc::make_mut(&mut self.index);
        self.failed.retain(|failed| is_expected(index, failed.request()));
        self.send(sent, moment);
    }

    /// A write was answered long ago and the watch has not shown it.
    pub fn has_overdue(&self) -> bool {
        !self.index.expectations.clone().overdue(late()).is_empty()
    }

    /// Reads the pods with a write that the watch has not shown in time.
    pub fn read_overdue(&mut self, moment: Moment) {
        let index = self.index_mut();
        for pod in index.expectations.overdue(late()) {
            index.requests.push(Request::ReadPod(pod), true);
        }
        let sent = next_requests(index);
        self.send(sent, moment);
    }
}

/// When every write that was answered by now is overdue.
fn late() -> Instant {
    Instant::now() + EXPECTATION_TIMEOUT
}

fn next_requests(index: &mut Index) -> Vec<Sent> {
    std::iter::from_fn(|| index.requests.take_next()).collect()
}

/// The second request sends the write of the first again.
fn is_same(first: &Request, second: &Request) -> bool {
    match (first, second) {
        (Request::WritePod(first), Request::WritePod(second)) => Arc::ptr_eq(first, second),
        (Request::CreatePod(first), Request::CreatePod(second)) => Arc::ptr_eq(first, second),
        _ => false,
    }
}

/// The index still expects the write of a request.
fn is_expected(index: &mut Index, request: &Request) -> bool {
    match request {
        Request::WritePod(write) => index.expectations.of(write).is_some(),
        Request::CreatePod(creation) => index.expectations.creation(&creation.pod).is_some(),
        _ => false,
    }
}

fn decoded<K: DeserializeOwned>(object: &Object) -> K {
    serde_json::from_str(&object.text).unwrap()
}

fn listed<K: DeserializeOwned>(api_server: &ApiServer, kind: Kind) -> Vec<K> {
    api_server.list(kind).map(|object| decoded(object)).collect()
}

fn show<K: Indexed>(
    index: &mut Index,
    event: &Event,
    apply: impl Fn(&K, &mut Index, bool) -> Vec<ReconcileRequest>,
) -> Vec<ReconcileRequest> {
    let object: K = decoded(&event.object);
    if event.gone {
        object.delete(index)
    } else {
        apply(&object, index, true)
    }
}
