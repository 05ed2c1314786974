//! Runs the operator: watches from the start, controllers while this process leads.

use crate::cache::reconcile_request::{ReconcileRequest, ReconcileSender};
use crate::cache::synced_cache::SharedCache;
use crate::cache::watch::{self, WatchContext, reflect_names};
use crate::cache::watch_eviction_requests;
use crate::controllers::context::Context;
use crate::controllers::leader_election::election::Lost;
use crate::controllers::leader_election::{self, Elector, Term};
use crate::controllers::{claim, pool, resync, retry_loop, schema_check, shutdown, urgent_loop};
use crate::executor::Executor;
use crate::model::Key;
use crate::model::stored::{
    StoredClaim, StoredDisruptionBudget, StoredNode, StoredPod, StoredPodTemplate, StoredPool, StoredRevision,
};
use crate::telemetry::events::claims::ClaimEvents;
use crate::telemetry::metrics::Metrics;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::controller::{self, Action, Config, applier};
use kube::runtime::reflector::{ObjectRef, store};
use kube::{Client, Resource};
use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch::{Receiver, Sender};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// Concurrent reconciles of pools.
const POOL_RECONCILES: u16 = 16;
/// Concurrent reconciles of claims.
const CLAIM_RECONCILES: u16 = 32;
/// Delay of a reconcile that was due while the term was over.
const TERM_RENEWAL: Duration = Duration::from_secs(1);
/// How long the shutdown waits for answers to writes in flight.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(20);

/// Settings of the operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The only namespace to serve; `None`: all.
    pub namespace: Option<String>,
    /// Leader election; `None`: the operator leads without election.
    pub election: Option<leader_election::Settings>,
    /// Which claims get events.
    pub claim_events: ClaimEvents,
}

