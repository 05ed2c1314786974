//! Creates claims at a steady rate or all at once.

use crate::Outcome;
use crate::phases::steady::Rate;
use crate::scene::{POOL, Scene};
use crate::watches::{Claims, WatchedState};
use futures::StreamExt;
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

/// Limit of concurrent requests. More connections would mostly measure TLS handshakes.
pub const AT_ONCE: usize = 32;

/// How the claims of a load were served.
#[derive(Default)]
pub struct Served {
    /// Time from the moment at which each claim was meant to arrive until the watch shows it Ready, sorted.
    pub latencies: Vec<Duration>,
    /// Claims whose sandbox was not Ready before the claim's creation.
    pub cold: usize,
    /// Claims that became Ready after a claim created later.
    pub passed: usize,
    /// Longest time between the later claim and the passed claim becoming Ready.
    pub passed_by: Duration,
}

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
    let mut posted = HashMap::new();
    while let Some(done) = submitting.join_next().await {
        let (name, from) = done??;
        posted.insert(name, from);
    }
    let served = all_ready(state, &posted).await?;
    if rate.held.is_some() {
        state
            .until(|claims| claims.present.is_empty().then_some(()))
            .await;
    }
    drop(releases);
    Ok(served)
}

/// How long a burst took.
pub struct Burst {
    /// When the first POST was sent.
    pub began: Instant,
    /// Time from the first POST until every POST is answered.
    pub posted: Duration,
    /// Time from the first POST until the watch shows the last claim Ready.
    pub ready: Duration,
    pub served: Served,
    /// When each claim became Ready, and how many milliseconds it had waited.
    pub claims: Vec<(Instant, f64)>,
}

/// POSTs `count` claims as fast as [`AT_ONCE`] connections allow.
pub async fn burst<F>(scene: &Scene, count: usize, submit: impl Fn(String) -> F) -> Outcome<Burst>
where
    F: Future<Output = Outcome<()>> + Send + 'static,
{
    scene.claims.state.with(Claims::forget);
    let began = Instant::now();
    let submit = &submit;
    let posts = (0..count).map(|number| async move {
        let name = format!("burst-{number}");
        let from = Instant::now();
        submit(name.clone()).await.map(|()| (name, from))
    });
    let posted: Vec<Outcome<(String, Instant)>> = futures::stream::iter(posts)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let all_posted = began.elapsed();
    let posted: HashMap<_, _> = posted.into_iter().collect::<Outcome<_>>()?;
    let served = all_ready(&scene.claims.state, &posted).await?;
    let last = scene
        .claims
        .state
        .with(|claims| claims.ready.values().max().copied())
        .ok_or("no claim was served")?;
    let claims = scene.claims.state.with(|claims| {
        let waited = |(name, ready): (&String, &Instant)| {
            let from = posted.get(name)?;
            Some((*ready, ready.duration_since(*from).as_secs_f64() * 1e3))
        };
        claims.ready.iter().filter_map(waited).collect()
    });
    Ok(Burst {
        began,
        claims,
        posted: all_posted,
        ready: last.duration_since(began),
        served,
    })
}

/// Waits until every claim is Ready.
async fn all_ready(state: &WatchedState<Claims>, posted: &HashMap<String, Instant>) -> Outcome<Served> {
    let times = state
        .until(|claims| match &claims.failed {
            Some(failed) => Some(Err(failed.clone())),
            None if claims.ready.len() < posted.len() => None,
            None => Some(Ok((
                claims.ready.clone(),
                claims.cold,
                claims.creation_order.clone(),
            ))),
        })
        .await;
    let (ready, cold, order) = times?;
    let mut latencies: Vec<Duration> = posted
        .iter()
        .filter_map(|(name, from)| Some(ready.get(name)?.duration_since(*from)))
        .collect();
    latencies.sort_unstable();
    let (passed, passed_by) = passed(order.iter().filter_map(|name| ready.get(name)));
    Ok(Served {
        latencies,
        cold,
        passed,
        passed_by,
    })
}

/// Counts the claims that became Ready after a later claim, and the longest such delay. `ready` is in the order of creation.
fn passed<'a>(ready: impl DoubleEndedIterator<Item = &'a Instant>) -> (usize, Duration) {
    let (mut count, mut most, mut first_of_later) = (0, Duration::ZERO, None);
    for at in ready.rev() {
        if let Some(later) = first_of_later.filter(|later| at > *later) {
            count += 1;
            most = most.max(at.duration_since(*later));
        }
        first_of_later = Some(first_of_later.map_or(at, |later: &Instant| later.min(at)));
    }
    (count, most)
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
