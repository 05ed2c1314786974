//! Runs a command in a sandbox with `kubectl exec` as a child process: terminals, streams and exit codes are then just
//! what a person knows of kubectl.

use crate::cli::kubectl::Connection;
use crate::cli::kubectl::claim::signals::{Signals, exit_code};
use rustix::process::{Pid, kill_process};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use thiserror::Error;
use tokio::process::Command;

/// What is looked for in the `PATH`.
const KUBECTL: &str = "kubectl";

/// The flags of `kubectl exec` that are handed on to it.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Run CMD in the sandbox with 'kubectl exec'; its exit code becomes that of this call
    #[arg(long, requires = "command")]
    pub(super) exec: bool,
    /// Pass standard input on to CMD
    #[arg(short = 'i', long, requires = "exec")]
    stdin: bool,
    /// Standard input is a terminal
    #[arg(short = 't', long, requires = "exec")]
    tty: bool,
    /// Container to run CMD in [default: as for kubectl exec]
    #[arg(short, long, requires = "exec", value_name = "NAME")]
    container: Option<String>,
    /// The command and its arguments
    #[arg(last = true, requires = "exec", value_name = "CMD")]
    command: Vec<OsString>,
}

/// Why a command was not run.
#[derive(Debug, Error)]
pub enum ExecError {
    /// There is no kubectl.
    #[error("--exec runs the command with 'kubectl exec', and kubectl is not in the PATH")]
    NoKubectl,
    /// It cannot be run.
    #[error("'kubectl exec' could not be run: {0}")]
    Run(#[from] io::Error),
}

/// Makes sure, before anything is created, that kubectl can be found.
pub(super) fn find_kubectl() -> Result<(), ExecError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(KUBECTL).is_file());
    if found { Ok(()) } else { Err(ExecError::NoKubectl) }
}

/// Runs the command in `sandbox` to its end, and gives its exit code. Signals are handed on to it, and it decides what
/// they mean.
pub(super) async fn run(
    connection: &Connection,
    namespace: &str,
    sandbox: &str,
    arguments: &Arguments,
    signals: &mut Signals,
) -> Result<u8, ExecError> {
    let mut child = Command::new(KUBECTL)
        .args(call(connection, namespace, sandbox, arguments))
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ExecError::NoKubectl,
            _ => ExecError::Run(error),
        })?;
    loop {
        tokio::select! {
            ended = child.wait() => return Ok(code(ended?)),
            signal = signals.next() => {
                let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
                if let Some(id) = id {
                    kill_process(id, signal).map_err(io::Error::from)?;
                }
            }
        }
    }
}

/// The arguments of kubectl.
fn call(connection: &Connection, namespace: &str, sandbox: &str, arguments: &Arguments) -> Vec<OsString> {
    let mut call: Vec<OsString> = vec!["exec".into(), "--namespace".into(), namespace.into()];
    let mut add = |flag: &str, value: Option<&OsStr>| {
        call.extend(value.into_iter().flat_map(|v| [flag.into(), v.to_os_string()]));
    };
    add("--context", connection.context.as_deref().map(OsStr::new));
    add(
        "--kubeconfig",
        connection.kubeconfig.as_deref().map(Path::as_os_str),
    );
    add("--container", arguments.container.as_deref().map(OsStr::new));
    call.extend(arguments.stdin.then(|| "--stdin".into()));
    call.extend(arguments.tty.then(|| "--tty".into()));
    call.extend([sandbox.into(), "--".into()]);
    call.extend(arguments.command.iter().cloned());
    call
}

fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => exit_code(signal),
        (None, None) => 1,
    }
}
