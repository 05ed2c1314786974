//! Sends the requests of leader election that `election.rs` decides on.
//!
//! Two points differ from client-go, both safer or faster. The renew deadline counts from when the last confirmed
//! renewal was sent. A candidate that sees the lease change or expire tries at once.

use crate::client::error_chain::chain;
use crate::client::error_log;
use crate::client::watch_pauses::{Pauses, paced};
use crate::controllers::leader_election::election::{Election, Lost, Step};
use crate::controllers::leader_election::lease_metadata::lease_metadata;
use crate::controllers::leader_election::timing::{HANDOVER, RELEASE, Timing};
use crate::model::shard_selector::ShardSelector;
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use std::pin::pin;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The lease, the candidate and the periods.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the Lease.
    pub name: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// The name of this process, unique among all candidates.
    pub identity: String,
    /// The pools that this process serves.
    pub pools: ShardSelector,
    /// The periods.
    pub timing: Timing,
}

/// How long this process leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The process does not lead.
    None,
    /// Until this moment, unless the lease is renewed. A process that was suspended for longer does not lead when it
    /// resumes.
    Until(Instant),
    /// As long as the process runs: there is no election.
    Unlimited,
}

impl Term {
    /// Whether this process leads now.
    pub fn runs(&self) -> bool {
        match self {
            Self::None => false,
            Self::Until(end) => Instant::now() < *end,
            Self::Unlimited => true,
        }
    }
}

/// The resource, as logs name it.
const LEASES: &str = "leases.coordination.k8s.io";

