//! One operator: its index, the events on their way to it, what it has to look at, and its tasks.

use crate::lab::{self, Answered, Bench, Met, Outcome};
use crate::object::Object;
use crate::request::{Answer, Request};
use crate::server::{Event, Kind, Server};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use warmpool::cache::expectations::EXPECTATION_TIMEOUT;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::shared::KINDS;
use warmpool::cache::watch::{Indexed, take_over_list};
use warmpool::executor::task::Task;
use warmpool::model::Key;
use warmpool::model::stored::{StoredClaim, StoredPod, StoredPool, StoredRevision};

/// An object that is to be looked at again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Due {
    Pool(String),
    Claim(String),
}

impl Due {
    fn trigger(&self) -> ReconcileRequest {
        match self {
            Self::Pool(name) => ReconcileRequest::Pool(Key::new("default", name)),
            Self::Claim(name) => ReconcileRequest::Claim(Key::new("default", name)),
        }
    }
}

impl From<ReconcileRequest> for Due {
    fn from(trigger: ReconcileRequest) -> Self {
        match trigger {
            ReconcileRequest::Pool(key) => Self::Pool(key.name),
            ReconcileRequest::Claim(key) => Self::Claim(key.name),
        }
    }
}

/// A request under way, with its answer once the API server has carried it out.
#[derive(Clone, Debug)]
pub struct Open {
    pub number: usize,
    pub request: Request,
    pub answer: Option<Answer>,
}

/// A task under way.
#[derive(Clone, Debug)]
pub struct Running {
    pub task: Task,
    /// What the task met at its start.
    pub begun: Met,
    pub answers: Vec<Answered>,
    pub open: Vec<Open>,
    /// The claim that is not looked at again before the end of the task.
    pub holds: Option<String>,
    /// Bindings that the API server had carried out when the task was started.
    pub bindings_before: usize,
}

/// What the operator's steps need to know of the world.
#[derive(Clone, Copy)]
pub struct Moment {
    pub now: Timestamp,
    pub seed: u64,
    pub bindings: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Operator {
    pub index: Arc<Index>,
    /// Events not delivered yet, of each kind that has been listed.
    pub inbox: BTreeMap<Kind, VecDeque<Event>>,
    pub due: BTreeSet<Due>,
    pub wakes: BTreeMap<Due, Timestamp>,
    pub running: Vec<Arc<Running>>,
    /// How often own writes have been unseen for too long: each time is that much later than the one before.
    settled: u32,
    /// What a look at it would start something for, as far as that is known and nothing has changed since.
    busy: BTreeSet<Due>,
}

impl Operator {
    fn synced(&self) -> usize {
        // PodTemplates, of which there are none, are listed at once.
        self.inbox.len() + (KINDS - Kind::ALL.len())
    }

    /// The index, to be changed.
    fn index_mut(&mut self) -> &mut Index {
        self.busy.clear();
        Arc::make_mut(&mut self.index)
    }

    fn bench(&mut self, moment: Moment) -> Bench<'_> {
        self.busy.clear();
        Bench {
            synced: self.synced(),
            index: Arc::make_mut(&mut self.index),
            now: moment.now,
            seed: moment.seed,
        }
    }

    pub fn is_up(&self) -> bool {
        self.inbox.len() == Kind::ALL.len()
    }

    fn note(&mut self, to_reconcile: impl IntoIterator<Item = ReconcileRequest>) {
        self.due.extend(to_reconcile.into_iter().map(Due::from));
    }

    /// A complete list of a kind. What was on its way is never told.
    pub fn list(&mut self, kind: Kind, server: &Server) {
        let index = self.index_mut();
        match kind {
            Kind::Pools => take_over_list(index, listed::<StoredPool>(server, kind)),
            Kind::Claims => take_over_list(index, listed::<StoredClaim>(server, kind)),
            Kind::Pods => take_over_list(index, listed::<StoredPod>(server, kind)),
            Kind::Revisions => take_over_list(index, listed::<StoredRevision>(server, kind)),
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
            Kind::Pools => told(index, &event, StoredPool::apply),
            Kind::Claims => told(index, &event, |claim: &StoredClaim, index, _| {
                index.apply_claim(claim, true, now)
            }),
            Kind::Pods => told(index, &event, StoredPod::apply),
            Kind::Revisions => told(index, &event, StoredRevision::apply),
        };
        self.note(to_reconcile);
    }

