//! Creates claims at a steady rate or all at once.

use crate::Outcome;
use crate::at_once::at_once;
use crate::rate::Rate;
use crate::scene::{POOL, Scene};
use crate::served::Served;
use crate::watches::{Claims, WatchedState};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use warmpool::api::SandboxClaim;

/// POSTs claims at `rate` without waiting for earlier claims. `submit` sends a claim; the operator or `submit` itself serves
/// it.
pub async fn steady<F>(scene: &Scene, rate: &Rate, submit: impl Fn(String) -> F) -> Outcome<Served>
where
    F: Future<Output = Outcome<()>> + Send + 'static,
{
    let state = &scene.claims.state;
    state.with(Claims::forget);
    let mut releases = JoinSet::new();
    if let Some(held) = rate.held {
        releases.spawn(release_each(Arc::clone(state), claims(scene), held));
    }
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate.claims_a_second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut submitting = JoinSet::new();
    for number in 0..rate.claims_a_second * rate.seconds {
        // The moment at which the claim was meant to arrive: a benchmark that falls behind counts its own delay, too.
        let from = ticks.tick().await.into_std();
        let name = format!("{}-{number}", rate.times);
        let submitted = submit(name.clone());
        submitting.spawn(async move { submitted.await.map(|()| (name, from)) });
    }
    let mut due = HashMap::new();
    while let Some(done) = submitting.join_next().await {
        let (name, from) = done??;
        due.insert(name, from);
    }
    let served = all_ready(state, &due).await?;
    if rate.held.is_some() {
        state
            .until(|claims| (claims.present.len() <= scene.waiting).then_some(()))
            .await;
    }
    drop(releases);
    Ok(served)
}

/// How long a burst took.
pub struct Burst {
    /// When all claims were meant to arrive.
    pub began: Instant,
    /// Time from then until every POST is answered.
    pub posted: Duration,
    /// Every latency counts from then, too, however long the claim waited for a connection.
    pub served: Served,
}

/// Has `count` claims arrive at one moment, and POSTs them as fast as [`AT_ONCE`](crate::at_once::AT_ONCE) connections allow.
pub async fn burst<F>(scene: &Scene, count: usize, submit: impl Fn(String) -> F) -> Outcome<Burst>
where
    F: Future<Output = Outcome<()>> + Send + 'static,
{
    scene.claims.state.with(Claims::forget);
    let began = Instant::now();
    let submit = &submit;
    let posts = (0..count).map(|number| async move {
        let name = format!("burst-{number}");
        submit(name.clone()).await.map(|()| (name, began))
    });
    let due: HashMap<_, _> = at_once(posts).await?.into_iter().collect();
    let posted = began.elapsed();
    let served = all_ready(&scene.claims.state, &due).await?;
    Ok(Burst {
        began,
        posted,
        served,
    })
}

/// Waits until every claim is Ready. `due` holds when each was meant to arrive.
pub async fn all_ready(state: &WatchedState<Claims>, due: &HashMap<String, Instant>) -> Outcome<Served> {
    let times = state
        .until(|claims| match &claims.failed {
            Some(failed) => Some(Err(failed.clone())),
            None if claims.ready.len() < due.len() => None,
            None => Some(Ok((
                claims.ready.clone(),
                claims.cold,
                claims.creation_order.clone(),
            ))),
        })
        .await;
    let (ready, cold, order) = times?;
    Ok(Served::new(due, &ready, &order, cold))
}

/// Deletes each claim `held` after the watch showed it Ready. Never returns.
async fn release_each(state: Arc<WatchedState<Claims>>, claims: Api<SandboxClaim>, held: Duration) {
    let mut releases = JoinSet::new();
    let mut known = 0;
    loop {
        let served = state
            .until(|state| {
                let new = state.ready_order.get(known..).unwrap_or_default();
                (!new.is_empty()).then(|| new.to_vec())
            })
            .await;
        known += served.len();
        for name in served {
            let claims = claims.clone();
            releases.spawn(async move {
                tokio::time::sleep(held).await;
                if let Err(error) = claims.delete(&name, &DeleteParams::default()).await {
                    eprintln!("claim {name} could not be deleted: {error}");
                }
            });
        }
    }
}

pub fn claims(scene: &Scene) -> Api<SandboxClaim> {
    Api::namespaced(scene.client.clone(), &scene.namespace)
}

/// Submits a claim for the operator to serve.
pub fn submit(scene: &Scene) -> impl Fn(String) -> futures::future::BoxFuture<'static, Outcome<()>> + use<> {
    let api = claims(scene);
    move |name| {
        let api = api.clone();
        Box::pin(async move {
            let claim = claim(&name, json!({}))?;
            api.create(&PostParams::default(), &claim).await?;
            Ok(())
        })
    }
}

/// A claim on the pool. `more` holds further fields of its spec.
pub fn claim(name: &str, more: Value) -> Outcome<SandboxClaim> {
    let mut claim: Value = json!({
        "apiVersion": "warmpool.dev/v1alpha1",
        "kind": "SandboxClaim",
        "metadata": {"name": name},
        "spec": {"poolRef": {"name": POOL}},
    });
    if let (Some(spec), Value::Object(more)) = (claim.pointer_mut("/spec"), more) {
        spec.as_object_mut()
            .into_iter()
            .for_each(|spec| spec.extend(more.clone()));
    }
    Ok(serde_json::from_value(claim)?)
}
