//! Checks that memory, threads and files do not grow: `make churn`.

use crate::api::{Api, CLAIMS, NAMESPACES, POOLS};
use crate::check::event::text;
use crate::lab::number;
use crate::objects::{claim, pool};
use crate::operator::{Footprint, Operator};
use crate::scene::{Scene, make_namespace};
use crate::wait;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Sandboxes of the pool, and claims at a time: the API server is busy with less.
const REPLICAS: i64 = 40;
const AT_ONCE: usize = 16;
/// Claims until everything that is ever allocated has been.
const FIRST: u64 = 2_000;
/// Between two looks at a claim that waits.
const LOOK: Duration = Duration::from_millis(100);
/// A claim that waits longer than this has been forgotten.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the allocator may hold more at the end than after the first claims. A leak of 200 bytes a claim is more.
const MORE_MEMORY_KIB: u64 = 8 * 1024;
/// After this long the client has let go of the connections that it does not need.
const IDLE: Duration = Duration::from_secs(30);
/// Connections come and go with the load.
const MORE_FILES: usize = 20;

/// One after another, until there are none left.
async fn claimant(api: Api, namespace: &'static str, next: Arc<AtomicU64>, end: u64) -> Result<(), String> {
    loop {
        let number = next.fetch_add(1, Ordering::SeqCst);
        if number >= end {
            return Ok(());
        }
        let (name, path) = (format!("run-{number}"), CLAIMS.path(namespace));
        let (object, claim_path) = (claim(&name, "python", &json!({})), format!("{path}/{name}"));
        api.call_async("POST", &path, Some(("application/json", &object)))
            .await?;
        let came = Instant::now();
        loop {
            let seen = api.call_async("GET", &claim_path, None).await?;
            if text(&seen, "/status/phase") == "Bound" {
                break;
            }
            wait::ensure(came.elapsed() < PATIENCE, || {
                format!("claim {name} says {}", seen["status"])
            })?;
            tokio::time::sleep(LOOK).await;
        }
        api.call_async("DELETE", &claim_path, None).await?;
    }
}

/// Has claims come up to number `end`, and waits until all of them have gone.
fn claims_up_to(api: &Api, namespace: &'static str, next: &Arc<AtomicU64>, end: u64) -> Result<(), String> {
    next.fetch_min(end, Ordering::SeqCst);
    let claimants = (0..AT_ONCE).map(|_| claimant(api.clone(), namespace, Arc::clone(next), end));
    api.runtime().block_on(futures::future::try_join_all(claimants))?;
    next.store(end, Ordering::SeqCst);
    full(api, namespace)
}

fn full(api: &Api, namespace: &str) -> Result<(), String> {
    wait::until("the pool was full and nothing else there", 120, || {
        let pool = api.get(POOLS, namespace, "python")?.unwrap_or_default();
        let status = &pool["status"];
        let full =
            status["available"] == REPLICAS && status["total"] == REPLICAS && status["pendingClaims"] == 0;
        wait::ensure(full, || status.to_string())
    })
}

fn measured(operator: &Operator, claims: u64, began: Instant) -> Result<Footprint, String> {
    let footprint = operator.footprint()?;
    eprintln!(
        "{claims:6} claims, {:5.0} s: {footprint}",
        began.elapsed().as_secs_f64()
    );
    Ok(footprint)
}

pub fn memory_threads_and_files_do_not_grow_with_claims(scene: &Scene) -> Result<(), String> {
    let claims = number("CLAIMS", 50_000)?.max(2 * FIRST);
    let (api, namespace) = (&scene.lab.api, "churn");
    eprintln!("{claims} claims through a pool of {REPLICAS}, {AT_ONCE} at a time; CLAIMS={claims}");
    let operator = scene.lab.start_operator()?;
    // Not the namespace of the scene, because a history of all these claims would be too long.
    make_namespace(scene.lab, namespace)?;
    api.create(POOLS, namespace, &pool("python", REPLICAS, &json!({})))?;
    full(api, namespace)?;
    let (next, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
    claims_up_to(api, namespace, &next, FIRST)?;
    sleep(IDLE);
    let first = measured(&operator, FIRST, began)?;
    for part in 1..=8 {
        let end = FIRST + (claims - FIRST) * part / 8;
        claims_up_to(api, namespace, &next, end)?;
        measured(&operator, end, began)?;
    }
    sleep(IDLE);
    let last = measured(&operator, claims, began)?;
    scene.lab.print_at_end(format!(
        "churn: after {FIRST} claims {first}; after {claims} {last}"
    ));
    wait::ensure(last.resident_kib < first.resident_kib + MORE_MEMORY_KIB, || {
        format!("memory has grown: {first}, then {last}")
    })?;
    wait::ensure(
        last.threads <= first.threads && last.files < first.files + MORE_FILES,
        || format!("threads or files have grown: {first}, then {last}"),
    )?;
    api.delete(NAMESPACES, "", namespace)?;
    operator.stop()
}
