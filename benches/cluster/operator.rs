//! Starts, measures and ends the operator as a process.

use crate::{Outcome, parts};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The verb of the program that serves claims. This benchmark is the bare client when it is called with it.
pub const VERB: &str = "controller";

/// Becomes the program that the arguments name once stdin is closed.
const BECOME: &str = r#"read -r _; exec "$0" "$@" </dev/null"#;
/// Lines of the log shown after a failure.
const TAIL: usize = 30;
/// How long a stopped operator may take to end.
const STOPS_WITHIN: Duration = Duration::from_secs(30);

/// Whether the operator takes part in leader election. A term of 15 s would hold up the next phase, because most phases
/// kill their operator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Election {
    Off,
    On,
}

impl Election {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Off => &["--leader-elect=false"],
            Self::On => &["--leader-elect-resource-namespace=warmpool-system"],
        }
    }
}

/// When a started operator begins to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    AtOnce,
    /// At [`Operator::begin`]. Until then its process is a shell that waits to become the operator.
    WhenTold,
}

pub struct Operator {
    child: Child,
}

impl Operator {
    pub fn start(
        binary: &Path,
        kubeconfig: &Path,
        filter: &str,
        election: Election,
        begins: Begins,
        log: &Path,
    ) -> Outcome<Self> {
        let file = File::create(log).map_err(|e| format!("{}: {e}", log.display()))?;
        let (mut command, stdin) = match begins {
            Begins::AtOnce => (Command::new(binary), Stdio::null()),
            Begins::WhenTold => {
                let mut shell = Command::new("sh");
                shell.args(["-c", BECOME]).arg(binary);
                (shell, Stdio::piped())
            }
        };
        let child = command
            .args([VERB, "--log", filter])
            .args(election.flags())
            // Other processes on this machine may use the default ports.
            .args(["--metrics-bind-address=0", "--health-probe-bind-address=0"])
            .env("KUBECONFIG", kubeconfig)
            .env("NO_COLOR", "1")
            // Ctrl-C goes to the benchmark alone, which then ends the operator.
            .process_group(0)
            .stdin(stdin)
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .map_err(|e| format!("{} does not start: {e}", binary.display()))?;
        Ok(Self { child })
    }

    /// Has the operator run if it was to wait for that. Its process stays the same.
    pub fn begin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Stops the operator as Kubernetes does, so that it releases its lease, and waits until it has ended.
    pub async fn stop(mut self) -> Outcome<()> {
        let pid = Pid::from_raw(self.child.id().try_into()?).ok_or("no process")?;
        kill_process(pid, Signal::TERM)?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > STOPS_WITHIN {
                return Err(format!("the operator runs {STOPS_WITHIN:?} after SIGTERM").into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if the operator has ended by itself.
    pub fn is_running(&mut self) -> Outcome<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the operator ended by itself with {status}").into()),
        }
    }

    /// Processor time used so far, in seconds.
    pub fn cpu_seconds(&self) -> Outcome<f64> {
        parts::cpu_seconds(self.child.id())
    }

    /// Resident memory in MiB.
    pub fn resident_mib(&self) -> Outcome<f64> {
        parts::resident_mib(self.child.id())
    }

    /// The most memory that was resident since the start, in MiB.
    pub fn peak_mib(&self) -> Outcome<f64> {
        parts::peak_mib(self.child.id())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The end of an operator's log.
pub fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines.iter().skip(lines.len().saturating_sub(TAIL));
    shown.map(|line| format!("    {line}\n")).collect()
}
