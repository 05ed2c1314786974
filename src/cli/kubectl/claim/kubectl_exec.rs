//! Runs a command in a sandbox with `kubectl exec` as a child process.
//!
//! Terminals, streams and exit codes then behave exactly as in kubectl.

use crate::cli::kubectl::connection::Connection;
use crate::cli::unix_signals::{Signals, exit_code};
use rustix::process::{Pid, kill_process};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use thiserror::Error;
use tokio::process::Command;

/// Name of the program in the `PATH`.
const KUBECTL: &str = "kubectl";

/// A command, and the flags that are passed to `kubectl exec`.
#[derive(clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Pass standard input to CMD
    #[arg(short = 'i', long, requires = "command")]
    stdin: bool,
    /// Run CMD in a terminal
    #[arg(short = 't', long, requires = "command")]
    tty: bool,
    /// Container to run CMD in [default: as for kubectl exec]
    #[arg(short, long, requires = "command", value_name = "NAME")]
    container: Option<String>,
    /// The command and its arguments; it runs with 'kubectl exec', and its exit code is that of the call
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Arguments {
    /// There is a command to run.
    pub fn has_command(&self) -> bool {
        !self.command.is_empty()
    }
}

/// The command was not run.
#[derive(Debug, Error)]
pub enum ExecError {
    /// kubectl is not in the `PATH`.
    #[error("the command is run with 'kubectl exec', and kubectl is not in the PATH")]
    NoKubectl,
    /// The child process could not be started, or a signal could not be sent to it.
    #[error("cannot run 'kubectl exec': {0}")]
    Run(#[from] io::Error),
}

/// Checks that kubectl is in the `PATH`. Called before a claim is created.
pub fn find_kubectl() -> Result<(), ExecError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(KUBECTL).is_file());
    if found { Ok(()) } else { Err(ExecError::NoKubectl) }
}

/// Runs the command in `sandbox` and returns its exit code. Forwards signals to the child process.
pub async fn run(
    connection: &Connection,
    namespace: &str,
    sandbox: &str,
    arguments: &Arguments,
    signals: &mut Signals,
) -> Result<u8, ExecError> {
    let mut child = Command::new(KUBECTL)
        .args(kubectl_arguments(connection, namespace, sandbox, arguments))
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
fn kubectl_arguments(
    connection: &Connection,
    namespace: &str,
    sandbox: &str,
    arguments: &Arguments,
) -> Vec<OsString> {
    let mut list: Vec<OsString> = vec!["exec".into(), "--namespace".into(), namespace.into()];
    let mut add = |flag: &str, value: Option<&OsStr>| {
        list.extend(value.into_iter().flat_map(|v| [flag.into(), v.to_os_string()]));
    };
    add("--context", connection.context.as_deref().map(OsStr::new));
    add(
        "--kubeconfig",
        connection.kubeconfig.as_deref().map(Path::as_os_str),
    );
    add("--as", connection.as_user.as_deref().map(OsStr::new));
    for group in &connection.as_group {
        add("--as-group", Some(OsStr::new(group)));
    }
    add("--container", arguments.container.as_deref().map(OsStr::new));
    list.extend(arguments.stdin.then(|| "--stdin".into()));
    list.extend(arguments.tty.then(|| "--tty".into()));
    list.extend([sandbox.into(), "--".into()]);
    list.extend(arguments.command.iter().cloned());
    list
}

fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => exit_code(signal),
        (None, None) => 1,
    }
}