    /// Looks at one object, unless that starts any task but those `left_out`. Answers the tasks that it started.
    pub fn look_if_idle(
        &mut self,
        due: &Due,
        moment: Moment,
        left_out: impl Fn(&Task) -> bool,
    ) -> Option<Vec<Task>> {
        if self.busy.contains(due) {
            return None;
        }
        let mut index = Index::clone(&self.index);
        let bench = Bench {
            index: &mut index,
            synced: self.synced(),
            now: moment.now,
            seed: moment.seed,
        };
        let outcome = lab::reconcile(bench, &due.trigger());
        if !outcome.started.iter().chain(&outcome.awaited).all(left_out) {
            self.busy.insert(due.clone());
            return None;
        }
        self.busy.clear();
        self.index = Arc::new(index);
        Some(self.follow(due, outcome, moment))
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

    /// Looks at one object. Answers the tasks that it started.
    pub fn reconcile(&mut self, due: &Due, moment: Moment) -> Vec<Task> {
        let outcome = lab::reconcile(self.bench(moment), &due.trigger());
        self.follow(due, outcome, moment)
    }

    /// What follows from a look at an object.
    fn follow(&mut self, due: &Due, mut outcome: Outcome, moment: Moment) -> Vec<Task> {
        self.due.remove(due);
        self.wakes.remove(due);
        if let Some(next) = outcome.next {
            self.wakes.insert(due.clone(), next);
        }
        let mut started = outcome.started.clone();
        if let (Some(task), Due::Claim(name)) = (outcome.awaited.take(), due) {
            started.push(task.clone());
            self.begin(task, Some(name.clone()), moment);
        }
        self.take_over(outcome, moment);
        started
    }

    fn take_over(&mut self, outcome: Outcome, moment: Moment) {
        self.note(outcome.to_reconcile);
        for task in outcome.started {
            self.begin(task, None, moment);
        }
    }

    fn met(&self, moment: Moment) -> Met {
        Met {
            index: Arc::clone(&self.index),
            now: moment.now,
        }
    }

    fn begin(&mut self, task: Task, holds: Option<String>, moment: Moment) {
        let running = Running {
            task,
            begun: self.met(moment),
            answers: Vec::new(),
            open: Vec::new(),
            holds,
            bindings_before: moment.bindings,
        };
        if running.task.waits() {
            self.running.push(Arc::new(running));
        } else {
            self.go_on(running, moment);
        }
    }

    /// Leads a task to its next requests, or to its end.
    fn go_on(&mut self, mut running: Running, moment: Moment) {
        let progress = lab::run(
            self.bench(moment),
            &running.begun,
            &running.task,
            &running.answers,
        );
        let mut known = std::mem::take(&mut running.open).into_iter().peekable();
        for (number, request) in progress.open {
            let open = known.next_if(|open| open.number == number).unwrap_or(Open {
                number,
                request,
                answer: None,
            });
            running.open.push(open);
        }
        if !progress.done {
            self.running.push(Arc::new(running));
        }
        self.take_over(progress.outcome, moment);
    }

    /// The answer to a request of a task arrives.
    pub fn answer(&mut self, task: usize, open: usize, answer: Answer, moment: Moment) {
        let mut running = Running::clone(&self.running.remove(task));
        let open = running.open.remove(open);
        running.answers.push(Answered {
            number: open.number,
            answer,
            met: self.met(moment),
        });
        self.go_on(running, moment);
    }

    /// The wait of a task is over.
    pub fn wake(&mut self, task: usize, moment: Moment) {
        let running = Running::clone(&self.running.remove(task));
        self.go_on(running, moment);
    }

    /// Own writes have been unseen for too long.
    pub fn settle(&mut self, moment: Moment) {
        self.settled += 1;
        let late = Instant::now() + self.settled * EXPECTATION_TIMEOUT;
        for pod in self.index_mut().expectations.overdue(late) {
            self.begin(Task::LiveRead { pod }, None, moment);
        }
    }
}

fn decoded<K: DeserializeOwned>(object: &Object) -> K {
    serde_json::from_str(&object.text).unwrap()
}

fn listed<K: DeserializeOwned>(server: &Server, kind: Kind) -> Vec<K> {
    server.list(kind).map(|object| decoded(object)).collect()
}

fn told<K: Indexed>(
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
