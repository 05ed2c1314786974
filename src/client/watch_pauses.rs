//! Pauses before a watch is opened again, after it failed or ended too soon.

use crate::telemetry::log_once::log_once;
use axum::http::{Request, Response};
use kube::Client;
use kube::client::Body;
use kube::runtime::utils::Backoff;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The longest pause.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A watch that lasts this long has worked: after it the pauses begin anew.
const WORKED: Duration = Duration::from_secs(5);
/// How long the log is silent about the watch of a resource that ends too soon.
const SILENCE: Duration = Duration::from_secs(60);

/// Pauses between the restarts of a watch: 0.1 s, doubling to 1 s. client-go goes up to 30 s; every claim would wait
/// that long after a restart of the API server.
#[derive(Debug, Default)]
pub struct Pauses {
    restarts: u32,
    last: Option<Instant>,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.last.is_none_or(|last| now.duration_since(last) >= WORKED) {
            self.restarts = 0;
        }
        self.last = Some(now);
        let pause = Duration::from_millis(100 << self.restarts.min(4)).min(LONGEST_PAUSE);
        self.restarts = self.restarts.saturating_add(1);
        Some(pause)
    }
}

impl Backoff for Pauses {
    /// Only time resets the pauses. A watcher reports the begin of each list as a success, and the list may fail all the
    /// same.
    fn reset(&mut self) {}
}

/// When a watch was opened last, and the pauses after those that ended too soon.
#[derive(Debug, Default)]
struct Openings {
    last: Option<Instant>,
    pauses: Pauses,
}

impl Openings {
    /// The earliest moment for the next opening, and whether the watch keeps ending too soon.
    fn next(&mut self, now: Instant) -> (Instant, bool) {
        let last = self.last.filter(|last| now.duration_since(*last) < WORKED);
        let pause = last.and_then(|_| self.pauses.next()).unwrap_or_default();
        (last.unwrap_or(now) + pause, pause == LONGEST_PAUSE)
    }
}

/// `client` for the watch of one resource. A watcher opens its watch again at once when the API server ends it, so a
/// server or a proxy that answers and ends each watch at once would be asked without a pause.
pub fn paced(client: Client, resource: &str) -> Client {
    let namespace = client.default_namespace().to_string();
    let (openings, resource) = (Arc::new(Mutex::new(Openings::default())), Arc::from(resource));
    let service = tower::service_fn(move |request| {
        let (client, openings) = (client.clone(), Arc::clone(&openings));
        send(client, request, openings, Arc::clone(&resource))
    });
    Client::new(service, namespace)
}

async fn send(
    client: Client,
    request: Request<Body>,
    openings: Arc<Mutex<Openings>>,
    resource: Arc<str>,
) -> Result<Response<Body>, kube::Error> {
    if !opens_watch(&request) {
        return client.send(request).await;
    }
    let (due, keeps_ending) = lock(&openings).next(Instant::now());
    if keeps_ending {
        log_once(&format!("short watch {resource}"), SILENCE, || {
            tracing::warn!(
                resource = &*resource,
                "the watch ends as soon as it is opened, and is opened again after a pause; logged at most once a minute"
            );
        });
    }
    sleep_until(due).await;
    let answer = client.send(request).await?;
    // A watch that is refused is an error of its watcher, which pauses for it.
    if answer.status().is_success() {
        lock(&openings).last = Some(Instant::now());
    }
    Ok(answer)
}

fn lock(openings: &Mutex<Openings>) -> MutexGuard<'_, Openings> {
    openings.lock().unwrap_or_else(PoisonError::into_inner)
}

fn opens_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| pair == "watch=true")
}
