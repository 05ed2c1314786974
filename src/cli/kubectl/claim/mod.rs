//! `kubectl warmpool claim`: takes a sandbox from a pool, waits for it, and may run a command in it.

mod exec;
mod follow;
mod signals;
pub mod standing;

use crate::api;
use crate::cli::kubectl::Connection;
use crate::cli::kubectl::cluster::ClusterError;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::pool::PoolName;
use crate::cli::kubectl::print;
use crate::cli::kubectl::print::{Format, PrintError};
use crate::cli::kubectl::session::Session;
use crate::client::object_requests::only;
use crate::model::revision::letter;
use exec::ExecError;
use follow::FollowError;
use kube::Api;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject};
use serde_json::json;
use signals::Signals;
use standing::Sandbox;
use std::process::ExitCode;
use std::time::Duration;
use thiserror::Error;

/// Who has written a field, in `metadata.managedFields`.
const FIELD_MANAGER: &str = "kubectl-warmpool";
/// A claim's name becomes the value of a pod label, which can be no longer.
const LONGEST_NAME: usize = 63;
/// Random letters at the end of a name, as many as generateName adds.
const SUFFIX: usize = 5;

/// Arguments of `kubectl warmpool claim`.
#[derive(clap::Args)]
#[command(after_help = "\
Why the claim waits is told on standard error. Without --rm the claim stays until it is deleted, and its sandbox \
with it. Exit code 0: the claim is bound and its sandbox Ready; with --exec the exit code is that of CMD.

Examples:
  kubectl warmpool claim python                              take a sandbox
  kubectl warmpool claim python -it --rm --exec -- sh        a shell in a warm sandbox, given back at the end
  kubectl warmpool claim python --name run-42 --wait=false
  kubectl delete sandboxclaim run-42                         give it back")]
pub(super) struct Arguments {
    /// Name of the pool; pool/NAME and pool.warmpool.dev/NAME say the same
    #[arg(value_name = "POOL")]
    pool: PoolName,
    /// Name of the claim [default: POOL and a random suffix]
    #[arg(long)]
    name: Option<String>,
    /// Wait until the sandbox is Ready; with false only create the claim
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value_t = true, default_missing_value = "true", value_name = "BOOL")]
    wait: bool,
    /// How long to wait, as in 30s, 5m or 1h30m; 0 is for as long as the claim itself waits
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = crate::cli::duration)]
    timeout: Duration,
    #[command(flatten)]
    command: exec::Arguments,
    /// Delete the claim at the end, also after a failure, SIGINT or SIGTERM
    #[arg(long)]
    rm: bool,
    /// Print the claim instead of a line
    #[arg(short, long, value_enum, conflicts_with = "exec")]
    output: Option<Format>,
}

/// Why there is no sandbox to use, or no command run in it.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// The flag needs the sandbox to be there.
    #[error("--{0} needs the sandbox to be waited for; leave out --wait=false")]
    NotWaited(&'static str),
    /// There is no such pool.
    #[error(
        "pool {pool:?} not found in namespace {namespace:?}, so nothing is claimed; 'kubectl get pools -n \
         {namespace}' lists those that are there"
    )]
    NoPool {
        /// Name of the pool.
        pool: String,
        /// Where it was looked for.
        namespace: String,
    },
    /// The API server may have created the claim.
    #[error("{source}; the claim may be there all the same, '{deletion}' deletes it")]
    Unsure {
        /// The command that deletes it.
        deletion: String,
        /// What came instead of an answer.
        source: ClusterError,
    },
    /// The claim has no sandbox that could be used.
    #[error("{title} {source}{advice}")]
    Follow {
        /// The claim.
        title: String,
        /// Why.
        source: Box<FollowError>,
        /// What to do about the claim, where it is left.
        advice: String,
    },
    /// The command was not run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The claim of a call with `--rm` could not be deleted.
    #[error("{source}; the claim could not be deleted, '{deletion}' deletes it")]
    NotRemoved {
        /// The command that deletes it.
        deletion: String,
        /// Why.
        source: ClusterError,
    },
    /// A request failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The outcome could not be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
    /// The runtime or the signals could not be set up.
    #[error("the runtime could not be set up: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<ExitCode, ClaimError> {
    let needs = [("exec", arguments.command.exec), ("rm", arguments.rm)];
    if let Some((flag, _)) = needs.iter().find(|(_, outcomes)| *outcomes && !arguments.wait) {
        return Err(ClaimError::NotWaited(flag));
    }
    if arguments.command.exec {
        exec::find_kubectl()?;
    }
    crate::cli::block_on(async {
        let session = Session::open(connection, &arguments.pool).await?;
        session.pool().await.map_err(|error| no_pool(&session, error))?;
        let signals = Signals::catch()?;
        // Not broken off by a signal: of a claim that may be there or not nobody can clean up.
        let call = Call::begin(connection, arguments, &session).await?;
        call.run(signals).await
    })?
}

fn no_pool(session: &Session, error: ClusterError) -> ClaimError {
    match error {
        ClusterError::Refused(status) if status.code == 404 => ClaimError::NoPool {
            pool: session.name.clone(),
            namespace: session.cluster.namespace.clone(),
        },
        other => other.into(),
    }
}

/// A call whose claim has been created.
struct Call<'a> {
    connection: &'a Connection,
    arguments: &'a Arguments,
    session: &'a Session,
    claims: Api<DynamicObject>,
    claim: DynamicObject,
}

