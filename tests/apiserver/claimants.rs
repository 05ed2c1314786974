//! Creates claims at a steady rate and deletes each after it is served.

use crate::api::{Api, CLAIMS};
use crate::check::event::text;
use crate::objects::claim;
use crate::scene::Scene;
use crate::wait;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Between two claims: five of them in a second.
const PACE: Duration = Duration::from_millis(200);
/// How long a claim is kept at least.
const HELD: Duration = Duration::from_secs(2);
/// A claim that waits longer than this says that something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Claimants {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<usize, String>>,
}

impl Claimants {
    /// Claims come to the pool from now on, five in a second.
    pub fn start(scene: &Scene, pool: &str) -> Self {
        Self::every(scene, pool, PACE)
    }

    /// A claim comes to the pool in each `pace` from now on. What a busy machine delays is not made up for: claims that come in
    /// a burst are another load.
    pub fn every(scene: &Scene, pool: &str, pace: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut requests = Requests {
            api: scene.lab.api.clone(),
            namespace: scene.namespace.clone(),
            pool: pool.to_string(),
            came: 0,
            live: VecDeque::new(),
        };
        let stopped = Arc::clone(&stop);
        let thread = spawn(move || {
            let mut next = Instant::now();
            while !stopped.load(Ordering::SeqCst) {
                requests.create_claim()?;
                requests.delete_served()?;
                next = Instant::now().max(next + pace);
                sleep(next.saturating_duration_since(Instant::now()));
            }
            requests.delete_all_served()?;
            Ok(requests.came)
        });
        Self { stop, thread }
    }

    /// Stops creating claims, deletes each once it was served, and returns how many there were.
    pub fn stop(self) -> Result<usize, String> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread
            .join()
            .unwrap_or_else(|_| Err("the claimants panicked".into()))
    }
}

struct Requests {
    api: Api,
    namespace: String,
    pool: String,
    came: usize,
    live: VecDeque<(String, Instant)>,
}

impl Requests {
    fn create_claim(&mut self) -> Result<(), String> {
        let name = format!("{}-run-{}", self.pool, self.came);
        let object = claim(&name, &self.pool, &json!({}));
        self.api.create(CLAIMS, &self.namespace, &object)?;
        self.came += 1;
        self.live.push_back((name, Instant::now()));
        Ok(())
    }

    /// Deletes the claims that were held for long enough, oldest first.
    fn delete_served(&mut self) -> Result<(), String> {
        while let Some((name, since)) = self.live.front() {
            if since.elapsed() < HELD {
                return Ok(());
            }
            if let Err(status) = self.is_served(name) {
                return wait::ensure(since.elapsed() < PATIENCE, || {
                    format!("claim {name} waited for {PATIENCE:?}; it says {status}")
                });
            }
            self.api.delete(CLAIMS, &self.namespace, name)?;
            self.live.pop_front();
        }
        Ok(())
    }

    fn delete_all_served(&mut self) -> Result<(), String> {
        for (name, _) in &self.live {
            wait::until(&format!("claim {name} was served"), PATIENCE.as_secs(), || {
                self.is_served(name)
            })?;
        }
        let names: Vec<String> = self.live.drain(..).map(|(name, _)| name).collect();
        Ok(self.api.delete_all(CLAIMS, &self.namespace, &names)?)
    }

    fn is_served(&self, name: &str) -> Result<(), String> {
        let seen = self.api.get(CLAIMS, &self.namespace, name)?.unwrap_or_default();
        wait::ensure(text(&seen, "/status/phase") == "Bound", || {
            seen["status"].to_string()
        })
    }
}
