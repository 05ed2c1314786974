//! `kubectl warmpool claim`: creates a claim, waits for its sandbox, runs a command.

mod delete_at_end;
pub(super) mod kubectl_exec;
mod new_claim;
pub mod state;
mod wait;

use crate::api;
use crate::cli::kubectl::cluster::{Cluster, ClusterError};
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::dry_run::DryRun;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::print::{self, Format};
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use crate::cli::runtime::block_on;
use crate::cli::unix_signals::{self, Signals};
use delete_at_end::NotDeleted;
use kube::Api;
use kube::api::PostParams;
use kube::core::DynamicObject;
use kubectl_exec::ExecError;
use state::ReadySandbox;
use std::process::ExitCode;
use std::time::Duration;
use thiserror::Error;
use wait::WaitError;

/// Field manager of the claim, in `metadata.managedFields`.
const FIELD_MANAGER: &str = "kubectl-warmpool";

/// Arguments of `kubectl warmpool claim`.
#[derive(clap::Args)]
#[command(after_help = "\
Prints to standard error why the claim waits. Without --rm, the claim and its sandbox remain until you release it. Exit \
code 0: the claim is bound and its sandboxes are Ready. Exit code 1: it is not, or the call failed. Exit code 2: the \
arguments are wrong. Exit code 128 and more: a signal ended the call. With CMD, the exit code is that of CMD.

Examples:
  kubectl warmpool claim python                              claim a sandbox
  kubectl warmpool claim python -it --rm -- sh               a shell in a warm sandbox, deleted when it ends
  kubectl warmpool claim -l lang=python --replicas=3 --lifetime=1h
  kubectl warmpool claim python --name run-42 --wait=false
  kubectl warmpool claim python --dry-run=client -o yaml     print the claim, and create nothing
  kubectl warmpool release run-42                            release the sandbox")]
pub(super) struct Arguments {
    #[command(flatten)]
    request: new_claim::Arguments,
    /// Wait until the sandbox is Ready; false only creates the claim
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value_t = true, default_missing_value = "true", value_name = "BOOL")]
    wait: bool,
    /// How long to wait, as in 30s, 5m or 1h30m; 0 waits until the sandbox is Ready or the claim ends
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = crate::cli::duration::parse)]
    timeout: Duration,
    /// Run CMD; what follows -- is CMD without it, too
    #[arg(long, requires = "command")]
    exec: bool,
    #[command(flatten)]
    command: kubectl_exec::Arguments,
    /// Create nothing: client prints the claim, server has the API server validate it
    #[arg(long, value_enum, default_value_t = DryRun::None, conflicts_with_all = ["exec", "command", "rm"])]
    dry_run: DryRun,
    /// Delete the claim at the end, also after a failure or a signal
    #[arg(long)]
    rm: bool,
    /// Print the claim in this format [default: one line that names the sandbox]
    #[arg(short, long, value_enum, conflicts_with = "command")]
    output: Option<Format>,
}

/// The claim has no Ready sandbox, or the command was not run.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// The flag needs `--wait`.
    #[error("{0} requires that the call waits for the sandbox; leave out --wait=false")]
    NotWaited(&'static str),
    /// The pool does not exist.
    #[error(
        "pool {pool:?} not found in namespace {namespace:?}, so nothing is claimed; 'kubectl get pools -n \
         {namespace}' lists those that are there"
    )]
    NoPool {
        /// Name of the pool.
        pool: String,
        /// Namespace of the call.
        namespace: String,
    },
    /// No answer came to the create, so the claim may exist.
    #[error("{source}; the claim may exist, '{deletion}' deletes it")]
    Unsure {
        /// The command that deletes the claim.
        deletion: String,
        /// Cause.
        source: ClusterError,
    },
    /// The claim has no Ready sandbox.
    #[error("{title} {source}{advice}")]
    Wait {
        /// Resource and name of the claim.
        title: String,
        /// Cause.
        source: Box<WaitError>,
        /// How to delete the claim; empty when the call deletes it.
        advice: String,
    },
    /// The command was not run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// `--rm` could not delete the claim.
    #[error(transparent)]
    NotDeleted(#[from] NotDeleted),
    /// As for every verb.
    #[error(transparent)]
    Verb(VerbError),
}

wraps_verb_error!(ClaimError);

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<ExitCode, ClaimError> {
    let needs = [
        ("a command after --", arguments.command.has_command()),
        ("--rm", arguments.rm),
    ];
    if let Some((flag, _)) = needs.iter().find(|(_, set)| *set && !arguments.wait) {
        return Err(ClaimError::NotWaited(flag));
    }
    if arguments.command.has_command() {
        kubectl_exec::find_kubectl()?;
    }
    let claim = arguments.request.claim();
    if arguments.dry_run == DryRun::Client {
        print_claim(arguments.output, &claim, "created (dry run)")?;
        return Ok(ExitCode::SUCCESS);
    }
    block_on(async {
        let cluster = Cluster::open(connection).await?;
        if let Some(pool) = &arguments.request.pool {
            find_pool(&cluster, &pool.0).await?;
        }
        let signals = Signals::catch()?;
        // A signal does not interrupt the create, because afterwards it would be unknown whether the claim exists.
        let call = Call::begin(connection, arguments, &cluster, &claim).await?;
        call.run(signals).await
    })?
}

