//! Sends the requests of leader election that `election.rs` decides on.
//!
//! Two points differ from client-go, both safer or faster. The renew deadline counts from when the last confirmed renewal was
//! sent. A candidate that sees the lease change or expire tries at once.

use crate::cache::watch::Pauses;
use crate::client::request_errors;
use crate::controllers::leader_election::election::{Election, Lost, Turn};
use crate::controllers::leader_election::timing::Timing;
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
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

/// How long a new leader leaves the last writes of one that has just given the lease up to come through the watches,
/// before it plans. Otherwise it would make the same sandboxes again.
const HANDOVER: Duration = Duration::from_millis(250);

/// How long the lease may take to be given up, which is the last thing before the end of a pod that is told to stop.
const RELEASE: Duration = Duration::from_secs(5);

/// Which lease, who asks for it, and when.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the Lease.
    pub name: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// What tells this process from every other.
    pub identity: String,
    /// The periods.
    pub timing: Timing,
}

/// For how long this process leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// It does not lead.
    None,
    /// Until this moment, unless the lease is renewed. A process that was stopped for longer finds itself out of office
    /// before it decides anything.
    Until(Instant),
    /// For as long as it runs: there is no election.
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

/// Why a request about the lease did not succeed.
#[derive(Debug, Error)]
enum AskError {
    #[error("no answer within {} s", .0.as_secs_f64())]
    NoAnswer(Duration),
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

impl AskError {
    /// Tells the log, unless somebody else was just faster: that is how elections go.
    fn tell(&self) {
        match self {
            Self::Kube(kube::Error::Api(status)) if status.code == 409 => {}
            error => request_errors::log(error),
        }
    }
}

/// What came of one try to get or keep the lease.
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
    /// A write was sent, so the lease may be ours even where no answer said so.
    campaigned: bool,
    /// The last write was on a lease that another had given up.
    handed_over: bool,
}

impl Elector {
    /// A candidate for the lease of `settings`.
    pub fn new(client: Client, settings: Settings) -> Self {
        let metadata = ObjectMeta {
            name: Some(settings.name.clone()),
            namespace: Some(settings.namespace.clone()),
            ..ObjectMeta::default()
        };
        Self {
            leases: Api::namespaced(client, &settings.namespace),
            election: Election::new(metadata, settings.identity.clone(), settings.timing),
            settings,
            campaigned: false,
            handed_over: false,
        }
    }

    /// Waits for the lease and keeps it until `stop`, then gives it up so that a successor starts at once. `term`
    /// tells for how long this process may plan and write.
    ///
    /// # Errors
    /// When the lease was lost. The process must end then: what it has under way is no longer its own to do.
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

    /// Tries until the lease is ours.
    async fn acquire(&mut self) -> Term {
        let mut changes = pin!(changes(self.leases.clone(), &self.settings.name));
        let mut standing_by_for = String::new();
        loop {
            let pause = self.settings.timing.pause(rand::random());
            let pause = match self.attempt(false).await {
                Ok(Outcome::Held(term)) => return term,
                Ok(Outcome::Wait(left)) => pause.min(left),
                Ok(Outcome::Lost(_)) => pause,
                Err(error) => {
                    error.tell();
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
                // As it was written last, or else as it is now.
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
                // Only a candidate waits.
                Ok(Outcome::Wait(_)) => {}
                Err(error) => error.tell(),
            }
        }
    }

    /// One try, on the lease as it is `known` or else as it is read now.
    async fn attempt(&mut self, known: bool) -> Result<Outcome, AskError> {
        let patience = self.settings.timing.patience();
        if !known {
            let lease = ask(patience, self.leases.get_opt(&self.settings.name)).await?;
            self.election.saw(lease, Instant::now());
        }
        match self.election.turn(Instant::now(), Timestamp::now()) {
            Turn::Wait(left) => Ok(Outcome::Wait(left)),
            Turn::Lost(lost) => Ok(Outcome::Lost(lost)),
            Turn::Write(lease) => {
                let sent = Instant::now();
                self.campaigned = true;
                self.handed_over = self.election.is_free();
                let stored = ask(patience, self.write(&lease)).await?;
                self.election.wrote(stored, sent);
                Ok(Outcome::Held(
                    self.election.deadline().map_or(Term::None, Term::Until),
                ))
            }
        }
    }

    /// Creates the lease, or replaces it as it was seen.
    async fn write(&self, lease: &Lease) -> Result<Lease, kube::Error> {
        let parameters = PostParams::default();
        if lease.metadata.resource_version.is_none() {
            return self.leases.create(&parameters, lease).await;
        }
        self.leases.replace(&self.settings.name, &parameters, lease).await
    }

    /// Gives the lease up if it is ours. When that cannot be written, it runs out by itself.
    async fn release(&mut self) {
        if !self.campaigned {
            return;
        }
        let released = ask(self.settings.timing.patience().min(RELEASE), async {
            loop {
                let lease = self.leases.get_opt(&self.settings.name).await?;
                self.election.saw(lease, Instant::now());
                let Some(lease) = self.election.release(Timestamp::now()) else {
                    return Ok(false);
                };
                match self.write(&lease).await {
                    // A renewal that was under way came between.
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    answer => return answer.map(|_| true),
                }
            }
        });
        match released.await {
            Ok(true) => tracing::info!(lease = %self.settings.name, "the lease is given up"),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(lease = %self.settings.name, %error, "the lease could not be given up, it will run out")
            }
        }
    }
}

async fn ask<T>(
    patience: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, AskError> {
    timeout(patience, request)
        .await
        .map_err(|_| AskError::NoAnswer(patience))?
        .map_err(AskError::Kube)
}

/// An item for each change of the lease. Without it a candidate still looks after each pause.
fn changes(leases: Api<Lease>, name: &str) -> impl Stream<Item = ()> + use<> {
    watch_object(leases, name)
        .backoff(Pauses::default())
        .filter_map(async |event| event.inspect_err(|error| request_errors::log(error)).ok())
        .map(drop)
}
