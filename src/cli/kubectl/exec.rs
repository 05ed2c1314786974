//! `kubectl warmpool exec`: runs a command in a sandbox of a claim.

use crate::api;
use crate::cli::kubectl::claim::kubectl_exec::{self, ExecError};
use crate::cli::kubectl::claim::state::{ClaimState, claim_state, title};
use crate::cli::kubectl::claim_argument::ClaimName;
use crate::cli::kubectl::cluster::Cluster;
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use crate::cli::runtime::block_on;
use crate::cli::unix_signals::Signals;
use kube::core::DynamicObject;
use serde_json::Value;
use std::process::ExitCode;
use thiserror::Error;

/// Arguments of `kubectl warmpool exec`.
#[derive(clap::Args)]
#[command(after_help = "\
The exit code is that of CMD. Exit code 1: the claim has no Ready sandbox, or the call failed. Exit code 2: the arguments \
are wrong.

Examples:
  kubectl warmpool exec run-42 -- python -V
  kubectl warmpool exec run-42 -it -- sh
  kubectl warmpool exec batch-7 --sandbox python-f6mdcc262p-zf44b -- hostname")]
pub(super) struct Arguments {
    /// The claim: NAME or claim/NAME
    #[arg(value_name = "CLAIM")]
    claim: ClaimName,
    /// Name of the sandbox, of a claim for several [default: the first]
    #[arg(long, value_name = "POD")]
    sandbox: Option<String>,
    #[command(flatten)]
    command: kubectl_exec::Arguments,
}

/// The command was not run.
#[derive(Debug, Error)]
pub enum ExecVerbError {
    /// There is no command.
    #[error("write the command after --, as in 'kubectl warmpool exec {0} -- sh'")]
    NoCommand(String),
    /// The claim has no Ready sandbox. Holds the claim and the rest of the sentence.
    #[error("{0} {1}")]
    NotReady(String, String),
    /// The claim has no such sandbox.
    #[error("{claim} has no sandbox {sandbox:?}; it has {}", .has.join(", "))]
    NoSandbox {
        /// The claim.
        claim: String,
        /// The sandbox that was requested.
        sandbox: String,
        /// The sandboxes that there are.
        has: Vec<String>,
    },
    /// kubectl could not be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// As for every verb.
    #[error(transparent)]
    Verb(VerbError),
}

wraps_verb_error!(ExecVerbError);

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<ExitCode, ExecVerbError> {
    if !arguments.command.has_command() {
        return Err(ExecVerbError::NoCommand(arguments.claim.0.clone()));
    }
    kubectl_exec::find_kubectl()?;
    block_on(async {
        let cluster = Cluster::open(connection).await?;
        let claims = cluster.objects::<api::SandboxClaim>();
        let claim = cluster.ask(claims.get(&arguments.claim.0)).await?;
        let sandbox = choose(&claim, arguments.sandbox.as_deref())?;
        let mut signals = Signals::catch()?;
        let code = kubectl_exec::run(
            connection,
            &cluster.namespace,
            &sandbox,
            &arguments.command,
            &mut signals,
        );
        Ok(ExitCode::from(code.await?))
    })?
}

/// The sandbox of `claim` with the name `wanted`, or the first.
///
/// # Errors
/// [`ExecVerbError::NotReady`] and [`ExecVerbError::NoSandbox`].
pub fn choose(claim: &DynamicObject, wanted: Option<&str>) -> Result<String, ExecVerbError> {
    let not_ready = |why: String| ExecVerbError::NotReady(title(claim), why);
    let first = match claim_state(claim) {
        ClaimState::Ready(sandbox) => sandbox.name,
        ClaimState::Ended(why) => return Err(not_ready(why)),
        ClaimState::Waiting(Some(why)) => return Err(not_ready(format!("waits: {why}"))),
        ClaimState::Waiting(None) => return Err(not_ready("waits, and its status is empty".into())),
    };
    let Some(wanted) = wanted else {
        return Ok(first);
    };
    let listed = claim.data.pointer("/status/sandboxes").and_then(Value::as_array);
    let names = listed
        .into_iter()
        .flatten()
        .filter_map(|sandbox| sandbox["name"].as_str());
    let has: Vec<String> = names.map(str::to_string).collect();
    if has.iter().any(|name| name == wanted) {
        return Ok(wanted.to_string());
    }
    Err(ExecVerbError::NoSandbox {
        claim: title(claim),
        sandbox: wanted.to_string(),
        has,
    })
}