impl<'a> Call<'a> {
    /// Creates the claim. Its name is chosen here and not by the server, so that it is known even if no answer comes.
    async fn begin(
        connection: &'a Connection,
        arguments: &'a Arguments,
        session: &'a Session,
    ) -> Result<Self, ClaimError> {
        let (pool, cluster) = (&session.name, &session.cluster);
        let name = arguments.name.clone().unwrap_or_else(|| fresh_name(pool));
        let kind = ApiResource::erase::<api::SandboxClaim>(&());
        let claim = DynamicObject::new(&name, &kind).data(json!({"spec": {"poolRef": {"name": pool}}}));
        let claims = Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &kind);
        let parameters = PostParams {
            field_manager: Some(FIELD_MANAGER.into()),
            ..PostParams::default()
        };
        let answer = cluster.ask(claims.create(&parameters, &claim)).await;
        let claim = answer.map_err(|error| match error {
            source @ ClusterError::NoAnswer { .. } => {
                let deletion = deletion(&name, &cluster.namespace);
                ClaimError::Unsure { deletion, source }
            }
            other => other.into(),
        })?;
        Ok(Self {
            connection,
            arguments,
            session,
            claims,
            claim,
        })
    }

    /// Does with the claim what the arguments say, and deletes it at the end if they say so.
    async fn run(&self, mut signals: Signals) -> Result<ExitCode, ClaimError> {
        if !self.arguments.wait {
            self.print(&self.claim, "created")?;
            return Ok(ExitCode::SUCCESS);
        }
        print::note(&format!("{} created", self.title()));
        let used = self.wait_and_use(&mut signals).await;
        if self.arguments.rm {
            self.remove().await.inspect_err(|_| {
                // The deletion has the last word, and the first error is not to be lost.
                if let Err(error) = &used {
                    print::note(&format!("error: {error}"));
                }
            })?;
        }
        used
    }

    /// Waits for the sandbox, and runs the command in it if there is one. A signal ends the waiting.
    async fn wait_and_use(&self, signals: &mut Signals) -> Result<ExitCode, ClaimError> {
        let cluster = &self.session.cluster;
        let ready = follow::until_ready(cluster, &self.claims, &self.claim, self.arguments.timeout);
        let (now, sandbox) = tokio::select! {
            ready = ready => ready.map_err(|source| self.no_sandbox(source))?,
            signal = signals.next() => {
                if !self.arguments.rm {
                    print::note(&format!("{} stays{}", self.title(), self.advice()));
                }
                return Ok(ExitCode::from(signals::exit_code(signal.as_raw())));
            }
        };
        self.tell(&now, &sandbox)?;
        if !self.arguments.command.exec {
            return Ok(ExitCode::SUCCESS);
        }
        let command = &self.arguments.command;
        let code = exec::run(
            self.connection,
            &cluster.namespace,
            &sandbox.name,
            command,
            signals,
        );
        Ok(ExitCode::from(code.await?))
    }

    /// Says which sandbox it is. Standard output belongs to the command, if there is one.
    fn tell(&self, now: &DynamicObject, sandbox: &Sandbox) -> Result<(), ClaimError> {
        if self.arguments.command.exec {
            print::note(&format!("{} {}", self.title(), sandbox.line()));
            return Ok(());
        }
        self.print(now, &sandbox.line())
    }

    fn print(&self, claim: &DynamicObject, what: &str) -> Result<(), ClaimError> {
        let title = self.title();
        let text = match self.arguments.output {
            None => format!("{title} {what}\n"),
            Some(format) => print::document(format, claim, &title)?,
        };
        Ok(print::out(&text)?)
    }

    fn no_sandbox(&self, source: FollowError) -> ClaimError {
        let gone = matches!(source, FollowError::Deleted);
        ClaimError::Follow {
            title: self.title(),
            advice: if gone { String::new() } else { self.advice() },
            source: Box::new(source),
        }
    }

    /// Deletes the claim; one that is gone, or another of its name, is not this one's business.
    async fn remove(&self) -> Result<(), ClaimError> {
        let name = pool::name(&self.claim);
        let parameters = only(pool::uid(&self.claim), None);
        let cluster = &self.session.cluster;
        match cluster.ask(self.claims.delete(name, &parameters)).await {
            Ok(_) => {
                print::note(&format!("sandboxclaim.warmpool.dev {name:?} deleted"));
                Ok(())
            }
            Err(ClusterError::Refused(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(source) => Err(ClaimError::NotRemoved {
                deletion: deletion(name, &cluster.namespace),
                source,
            }),
        }
    }

    fn title(&self) -> String {
        standing::title(&self.claim)
    }

    /// How to get rid of a claim that is left.
    fn advice(&self) -> String {
        if self.arguments.rm {
            return String::new();
        }
        let deletion = deletion(pool::name(&self.claim), &self.session.cluster.namespace);
        format!("; '{deletion}' deletes it")
    }
}

fn deletion(claim: &str, namespace: &str) -> String {
    format!("kubectl delete sandboxclaim {claim} -n {namespace}")
}

/// As the server makes a name of generateName: the pool's, cut where it is too long, and a random suffix.
fn fresh_name(pool: &str) -> String {
    let base: String = pool.chars().take(LONGEST_NAME - SUFFIX - 1).collect();
    let suffix: String = (0..SUFFIX).map(|_| letter(rand::random())).collect();
    format!("{base}-{suffix}")
}