/// Why the operator ended before it was stopped.
#[derive(Debug, Error)]
pub enum RunError {
    /// Another process may lead now. After a restart the operator stands by.
    #[error("leadership is lost: {0}")]
    Lost(#[from] Lost),
    /// A task that runs forever has ended.
    #[error("a part of the operator has ended: {0}")]
    Broken(#[from] JoinError),
}

/// Runs both controllers until `stop` resolves, then waits for the writes in flight and releases the lease. The watches
/// fill `shared`; `term` says until when this process plans and writes.
///
/// # Errors
/// When leadership is lost: the process must end at once. When a task of the operator panicked.
pub async fn run(
    client: Client,
    settings: Settings,
    shared: SharedCache,
    metrics: Metrics,
    term: Sender<Term>,
    stop: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let (pools, pool_triggers) = unbounded();
    let (claims, claim_triggers) = unbounded();
    let (urgent, urgent_requests) = unbounded();
    let (failed_writes, failures) = unbounded();
    let to_reconcile = ReconcileSender {
        pools,
        claims,
        failed_writes,
        urgent,
    };
    let executor = Executor::new(
        client.clone(),
        shared.clone(),
        to_reconcile.clone(),
        metrics.clone(),
        settings.claim_events,
    );
    let context = Arc::new(Context {
        shared: shared.clone(),
        executor,
    });

    let (pool_store, mut pool_names) = store::<StoredPool>();
    let (claim_store, mut claim_names) = store::<StoredClaim>();
    let watch_context = WatchContext {
        client: client.clone(),
        namespace: settings.namespace,
        shared: shared.clone(),
        to_reconcile: to_reconcile.clone(),
    };
    // `join!` would poll every watch at each event of one.
    let watches: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::from_iter([
        watch::run::<StoredPool>(watch_context.clone(), move |event| {
            reflect_names(&mut pool_names, event, |pool| StoredPool {
                metadata: name_of(&pool.metadata),
                ..Default::default()
            });
        })
        .boxed(),
        watch::run::<StoredClaim>(watch_context.clone(), move |event| {
            reflect_names(&mut claim_names, event, |claim| StoredClaim {
                metadata: name_of(&claim.metadata),
                ..Default::default()
            });
        })
        .boxed(),
        watch::run::<StoredPod>(watch_context.clone(), |_| {}).boxed(),
        watch::run::<StoredRevision>(watch_context.clone(), |_| {}).boxed(),
        watch::run::<StoredPodTemplate>(watch_context.clone(), |_| {}).boxed(),
        watch::run::<StoredDisruptionBudget>(watch_context.clone(), |_| {}).boxed(),
        watch::run::<StoredNode>(watch_context.clone(), |_| {}).boxed(),
        watch_eviction_requests::run(watch_context).boxed(),
    ]);
    let may_list = CancellationToken::new();
    let listing = may_list.clone();
    let watches = async move {
        listing.cancelled().await;
        watches.collect::<()>().await;
    };
    let pool_config = Config::default().concurrency(POOL_RECONCILES);
    let pool_controller = applier(
        while_leading(term.subscribe(), pool::reconcile),
        |_, e: &Infallible, _| match *e {},
        Arc::clone(&context),
        pool_store,
        queue(pool_triggers, term.subscribe(), &metrics, ReconcileRequest::Pool),
        pool_config,
    );
    let claim_config = Config::default().concurrency(CLAIM_RECONCILES);
    let claim_controller = applier(
        while_leading(term.subscribe(), claim::reconcile),
        |_, e: &Infallible, _| match *e {},
        Arc::clone(&context),
        claim_store,
        queue(
            claim_triggers,
            term.subscribe(),
            &metrics,
            ReconcileRequest::Claim,
        ),
        claim_config,
    );

    let failed_writes = retry_loop::run(Arc::clone(&context), failures, term.subscribe());
    let urgent = urgent_loop::run(Arc::clone(&context), urgent_requests, term.subscribe());
    let end_term = CancellationToken::new();
    tokio::spawn(schema_check::check(client.clone(), shared.clone()));
    tokio::spawn(log_synced(shared.clone()));
    tokio::spawn(take_over(
        shared.clone(),
        to_reconcile,
        metrics.clone(),
        term.subscribe(),
    ));
    let candidate = settings.election.map(|settings| Elector::new(client, settings));
    let own_term = term.subscribe();
    let mut election = tokio::spawn(elect(candidate, may_list, shared, term, end_term.clone()));
    let mut claim_controller = pin!(claim_controller.for_each(async |outcome| forget_gone(
        &metrics,
        outcome,
        ReconcileRequest::Claim
    )));
    let mut watches = tokio::spawn(watches);
    let broken = tokio::select! {
        ended = &mut watches => ended.err(),
        ended = tokio::spawn(resync::run(Arc::clone(&context))) => ended.err(),
        ended = tokio::spawn(failed_writes) => ended.err(),
        ended = tokio::spawn(urgent) => ended.err(),
        () = pool_controller.for_each(async |outcome| forget_gone(&metrics, outcome, ReconcileRequest::Pool)) => None,
        () = &mut claim_controller => None,
        ended = &mut election => return Ok(ended??),
        () = stop => None,
    };
    tracing::info!("stopping; waiting for the writes in flight");
    let finish = tokio::time::timeout(SHUTDOWN_GRACE, shutdown::finish(&context, &own_term));
    let finished = tokio::select! {
        ended = &mut election => return Ok(ended??),
        // It publishes the claims whose bindings have begun.
        () = &mut claim_controller => Ok(()),
        finished = finish => finished,
    };
    if finished.is_err() {
        tracing::warn!("some writes were not answered in time; the next operator confirms them");
        // They may still take effect, so the lease is not released and no other operator starts at once.
    } else {
        end_term.cancel();
        election.await??;
    }
    broken.map_or(Ok(()), |broken| Err(broken.into()))
}

/// Logs once that every watch has delivered its list. A standby plans nothing and says so, too.
async fn log_synced(shared: SharedCache) {
    shared.until_synced().await;
    let index = shared.lock();
    let (pools, claims, pods) = (
        index.pool_keys().len(),
        index.claim_keys().len(),
        index.pod_keys().len(),
    );
    drop(index);
    tracing::info!(pools, claims, pods, "caches synced");
}

/// Lets the watches list, and leads before the first plan. A process becomes a candidate only with complete watches, so
/// that it never keeps a ready process from leading. Without a candidate this process leads at once.
async fn elect(
    candidate: Option<Elector>,
    may_list: CancellationToken,
    shared: SharedCache,
    term: Sender<Term>,
    end_term: CancellationToken,
) -> Result<(), Lost> {
    let Some(mut candidate) = candidate else {
        may_list.cancel();
        term.send_replace(Term::Unlimited);
        end_term.cancelled().await;
        return Ok(());
    };
    candidate.look_before_lists().await;
    may_list.cancel();
    match end_term.run_until_cancelled(shared.until_synced()).await {
        Some(()) => candidate.run(term, end_term).await,
        None => Ok(()),
    }
}

/// Requeues all objects when this process begins to lead, because earlier requests were dropped. Keeps the metric of
/// the leader up to date.
async fn take_over(
    shared: SharedCache,
    to_reconcile: ReconcileSender,
    metrics: Metrics,
    mut term: Receiver<Term>,
) {
    if term.wait_for(Term::runs).await.is_err() {
        return;
    }
    metrics.leads(true);
    if shared.synced() {
        let all = shared.lock().all();
        to_reconcile.send(all);
    }
    _ = term.wait_for(|term| *term == Term::None).await;
    metrics.leads(false);
}

/// Drops the queue time of an object that is gone. kube-rs answers its request with an error that means nothing else.
fn forget_gone<T>(
    metrics: &Metrics,
    outcome: Result<T, controller::Error<Infallible, Infallible>>,
    request: fn(Key) -> ReconcileRequest,
) {
    if let Err(controller::Error::ObjectNotFound(object)) = outcome {
        let key = Key::new(object.namespace.unwrap_or_default(), object.name);
        metrics.unqueued(&request(key));
    }
}

/// Namespace and name alone.
fn name_of(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        ..Default::default()
    }
}

/// Reconciles while this process leads. When its term is over, the process ends soon or the term is renewed; requests
/// of the meantime are requeued, not lost.
fn while_leading<K, F>(
    term: Receiver<Term>,
    mut reconcile: impl FnMut(Arc<K>, Arc<Context>) -> F,
) -> impl FnMut(Arc<K>, Arc<Context>) -> BoxFuture<'static, Result<Action, Infallible>>
where
    F: Future<Output = Result<Action, Infallible>> + Send + 'static,
{
    move |object, context| {
        if term.borrow().runs() {
            reconcile(object, context).boxed()
        } else {
            ready(Ok(Action::requeue(TERM_RENEWAL))).boxed()
        }
    }
}

/// The requests of a controller. A standby drops them.
fn queue<K: Resource<DynamicType = ()> + 'static>(
    to_reconcile: UnboundedReceiver<Key>,
    term: Receiver<Term>,
    metrics: &Metrics,
    request: fn(Key) -> ReconcileRequest,
) -> impl Stream<Item = Result<controller::ReconcileRequest<K>, Infallible>> + use<K> {
    let metrics = metrics.clone();
    to_reconcile
        .filter(move |_| ready(*term.borrow() != Term::None))
        .map(move |key| {
            let object = ObjectRef::new(&key.name).within(&key.namespace);
            metrics.queued(request(key));
            Ok(object.into())
        })
}
