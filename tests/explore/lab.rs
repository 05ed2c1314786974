//! Runs the operator's own code, one step at a time. A task is a future and cannot be copied, but it does nothing that
//! what it was started with and its answers do not lead it to. So a task that is under way is kept as these, and is led
//! there again when the next answer comes. Only on the last part of the way are the index and the clock the real ones;
//! before, they are those that the task met there.

use crate::request::{Answer, Request};
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::channel::oneshot;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::{ReconcileRequest, ReconcileSender};
use warmpool::cache::shared::{Inputs, SharedCache};
use warmpool::controllers::context::Context;
use warmpool::controllers::{claim, pool};
use warmpool::executor::Executor;
use warmpool::executor::task::Task;
use warmpool::model::Key;
use warmpool::telemetry::metrics::Metrics;

/// Longer than the pauses between the first tries of a write, and far shorter than the deadline of a request.
const IDLE: Duration = Duration::from_millis(500);

/// A request under way and whom to answer.
type Open = (Request, Option<oneshot::Sender<Answer>>);

thread_local! {
    static OPEN: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
    static NOW: Cell<Timestamp> = const { Cell::new(Timestamp::UNIX_EPOCH) };
    static SEED: Cell<u64> = const { Cell::new(0) };
    static LAB: Lab = Lab::new();
}

/// A runtime whose clock stands still while anything can be done, and a client whose requests wait to be answered.
struct Lab {
    runtime: Runtime,
    client: Client,
    metrics: Metrics,
    /// What earlier steps ran on, by the number of complete watches.
    rigs: RefCell<BTreeMap<usize, Rig>>,
}

impl Lab {
    fn new() -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let guard = runtime.enter();
        let service = tower::service_fn(async |request: http::Request<Body>| serve(request).await);
        let client = Client::new(service, "default");
        drop(guard);
        Self {
            runtime,
            client,
            metrics: Metrics::default(),
            rigs: RefCell::default(),
        }
    }
}

/// Has a step run on a rig that nothing of earlier steps is left in.
fn on_a_rig<T>(bench: &mut Bench, step: impl FnOnce(&Lab, &mut Rig, &mut Bench) -> T) -> T {
    NOW.set(bench.now);
    SEED.set(bench.seed);
    LAB.with(|lab| {
        let idle = lab.rigs.borrow_mut().remove(&bench.synced);
        let mut rig = idle.unwrap_or_else(|| Rig::new(bench.synced, lab));
        let result = step(lab, &mut rig, bench);
        *rig.shared.lock() = Index::default();
        lab.rigs.borrow_mut().insert(bench.synced, rig);
        result
    })
}

async fn serve(request: http::Request<Body>) -> Result<http::Response<Body>, std::io::Error> {
    let (parts, body) = request.into_parts();
    let content_type = parts.headers.get(http::header::CONTENT_TYPE);
    let content_type = content_type.map_or("", |value| value.to_str().unwrap());
    let body = body.collect_bytes().await.unwrap();
    let broken = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let Some(request) = Request::read(&parts.method, parts.uri.path(), content_type, &body) else {
        return Err(broken());
    };
    let (sender, answer) = oneshot::channel();
    OPEN.with_borrow_mut(|open| open.push((request, Some(sender))));
    let answer = answer
        .await
        .ok()
        .filter(|answer| answer.code != 0)
        .ok_or_else(broken)?;
    let body = Body::from(answer.body.text.clone().into_bytes());
    Ok(http::Response::builder().status(answer.code).body(body).unwrap())
}

/// What the operator's code runs on in one step.
pub struct Bench<'a> {
    pub index: &'a mut Index,
    /// Watches that have delivered their first list.
    pub synced: usize,
    pub now: Timestamp,
    pub seed: u64,
}

/// What a task met on a part of its way.
#[derive(Clone, Debug)]
pub struct Met {
    pub index: Arc<Index>,
    pub now: Timestamp,
}

/// The answer to a request of a task, by its number in the order of sending.
#[derive(Clone, Debug)]
pub struct Answered {
    pub number: usize,
    pub answer: Answer,
    /// As the answer came.
    pub met: Met,
}

/// What a step led to.
#[derive(Default)]
pub struct Outcome {
    /// Objects to be looked at again.
    pub to_reconcile: Vec<ReconcileRequest>,
    /// Tasks to be carried out.
    pub started: Vec<Task>,
    /// When time alone will have changed something.
    pub next: Option<Timestamp>,
    /// Of a claim: the task before whose end the claim is not looked at again.
    pub awaited: Option<Task>,
}