/// Why a request for the lease failed.
#[derive(Debug, Error)]
enum AskError {
    #[error("no answer within {} s", after.as_secs_f64())]
    NoAnswer { verb: &'static str, after: Duration },
    #[error("{}", chain(source))]
    Kube { verb: &'static str, source: kube::Error },
}

impl AskError {
    /// Logs the error, unless it is a conflict: another candidate was faster.
    fn log(&self) {
        match self {
            Self::Kube {
                source: kube::Error::Api(status),
                ..
            } if status.code == 409 => {}
            Self::Kube { verb, .. } | Self::NoAnswer { verb, .. } => error_log::log(verb, LEASES, self),
        }
    }
}

/// The outcome of one try to acquire or renew the lease.
enum Outcome {
    Held(Term),
    Wait(Duration),
    Lost(Lost),
}

/// One candidate.
pub struct Elector {
    leases: Api<Lease>,
    settings: Settings,
    election: Election,
    /// A write was sent, so this process may hold the lease even without an answer.
    campaigned: bool,
    /// The last write was on a lease that another process had released after this process began to list.
    handed_over: bool,
    /// The version of the lease that was released before this process began to list.
    listed_after: Option<String>,
}

impl Elector {
    /// A candidate for the lease of `settings`.
    pub fn new(client: Client, settings: Settings) -> Self {
        let metadata = lease_metadata(&settings.namespace, &settings.name, &settings.pools);
        Self {
            leases: Api::namespaced(client, &settings.namespace),
            election: Election::new(metadata, settings.identity.clone(), settings.timing),
            settings,
            campaigned: false,
            handed_over: false,
            listed_after: None,
        }
    }

    /// Reads the lease before this process lists. If the last leader has released it by then, the lists show all its
    /// writes: it releases the lease once they are answered.
    pub async fn look_before_lists(&mut self) {
        match self.read().await {
            Ok(()) => self.listed_after = self.election.released_version().map(Into::into),
            // The first try reads it again, and logs an error.
            Err(error) => tracing::debug!(%error, "the lease cannot be read yet"),
        }
    }

    /// Acquires the lease and renews it until `stop`, then releases it so that a successor starts at once. `term` says
    /// until when this process may plan and write.
    ///
    /// # Errors
    /// When the lease was lost. The process must end then, because another process may lead.
    pub async fn run(mut self, term: watch::Sender<Term>, stop: CancellationToken) -> Result<(), Lost> {
        let lost = stop.run_until_cancelled(self.lead(&term)).await;
        term.send_replace(Term::None);
        match lost {
            Some(lost) => Err(lost),
            None => {
                self.release().await;
                Ok(())
            }
        }
    }

    async fn lead(&mut self, term: &watch::Sender<Term>) -> Lost {
        let first = self.acquire().await;
        tracing::info!(lease = %self.settings.name, identity = %self.settings.identity, "leading");
        if self.handed_over {
            sleep(HANDOVER.min(self.settings.timing.retry_period())).await;
        }
        term.send_replace(first);
        self.keep(term).await
    }

    /// Tries until this process holds the lease.
    async fn acquire(&mut self) -> Term {
        let client = paced(self.leases.clone().into_client(), LEASES);
        let leases = Api::namespaced(client, &self.settings.namespace);
        let mut changes = pin!(changes(leases, &self.settings.name));
        let mut standing_by_for = String::new();
        loop {
            let pause = self.settings.timing.pause(rand::random());
            let pause = match self.attempt(false).await {
                Ok(Outcome::Held(term)) => return term,
                Ok(Outcome::Wait(left)) => pause.min(left),
                Ok(Outcome::Lost(_)) => pause,
                Err(error) => {
                    error.log();
                    pause
                }
            };
            let holder = self.election.holder();
            if holder != standing_by_for {
                standing_by_for = holder.to_string();
                tracing::info!(lease = %self.settings.name, leader = holder, "standing by");
            }
            tokio::select! {
                () = sleep(pause) => {}
                Some(()) = changes.next() => {}
            }
        }
    }

    /// Renews the lease until that fails for too long.
    async fn keep(&mut self, term: &watch::Sender<Term>) -> Lost {
        loop {
            let deadline = self.election.deadline().unwrap_or_else(Instant::now);
            let renewal = async {
                sleep(self.settings.timing.retry_period()).await;
                // First on the lease as last written, then on the lease as read.
                match self.attempt(true).await {
                    Ok(outcome) => Ok(outcome),
                    Err(_) => self.attempt(false).await,
                }
            };
            let outcome = tokio::select! {
                biased;
                () = sleep_until(deadline.into()) => return Lost::Deadline(self.settings.timing.renew_deadline()),
                outcome = renewal => outcome,
            };
            match outcome {
                Ok(Outcome::Held(renewed)) => drop(term.send_replace(renewed)),
                Ok(Outcome::Lost(lost)) => return lost,
                // Only candidates wait.
                Ok(Outcome::Wait(_)) => {}
                Err(error) => error.log(),
            }
        }
    }

    /// One try, on the lease as last read if that is `known`, else on a fresh read.
    async fn attempt(&mut self, known: bool) -> Result<Outcome, AskError> {
        let deadline = self.settings.timing.request_deadline();
        if !known {
            self.read().await?;
        }
        match self.election.next_step(Instant::now(), Timestamp::now()) {
            Step::Wait(left) => Ok(Outcome::Wait(left)),
            Step::Lost(lost) => Ok(Outcome::Lost(lost)),
            Step::Write(lease) => {
                let sent = Instant::now();
                self.campaigned = true;
                let released = self.election.released_version();
                self.handed_over = released.is_some() && released != self.listed_after.as_deref();
                let stored = ask("update", deadline, self.write(&lease)).await?;
                self.election.confirm(stored, sent);
                Ok(Outcome::Held(
                    self.election.deadline().map_or(Term::None, Term::Until),
                ))
            }
        }
    }

    async fn read(&mut self) -> Result<(), AskError> {
        let deadline = self.settings.timing.request_deadline();
        let lease = ask("get", deadline, self.leases.get_opt(&self.settings.name)).await?;
        self.election.observe(lease, Instant::now());
        Ok(())
    }

    /// Creates the lease, or replaces the version that was read.
    async fn write(&self, lease: &Lease) -> Result<Lease, kube::Error> {
        let parameters = PostParams::default();
        if lease.metadata.resource_version.is_none() {
            return self.leases.create(&parameters, lease).await;
        }
        self.leases.replace(&self.settings.name, &parameters, lease).await
    }

    /// Releases the lease if this process holds it. If the write fails, the lease expires.
    async fn release(&mut self) {
        if !self.campaigned {
            return;
        }
        let deadline = self.settings.timing.request_deadline().min(RELEASE);
        let released = ask("update", deadline, async {
            loop {
                let lease = self.leases.get_opt(&self.settings.name).await?;
                self.election.observe(lease, Instant::now());
                let Some(lease) = self.election.release(Timestamp::now()) else {
                    return Ok(false);
                };
                match self.write(&lease).await {
                    // A renewal in flight changed the lease.
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    answer => return answer.map(|_| true),
                }
            }
        });
        match released.await {
            Ok(true) => tracing::info!(lease = %self.settings.name, "lease released"),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(lease = %self.settings.name, %error, "the lease could not be released and will expire")
            }
        }
    }
}

async fn ask<T>(
    verb: &'static str,
    deadline: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, AskError> {
    timeout(deadline, request)
        .await
        .map_err(|_| AskError::NoAnswer {
            verb,
            after: deadline,
        })?
        .map_err(|source| AskError::Kube { verb, source })
}

/// An item for each change of the lease. Without it a candidate still tries after each delay.
fn changes(leases: Api<Lease>, name: &str) -> impl Stream<Item = ()> + use<> {
    watch_object(leases, name)
        .backoff(Pauses::default())
        .filter_map(async |event| {
            event
                .inspect_err(|error| error_log::log_watch_error(LEASES, error))
                .ok()
        })
        .map(drop)
}
