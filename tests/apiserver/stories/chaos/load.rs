//! Creates ten claims a second, and tolerates an unavailable API server.

use super::POOLS;
use crate::api::{Api, CLAIMS};
use crate::check::event::text;
use crate::lock::lock;
use crate::objects::claim;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep, spawn};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const PACE: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(500);
/// How long a claim is kept at least.
const HELD: Duration = Duration::from_secs(3);
/// A claim that waits longer than this has been forgotten: the last of [`MOST`] waits for a third of it where six are
/// served in a second, and no blow lasts a tenth of it.
const PATIENCE: Duration = Duration::from_secs(300);
/// While so many are there no more come, as anybody would do whose claims are not served.
const MOST: usize = 600;

/// What has become of the claims.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Claims that came, and how many did not since too many waited.
    came: usize,
    held_back: usize,
    served: usize,
    /// Creations that were not answered and did not happen.
    unheard: usize,
    /// The longest that a claim says that it waited, in seconds of a clock that was set forward and back.
    longest: f64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            came,
            held_back,
            served,
            unheard,
            longest,
        } = self;
        write!(
            f,
            "{came} claims came, {held_back} were held back, {unheard} never arrived, {served} were bound, longest wait \
             {longest:.1} s"
        )
    }
}

pub struct Load {
    stop: Arc<AtomicBool>,
    tally: Arc<Mutex<Tally>>,
    thread: Option<thread::JoinHandle<Result<(), String>>>,
}

impl Load {
    /// Claims come from now on.
    pub fn start(scene: &Scene) -> Self {
        let (stop, tally) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::default()));
        let mut requests = Requests {
            api: scene.lab.api.clone(),
            namespace: scene.namespace.clone(),
            live: Vec::new(),
            tally: Arc::clone(&tally),
        };
        let stopped = Arc::clone(&stop);
        let thread = Some(spawn(move || {
            let (mut next, mut looked) = (Instant::now(), Instant::now());
            while !stopped.load(Ordering::SeqCst) || !requests.live.is_empty() {
                if !stopped.load(Ordering::SeqCst) {
                    requests.create_claim();
                }
                if looked.elapsed() > LOOK {
                    requests.delete_served()?;
                    looked = Instant::now();
                }
                // Claims that were due during the list are created right after it.
                next += PACE;
                sleep(next.saturating_duration_since(Instant::now()));
            }
            Ok(())
        }));
        Self { stop, tally, thread }
    }

    /// What has become of them up to now; an error as soon as one was forgotten.
    pub fn so_far(&mut self) -> Result<Tally, String> {
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            ended(thread)?;
            return Err("the load has ended early".into());
        }
        Ok(lock(&self.tally).clone())
    }

    /// Stops creating claims, and waits until every claim was served and deleted.
    pub fn stop(self) -> Result<Tally, String> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.map_or(Ok(()), ended)?;
        Ok(lock(&self.tally).clone())
    }
}

/// How the thread of a load ended.
fn ended(thread: thread::JoinHandle<Result<(), String>>) -> Result<(), String> {
    thread.join().unwrap_or_else(|_| Err("the load panicked".into()))
}

struct Live {
    name: String,
    since: Instant,
    /// Whether the API server has said that it exists.
    creation: JoinHandle<bool>,
    bound: bool,
}

struct Requests {
    api: Api,
    namespace: String,
    live: Vec<Live>,
    tally: Arc<Mutex<Tally>>,
}

impl Requests {
    /// Does not wait for the answer, so a slow API server does not slow down the load.
    fn create_claim(&mut self) {
        let mut tally = lock(&self.tally);
        if self.live.len() >= MOST {
            tally.held_back += 1;
            return;
        }
        let number = tally.came;
        tally.came += 1;
        drop(tally);
        let (api, path) = (self.api.clone(), CLAIMS.path(&self.namespace));
        let (name, pool) = (format!("run-{number}"), POOLS[number % POOLS.len()]);
        let object = claim(&name, pool, &json!({}));
        let creation = self.api.runtime().spawn(async move {
            let answer = api.call_async("POST", &path, Some(("application/json", &object)));
            answer.await.is_ok()
        });
        self.live.push(Live {
            name,
            since: Instant::now(),
            creation,
            bound: false,
        });
    }

    /// Deletes claims that were held for long enough. Claims without an answer are checked again the next time.
    fn delete_served(&mut self) -> Result<(), String> {
        let long = |live: &Live| live.since.elapsed() > HELD && live.creation.is_finished();
        let (old, young): (Vec<Live>, Vec<Live>) = self.live.drain(..).partition(long);
        self.live = young;
        let Ok(listed) = self.api.list(CLAIMS, &self.namespace) else {
            self.live.extend(old);
            return Ok(());
        };
        let claims: BTreeMap<&str, &Value> = listed.iter().map(|c| (text(c, "/metadata/name"), c)).collect();
        let mut leaving = Vec::new();
        let mut tally = lock(&self.tally);
        for mut live in old {
            match claims.get(live.name.as_str()) {
                None if live.bound => continue,
                None => {
                    let stored = self.api.runtime().block_on(live.creation);
                    wait::ensure(stored.is_ok_and(|stored| !stored), || {
                        format!("claim {} was stored and is lost", live.name)
                    })?;
                    tally.unheard += 1;
                    continue;
                }
                Some(claim) if text(claim, "/status/phase") == "Bound" => {
                    if !std::mem::replace(&mut live.bound, true) {
                        tally.served += 1;
                        let said = claim["status"]["waitSeconds"].as_f64().unwrap_or(0.0);
                        tally.longest = tally.longest.max(said);
                    }
                    leaving.push(live.name.clone());
                }
                Some(claim) => wait::ensure(live.since.elapsed() < PATIENCE, || {
                    format!(
                        "claim {} waited for {PATIENCE:?}; it says {}",
                        live.name, claim["status"]
                    )
                })?,
            }
            self.live.push(live);
        }
        drop(tally);
        // A failed deletion, or a claim that is gone already, shows in the next list.
        _ = self.api.delete_all(CLAIMS, &self.namespace, &leaving);
        Ok(())
    }
}
