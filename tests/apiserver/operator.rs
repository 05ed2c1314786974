//! Starts, stops and kills the operator as a process.

use crate::cluster::{Cluster, repository};
use crate::lock::lock;
use crate::{signal, wait};
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;

/// Flags of an operator that may stand still for a while and keep its lease.
pub const LONG_LEASE: [&str; 2] = [
    "--leader-elect-lease-duration=30s",
    "--leader-elect-renew-deadline=25s",
];

/// Whether tests may start programs. Held while one starts, so that `end_all` misses none.
static MAY_START: Mutex<bool> = Mutex::new(true);

pub struct Operator {
    child: Child,
    pub log: PathBuf,
    /// A starting API server rejects everybody until it has read its roles.
    pub server_restarts: bool,
}

/// What a process holds.
#[derive(Clone, Debug)]
pub struct Footprint {
    pub resident_kib: u64,
    pub threads: u64,
    /// Open files, connections among them.
    pub files: usize,
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resident_kib,
            threads,
            files,
        } = self;
        write!(
            f,
            "{resident_kib} KiB resident, {threads} threads, {files} open files"
        )
    }
}

impl Operator {
    /// Starts an operator that logs to `log/<name>.log`, with the rights of `kubeconfig` and with additional
    /// `environment`. It serves neither metrics nor health unless `arguments` say where, because several run on one
    /// machine.
    pub fn start(
        cluster: &Cluster,
        name: &str,
        kubeconfig: &Path,
        arguments: &[&str],
        environment: &[(&str, String)],
    ) -> Result<Self, String> {
        let unsaid = |flag: &&str| !arguments.iter().any(|argument| argument.starts_with(flag));
        let serves_nothing = ["--metrics-bind-address", "--health-probe-bind-address"]
            .into_iter()
            .filter(unsaid)
            .map(|flag| format!("{flag}=0"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_warmpool"));
        command
            .arg("controller")
            .args(arguments)
            .args(serves_nothing)
            .env("KUBECONFIG", kubeconfig)
            .envs(environment.iter().map(|(name, value)| (name, value)));
        Self::launch(cluster, name, command)
    }

    /// Starts one with arguments and rights of the caller's choice, which logs to `log/<name>.log`.
    pub fn launch(cluster: &Cluster, name: &str, command: Command) -> Result<Self, String> {
        let log = cluster.dir.join("log").join(format!("{name}.log"));
        let file = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let err = file.try_clone().map_err(|e| e.to_string())?;
        let mut command = in_session_of_its_own(&command);
        command
            .current_dir(repository())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(err);
        Ok(Self {
            child: start_noted(cluster, "the operator", &mut command)?,
            log,
            server_restarts: false,
        })
    }

    /// What it holds at this moment.
    pub fn footprint(&self) -> Result<Footprint, String> {
        let folder = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = fs::read_to_string(folder.join("status")).map_err(|e| e.to_string())?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let number = |name: &str| field(name).ok_or_else(|| format!("no {name} in {status}"));
        Ok(Footprint {
            resident_kib: number("VmRSS:")?,
            threads: number("Threads:")?,
            files: fs::read_dir(folder.join("fd"))
                .map_err(|e| e.to_string())?
                .count(),
        })
    }

    /// A crash: it gets no chance to finish anything.
    pub fn kill(mut self) -> Result<(), String> {
        self.child.kill().map_err(|e| e.to_string())?;
        self.child.wait().map(drop).map_err(|e| e.to_string())?;
        self.is_clean()
    }

    /// SIGTERM; it has to end by itself, with exit code 0.
    pub fn stop(mut self) -> Result<(), String> {
        self.lives()?;
        self.signal("TERM")?;
        self.has_stopped()
    }

    /// After SIGTERM: it ends within the grace period of a pod, with exit code 0.
    pub fn has_stopped(mut self) -> Result<(), String> {
        let status = self.ended(30)?;
        wait::ensure(status.success(), || {
            format!("after SIGTERM the operator ended with {status}\n{}", self.tail())
        })?;
        self.is_clean()
    }

    /// Waits until it has ended by itself.
    pub fn ended(&mut self, seconds: u64) -> Result<ExitStatus, String> {
        wait::until("the operator ended", seconds, || match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            Ok(None) => Err(format!("it still runs\n{}", self.tail())),
            Err(error) => Err(error.to_string()),
        })
    }

    /// Sends it a signal: TERM, STOP, CONT.
    pub fn signal(&self, name: &str) -> Result<(), String> {
        signal::send(self.child.id(), name)
    }

    /// Waits until its log has `words`.
    pub fn says(&self, words: &str, seconds: u64) -> Result<(), String> {
        wait::until(&format!("the operator said {words:?}"), seconds, || {
            wait::ensure(self.text()?.contains(words), || self.tail())
        })
    }

    /// Fails when it has ended by itself.
    pub fn lives(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!(
                "the operator ended by itself with {status}\n{}",
                self.tail()
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Its log must show no panic, and no request that its own role does not allow.
    pub fn is_clean(&self) -> Result<(), String> {
        let log = self.text()?;
        // No Role can grant the right to nodes, so an operator with a Role alone says that it does without.
        let is_about_nodes = |line: &str| line.contains("the operator may not list and watch nodes");
        let denied = |line: &str| line.contains("the operator may not ") && !is_about_nodes(line);
        let denied = |line: &str| denied(line) && !self.server_restarts;
        let bad = |line: &&str| line.contains("panicked at") || denied(line);
        match log.lines().find(bad) {
            None => Ok(()),
            Some(line) => Err(format!("the operator's log has: {line}")),
        }
    }

    /// What it has logged so far.
    pub fn text(&self) -> Result<String, String> {
        fs::read_to_string(&self.log).map_err(|e| format!("{}: {e}", self.log.display()))
    }

    /// The end of its log, for a message.
    pub fn tail(&self) -> String {
        self.text().map_or_else(|error| error, |text| tail(&text, 30))
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let shown = all.iter().skip(all.len().saturating_sub(lines));
    shown.map(|line| format!("    {line}\n")).collect()
}

/// The same command, run in a session of its own. Linux may share the processors among sessions first (autogroup), and in one
/// session the operators of all labs and the tests get as much as one API server. `setsid` becomes the program, so its process
/// keeps its number.
fn in_session_of_its_own(command: &Command) -> Command {
    let mut own = Command::new("setsid");
    own.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => own.env(name, value),
            None => own.env_remove(name),
        };
    }
    own
}

/// Its number and when it began: together they name one process for ever.
fn identity(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let began = stat.rsplit(')').next()?.split_whitespace().nth(19)?.to_string();
    Some(format!("{pid} {began}"))
}

/// Starts a program that works with a cluster, and notes its process: a run that is killed cannot end it. `name` is for errors.
pub fn start_noted(cluster: &Cluster, name: &str, command: &mut Command) -> Result<Child, String> {
    let may_start = lock(&MAY_START);
    if !*may_start {
        return Err(format!("{name} does not start: the control plane is being ended"));
    }
    let spawned = command.spawn();
    let mut child = spawned.map_err(|e| format!("{name} does not start: {e}"))?;
    note(cluster, child.id()).inspect_err(|_| {
        _ = child.kill();
        _ = child.wait();
    })?;
    Ok(child)
}

fn note(cluster: &Cluster, pid: u32) -> Result<(), String> {
    let folder = cluster.dir.join("operators");
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let identity = identity(pid).unwrap_or_default();
    fs::write(folder.join(pid.to_string()), identity).map_err(|e| e.to_string())
}

/// The operators of a cluster that have not ended.
pub fn living(cluster: &Cluster) -> impl Iterator<Item = u32> {
    let noted = fs::read_dir(cluster.dir.join("operators"));
    noted.into_iter().flatten().flatten().filter_map(|entry| {
        let noted = fs::read_to_string(entry.path()).ok()?;
        let pid = noted.split(' ').next()?.parse().ok()?;
        (identity(pid)? == noted).then_some(pid)
    })
}

/// Ends the operators of a cluster, and lets no test start another. An interrupted test cannot end what it started, and may be about
/// to start more.
pub fn end_all(cluster: &Cluster) {
    *lock(&MAY_START) = false;
    end_left_behind(cluster);
}

/// Ends the operators that a killed run left behind.
pub fn end_left_behind(cluster: &Cluster) {
    for pid in living(cluster) {
        _ = signal::send(pid, "KILL");
    }
}
