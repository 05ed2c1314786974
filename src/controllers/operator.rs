//! Runs the operator: watches from the start, controllers while this process leads.

use crate::cache::index::ReconcileRequest;
use crate::cache::watch;
use crate::cache::watch::{Feed, ReconcileSender, SharedCache, reflect_names};
use crate::controllers::context::Context;
use crate::controllers::leader_election::election::Lost;
use crate::controllers::leader_election::{self, Elector, Term};
use crate::controllers::status_interval::StatusWrites;
use crate::controllers::{claim, pool, resync, schema_check};
use crate::executor::Executor;
use crate::model::Key;
use crate::model::stored::{StoredClaim, StoredPod, StoredPodTemplate, StoredPool, StoredRevision};
use crate::telemetry::metrics::Metrics;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::controller::{self, Action, Config, applier};
use kube::runtime::reflector::{ObjectRef, store};
use kube::{Client, Resource};
use std::convert::Infallible;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch::{Receiver, Sender};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// Pools reconciled at once.
const POOLS_AT_ONCE: u16 = 16;
/// Claims reconciled at once; each may wait for one status write.
const CLAIMS_AT_ONCE: u16 = 32;
/// How soon something is looked at again that was to be looked at while the term was over.
const RENEWAL: Duration = Duration::from_secs(1);
/// How long writes under way may take to be answered after the signal to stop.
const GRACE: Duration = Duration::from_secs(20);

/// What the operator is told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The only namespace that it serves; `None`: all.
    pub namespace: Option<String>,
    /// How it is elected; `None`: it leads without asking.
    pub election: Option<leader_election::Settings>,
}

/// Why the operator ended without having been told to.
#[derive(Debug, Error)]
pub enum RunError {
    /// It leads no more. Started anew it stands by.
    #[error("leadership is lost: {0}")]
    Lost(#[from] Lost),
    /// A part of it that runs for ever has ended.
    #[error("a part of the operator has ended: {0}")]
    Broken(#[from] JoinError),
}

/// Runs both controllers until `stop` resolves, then lets the writes under way come to their end and gives leadership up.
/// What is seen goes to `shared`, what is counted to `metrics`; `term` tells for how long this process plans and writes.
///
/// # Errors
/// When leadership is lost; the process has to end at once. When a part of the operator is broken.
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
    let to_reconcile = ReconcileSender { pools, claims };
    let executor = Executor::new(
        client.clone(),
        shared.clone(),
        to_reconcile.clone(),
        metrics.clone(),
    );
    let context = Arc::new(Context {
        shared: shared.clone(),
        executor: executor.clone(),
        statuses: StatusWrites::default(),
    });

    let (pool_store, mut pool_names) = store::<StoredPool>();
    let (claim_store, mut claim_names) = store::<StoredClaim>();
    let feed = Feed {
        client: client.clone(),
        namespace: settings.namespace,
        shared: shared.clone(),
        to_reconcile: to_reconcile.clone(),
    };
    let watches = async move {
        tokio::join!(
            watch::run::<StoredPool>(feed.clone(), move |event| {
                reflect_names(&mut pool_names, event, |pool| StoredPool {
                    metadata: name_of(&pool.metadata),
                    ..Default::default()
                });
            }),
            watch::run::<StoredClaim>(feed.clone(), move |event| {
                reflect_names(&mut claim_names, event, |claim| StoredClaim {
                    metadata: name_of(&claim.metadata),
                    ..Default::default()
                });
            }),
            watch::run::<StoredPod>(feed.clone(), |_| {}),
            watch::run::<StoredRevision>(feed.clone(), |_| {}),
            watch::run::<StoredPodTemplate>(feed.clone(), |_| {}),
        )
    };
    let pool_config = Config::default().concurrency(POOLS_AT_ONCE);
    let pool_controller = applier(
        while_leading(term.subscribe(), pool::reconcile),
        |_, e: &Infallible, _| match *e {},
        Arc::clone(&context),
        pool_store,
        queue(pool_triggers, term.subscribe(), &metrics, ReconcileRequest::Pool),
        pool_config,
    );
    let claim_config = Config::default().concurrency(CLAIMS_AT_ONCE);
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

    let give_up = CancellationToken::new();
    tokio::spawn(schema_check::check(client.clone(), shared.clone()));
    tokio::spawn(take_over(
        shared.clone(),
        to_reconcile,
        metrics.clone(),
        term.subscribe(),
    ));
    let mut election = tokio::spawn(elect(client, settings.election, shared, term, give_up.clone()));
    let broken = tokio::select! {
        ended = tokio::spawn(watches) => ended.err(),
        ended = tokio::spawn(resync::run(context)) => ended.err(),
        () = pool_controller.for_each(async |outcome| forget(&metrics, outcome, ReconcileRequest::Pool)) => None,
        () = claim_controller.for_each(async |outcome| forget(&metrics, outcome, ReconcileRequest::Claim)) => None,
        ended = &mut election => return Ok(ended??),
        () = stop => None,
    };
    tracing::info!("stopping; waiting for the writes under way");
    tokio::select! {
        ended = &mut election => return Ok(ended??),
        finished = tokio::time::timeout(GRACE, executor.finish()) => if finished.is_err() {
            tracing::warn!("some writes were not answered in time; the next operator finishes what they began");
            // They may still take effect, so nobody is invited to start at once.
            return Ok(());
        }
    }
    give_up.cancel();
    election.await??;
    broken.map_or(Ok(()), |broken| Err(broken.into()))
}

/// Sees to it that this process leads before it plans. A candidate has complete watches, or it would keep one that
/// has them from leading.
async fn elect(
    client: Client,
    settings: Option<leader_election::Settings>,
    shared: SharedCache,
    term: Sender<Term>,
    give_up: CancellationToken,
) -> Result<(), Lost> {
    let Some(settings) = settings else {
        term.send_replace(Term::Unlimited);
        give_up.cancelled().await;
        return Ok(());
    };
    match give_up.run_until_cancelled(shared.until_synced()).await {
        Some(()) => Elector::new(client, settings).run(term, give_up).await,
        None => Ok(()),
    }
}

/// Has everything looked at once this process leads: what was triggered before was dropped. Tells who looks at the metrics
/// for as long as it does.
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

/// A trigger for an object that has just gone is answered with an error that means nothing more.
fn forget<T>(
    metrics: &Metrics,
    outcome: Result<T, controller::Error<Infallible, Infallible>>,
    trigger: fn(Key) -> ReconcileRequest,
) {
    if let Err(controller::Error::ObjectNotFound(object)) = outcome {
        let key = Key::new(object.namespace.unwrap_or_default(), object.name);
        metrics.unqueued(&trigger(key));
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

/// Reconciles as long as this process leads. Once its term is over it either ends in a moment or the term is renewed, and
/// what came meanwhile is not to be lost.
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
            ready(Ok(Action::requeue(RENEWAL))).boxed()
        }
    }
}

/// What is to be reconciled. Whoever stands by drops it unseen.
fn queue<K: Resource<DynamicType = ()> + 'static>(
    to_reconcile: UnboundedReceiver<Key>,
    term: Receiver<Term>,
    metrics: &Metrics,
    trigger: fn(Key) -> ReconcileRequest,
) -> impl Stream<Item = Result<controller::ReconcileRequest<K>, Infallible>> + use<K> {
    let metrics = metrics.clone();
    to_reconcile
        .filter(move |_| ready(*term.borrow() != Term::None))
        .map(move |key| {
            let object = ObjectRef::new(&key.name).within(&key.namespace);
            metrics.queued(trigger(key));
            Ok(object.into())
        })
}
