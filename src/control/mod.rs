//! The two controllers. Each reconcile observes, plans and applies; everything else is wiring.

pub mod claim;
pub mod pool;
pub mod settle;

use crate::apply::Writer;
use crate::observe::Key;
use crate::observe::feed::{self, Shared, Triggers, reflect_names};
use crate::observe::stored::{StoredClaim, StoredPod, StoredPodTemplate, StoredPool};
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::controller::{Action, Config, ReconcileRequest, applier};
use kube::runtime::reflector::{ObjectRef, store};
use kube::{Client, Resource};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Pools reconciled at once.
const POOLS_AT_ONCE: u16 = 16;
/// Claims reconciled at once; each may wait for one status write.
const CLAIMS_AT_ONCE: u16 = 32;
/// How long writes under way may take to be answered after the signal to stop.
const GRACE: Duration = Duration::from_secs(20);

/// What a reconcile needs.
pub struct Context {
    /// What is seen.
    pub shared: Shared,
    /// What writes.
    pub writer: Writer,
    /// When each pool's status was written last.
    pub statuses: pool::Statuses,
}

/// Runs both controllers until `stop` resolves, then lets the writes under way come to their end.
pub async fn run(client: Client, stop: impl Future<Output = ()>) {
    let shared = Shared::default();
    let (pools, pool_triggers) = unbounded();
    let (claims, claim_triggers) = unbounded();
    let triggers = Triggers { pools, claims };
    let writer = Writer::new(client.clone(), shared.clone(), triggers.clone());
    let context = Arc::new(Context {
        shared: shared.clone(),
        writer: writer.clone(),
        statuses: pool::Statuses::default(),
    });

    let (pool_store, mut pool_names) = store::<StoredPool>();
    let (claim_store, mut claim_names) = store::<StoredClaim>();
    let watch = (client, shared, triggers);
    let (w1, w2, w3, w4, w5) = (watch.clone(), watch.clone(), watch.clone(), watch.clone(), watch);
    let watches = async move {
        tokio::join!(
            feed::run::<StoredPool>(w1.0, w1.1, w1.2, move |e| reflect_names(
                &mut pool_names,
                e,
                |p| StoredPool {
                    metadata: name_of(&p.metadata),
                    ..Default::default()
                }
            )),
            feed::run::<StoredClaim>(w2.0, w2.1, w2.2, move |e| reflect_names(
                &mut claim_names,
                e,
                |c| StoredClaim {
                    metadata: name_of(&c.metadata),
                    ..Default::default()
                }
            )),
            feed::run::<StoredPod>(w3.0, w3.1, w3.2, |_| {}),
            feed::run::<ControllerRevision>(w4.0, w4.1, w4.2, |_| {}),
            feed::run::<StoredPodTemplate>(w5.0, w5.1, w5.2, |_| {}),
        )
    };
    let pool_config = Config::default().concurrency(POOLS_AT_ONCE);
    let pool_controller = applier(
        |p, c| pool::reconcile(p, c).boxed(),
        |_, e: &Infallible, _| match *e {},
        Arc::clone(&context),
        pool_store,
        queue(pool_triggers),
        pool_config,
    );
    let claim_config = Config::default().concurrency(CLAIMS_AT_ONCE);
    let claim_controller = applier(
        |c, x| claim::reconcile(c, x).boxed(),
        |_, e: &Infallible, _| match *e {},
        Arc::clone(&context),
        claim_store,
        queue(claim_triggers),
        claim_config,
    );

    tokio::select! {
        _ = tokio::spawn(watches) => {}
        _ = tokio::spawn(settle::run(context)) => {}
        // A trigger for an object that has just gone is answered with an error that means nothing more.
        () = pool_controller.for_each(|_| std::future::ready(())) => {}
        () = claim_controller.for_each(|_| std::future::ready(())) => {}
        () = stop => {}
    }
    tracing::info!("stopping; waiting for the writes under way");
    if tokio::time::timeout(GRACE, writer.finish()).await.is_err() {
        tracing::warn!("some writes were not answered in time; the next operator finishes what they began");
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

fn queue<K: Resource<DynamicType = ()> + 'static>(
    triggers: UnboundedReceiver<Key>,
) -> impl Stream<Item = Result<ReconcileRequest<K>, Infallible>> {
    triggers.map(|key| Ok(ObjectRef::new(&key.name).within(&key.namespace).into()))
}

/// What to do after a reconcile: nothing until something happens, or look again at `next`.
fn requeue(now: jiff::Timestamp, next: Option<jiff::Timestamp>) -> Action {
    match next {
        None => Action::await_change(),
        Some(next) => {
            let wait = next
                .duration_since(now)
                .max(jiff::SignedDuration::from_millis(10));
            Action::requeue(wait.unsigned_abs())
        }
    }
}