/// How far a task is.
pub struct Progress {
    pub outcome: Outcome,
    /// Requests to be answered, by their number in the order of sending.
    pub open: Vec<(usize, Request)>,
    pub done: bool,
}

struct Rig {
    shared: SharedCache,
    context: Context,
    pools: UnboundedReceiver<Key>,
    claims: UnboundedReceiver<Key>,
    started: Arc<Mutex<Vec<Task>>>,
}

impl Rig {
    fn new(synced: usize, lab: &Lab) -> Self {
        let shared = SharedCache::new(Inputs {
            now: || NOW.get(),
            seed: || SEED.get(),
        });
        (0..synced).for_each(|_| shared.watch_synced());
        let ((pools, pool_receiver), (claims, claim_receiver)) = (unbounded(), unbounded());
        let started: Arc<Mutex<Vec<Task>>> = Arc::default();
        let starter = Arc::clone(&started);
        let executor = Executor::new(
            lab.client.clone(),
            shared.clone(),
            ReconcileSender { pools, claims },
            lab.metrics.clone(),
        )
        .handing_tasks_to(move |task| starter.lock().unwrap().push(task));
        let context = Context {
            shared: shared.clone(),
            executor,
        };
        Self {
            shared,
            context,
            pools: pool_receiver,
            claims: claim_receiver,
            started,
        }
    }

    /// Puts the real index in, or takes it out again.
    fn swap(&self, bench: &mut Bench) {
        std::mem::swap(&mut *self.shared.lock(), bench.index);
    }

    fn outcome(&mut self) -> Outcome {
        let pools = std::iter::from_fn(|| self.pools.try_recv().ok()).map(ReconcileRequest::Pool);
        let claims = std::iter::from_fn(|| self.claims.try_recv().ok()).map(ReconcileRequest::Claim);
        Outcome {
            to_reconcile: pools.chain(claims).collect(),
            started: std::mem::take(&mut self.started.lock().unwrap()),
            ..Outcome::default()
        }
    }
}

/// One reconcile: observe, plan, and start what follows.
pub fn reconcile(mut bench: Bench, trigger: &ReconcileRequest) -> Outcome {
    on_a_rig(&mut bench, |lab, rig, bench| {
        let _guard = lab.runtime.enter();
        rig.swap(bench);
        let (awaited, next) = match trigger {
            ReconcileRequest::Pool(key) => (None, pool::step(&rig.context, key, bench.now)),
            ReconcileRequest::Claim(key) => claim::step(&rig.context, key, bench.now),
        };
        rig.swap(bench);
        Outcome {
            next,
            awaited,
            ..rig.outcome()
        }
    })
}

/// Leads a task that met `begun` at its start to where the answers take it.
pub fn run(mut bench: Bench, begun: &Met, task: &Task, answers: &[Answered]) -> Progress {
    let meets = |rig: &Rig, met: &Met| {
        *rig.shared.lock() = Index::clone(&met.index);
        NOW.set(met.now);
    };
    let led = async |rig: &mut Rig, bench: &mut Bench| {
        OPEN.with_borrow_mut(Vec::clear);
        let mut future = task.clone().run(rig.context.executor.clone());
        let mut done = false;
        if answers.is_empty() {
            rig.swap(bench);
        } else {
            meets(rig, begun);
        }
        advance(&mut future, &mut done).await;
        for (position, answered) in answers.iter().enumerate() {
            if position + 1 == answers.len() {
                rig.outcome();
                rig.swap(bench);
                NOW.set(bench.now);
            } else {
                meets(rig, &answered.met);
            }
            let sender = OPEN.with_borrow_mut(|open| open[answered.number].1.take());
            let _ = sender.unwrap().send(answered.answer.clone());
            advance(&mut future, &mut done).await;
        }
        rig.swap(bench);
        let open = OPEN.with_borrow(|open| {
            let open = open
                .iter()
                .enumerate()
                .filter(|(_, (_, sender))| sender.is_some());
            open.map(|(number, (request, _))| (number, request.clone()))
                .collect()
        });
        let outcome = rig.outcome();
        Progress { outcome, open, done }
    };
    on_a_rig(&mut bench, |lab, rig, bench| {
        lab.runtime.block_on(led(rig, bench))
    })
}

/// Lets the future go on until it has ended or waits for answers.
async fn advance(future: &mut (impl Future<Output = ()> + Unpin), done: &mut bool) {
    while !*done {
        tokio::select! {
            biased;
            () = &mut *future => *done = true,
            () = tokio::time::sleep(IDLE) => {
                let waits = OPEN.with_borrow(|open| open.iter().any(|(_, sender)| sender.is_some()));
                if waits {
                    return;
                }
            }
        }
    }
}