/// Checks that the pool exists.
async fn find_pool(cluster: &Cluster, pool: &str) -> Result<(), ClaimError> {
    match cluster.ask(cluster.objects::<api::Pool>().get(pool)).await {
        Ok(_) => Ok(()),
        Err(ClusterError::Rejected(status)) if status.code == 404 => Err(ClaimError::NoPool {
            pool: pool.to_string(),
            namespace: cluster.namespace.clone(),
        }),
        Err(other) => Err(other.into()),
    }
}

/// A call of the verb after it has created its claim.
struct Call<'a> {
    connection: &'a Connection,
    arguments: &'a Arguments,
    cluster: &'a Cluster,
    claims: Api<DynamicObject>,
    claim: DynamicObject,
}

impl<'a> Call<'a> {
    /// Creates the claim.
    async fn begin(
        connection: &'a Connection,
        arguments: &'a Arguments,
        cluster: &'a Cluster,
        claim: &DynamicObject,
    ) -> Result<Self, ClaimError> {
        let claims = cluster.objects::<api::SandboxClaim>();
        let parameters = PostParams {
            field_manager: Some(FIELD_MANAGER.into()),
            dry_run: arguments.dry_run == DryRun::Server,
        };
        let answer = cluster.ask(claims.create(&parameters, claim)).await;
        let claim = answer.map_err(|error| match error {
            source @ ClusterError::NoAnswer { .. } => {
                let deletion = delete_at_end::command(pool::name(claim), &cluster.namespace);
                ClaimError::Unsure { deletion, source }
            }
            other => other.into(),
        })?;
        Ok(Self {
            connection,
            arguments,
            cluster,
            claims,
            claim,
        })
    }

    /// Waits for the sandbox and runs the command as the arguments say. Deletes the claim at the end with `--rm`.
    async fn run(&self, mut signals: Signals) -> Result<ExitCode, ClaimError> {
        if self.arguments.dry_run == DryRun::Server {
            self.print(&self.claim, "created (server dry run)")?;
            return Ok(ExitCode::SUCCESS);
        }
        if !self.arguments.wait {
            self.print(&self.claim, "created")?;
            return Ok(ExitCode::SUCCESS);
        }
        print::note(&format!("{} created", self.title()));
        let used = self.wait_and_use(&mut signals).await;
        if self.arguments.rm {
            delete_at_end::delete(self.cluster, &self.claims, &self.claim)
                .await
                .inspect_err(|_| {
                    // The error of the deletion is returned, so the earlier error is printed here.
                    if let Err(error) = &used {
                        print::note(&format!("error: {error}"));
                    }
                })?;
        }
        used
    }

    /// Waits for the sandbox, and runs the command in it with `--exec`. A signal ends the wait.
    async fn wait_and_use(&self, signals: &mut Signals) -> Result<ExitCode, ClaimError> {
        let cluster = self.cluster;
        let ready = wait::until_ready(cluster, &self.claims, &self.claim, self.arguments.timeout);
        let (now, sandbox) = tokio::select! {
            ready = ready => ready.map_err(|source| self.no_sandbox(source))?,
            signal = signals.next() => {
                if !self.arguments.rm {
                    print::note(&format!("{} remains{}", self.title(), self.advice()));
                }
                return Ok(ExitCode::from(unix_signals::exit_code(signal.as_raw())));
            }
        };
        self.print_outcome(&now, &sandbox)?;
        if !self.arguments.command.has_command() {
            return Ok(ExitCode::SUCCESS);
        }
        let command = &self.arguments.command;
        let code = kubectl_exec::run(
            self.connection,
            &cluster.namespace,
            &sandbox.name,
            command,
            signals,
        );
        Ok(ExitCode::from(code.await?))
    }

    /// Prints which sandbox the claim has; to standard error with `--exec`, because standard output belongs to the
    /// command.
    fn print_outcome(&self, now: &DynamicObject, sandbox: &ReadySandbox) -> Result<(), ClaimError> {
        if self.arguments.command.has_command() {
            print::note(&format!("{} {}", self.title(), sandbox.outcome()));
            return Ok(());
        }
        self.print(now, &sandbox.outcome())
    }

    fn print(&self, claim: &DynamicObject, outcome: &str) -> Result<(), ClaimError> {
        print_claim(self.arguments.output, claim, outcome)
    }

    fn no_sandbox(&self, source: WaitError) -> ClaimError {
        let deleted = matches!(source, WaitError::Deleted);
        ClaimError::Wait {
            title: self.title(),
            advice: if deleted { String::new() } else { self.advice() },
            source: Box::new(source),
        }
    }

    fn title(&self) -> String {
        state::title(&self.claim)
    }

    /// How to delete the claim; empty with `--rm`.
    fn advice(&self) -> String {
        if self.arguments.rm {
            return String::new();
        }
        let command = delete_at_end::command(pool::name(&self.claim), &self.cluster.namespace);
        format!("; '{command}' deletes it")
    }
}

/// Prints the claim in this format, or what became of it.
fn print_claim(format: Option<Format>, claim: &DynamicObject, outcome: &str) -> Result<(), ClaimError> {
    let title = state::title(claim);
    let text = match format {
        None => format!("{title} {outcome}\n"),
        Some(format) => print::document(format, claim, &title)?,
    };
    Ok(print::out(&text)?)
}
