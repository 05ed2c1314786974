//! Calls the kubectl plugin through a real kubectl.

use crate::cluster::{binaries, repository};
use crate::scene::Scene;
use crate::wait;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::NamedTempFile;

/// What a call of the plugin came to.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl CommandOutput {
    /// It succeeded and said exactly this, with nothing on stderr.
    pub fn is(&self, out: &str) -> Result<(), String> {
        let same = self.code == Some(0) && self.out == out && self.err.is_empty();
        wait::ensure(same, || format!("expected {out:?}, got {self:?}"))
    }

    /// It succeeded, and printed only this on stderr.
    pub fn says_nothing_but(&self, err: &str) -> Result<(), String> {
        let same = self.code == Some(0) && self.out.is_empty() && self.err == err;
        wait::ensure(same, || format!("expected the note {err:?}, got {self:?}"))
    }

    /// It failed with this on stderr.
    pub fn fails(&self, err: &str) -> Result<(), String> {
        let same = self.code == Some(1) && self.err == err;
        wait::ensure(same, || format!("expected the failure {err:?}, got {self:?}"))
    }

    /// It followed a rollout to a good end, saying nothing twice.
    pub fn ends_with(&self, last: &str) -> Result<Vec<&str>, String> {
        let lines: Vec<&str> = self.out.lines().collect();
        let once = lines.windows(2).all(|two| two[0] != two[1]);
        let good = self.code == Some(0) && self.err.is_empty() && lines.last() == Some(&last) && once;
        wait::ensure(good, || format!("expected the end {last:?}, got {self:?}"))?;
        Ok(lines)
    }
}

/// `kubectl warmpool rollout VERB ...` in the namespace of the scene, run to its end.
pub fn rollout(scene: &Scene, arguments: &[&str]) -> Result<CommandOutput, String> {
    Call::of(scene, &[&["rollout"], arguments].concat()).run()
}

/// A call of the plugin in the namespace of a scene.
pub struct Call<'a> {
    scene: &'a Scene,
    arguments: Vec<&'a str>,
    first_in_path: Option<PathBuf>,
}

impl<'a> Call<'a> {
    /// `kubectl warmpool ...`
    pub fn of(scene: &'a Scene, arguments: &[&'a str]) -> Self {
        Self {
            scene,
            arguments: arguments.to_vec(),
            first_in_path: None,
        }
    }

    /// What the plugin calls by name is looked for in `folder` first.
    pub fn with_first_in_path(mut self, folder: &Path) -> Self {
        self.first_in_path = Some(folder.to_path_buf());
        self
    }

    /// Runs it to its end.
    pub fn run(self) -> Result<CommandOutput, String> {
        let output = self.command()?.output();
        output.map(CommandOutput::from).map_err(|e| e.to_string())
    }

    /// Runs it to its end in a terminal with so many columns, which has both its outputs.
    pub fn in_terminal(self, columns: u16) -> Result<CommandOutput, String> {
        let call = self.command()?;
        let words = [call.get_program()].into_iter().chain(call.get_args());
        let words: Vec<_> = words
            .map(|word| format!("'{}'", word.to_string_lossy()))
            .collect();
        let line = format!("stty cols {columns} && exec {}", words.join(" "));
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        script.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = script.current_dir(repository()).stdin(Stdio::null()).output();
        output.map(CommandOutput::from).map_err(|e| e.to_string())
    }

    /// Leaves it running.
    pub fn start(self) -> Result<Running, String> {
        let out = NamedTempFile::new().map_err(|e| e.to_string())?;
        let to = out.reopen().map_err(|e| e.to_string())?;
        let child = self.command()?.stdout(to).stderr(Stdio::piped()).spawn();
        let child = Some(child.map_err(|e| e.to_string())?);
        Ok(Running { child, out })
    }

    fn command(&self) -> Result<Command, String> {
        let cluster = &self.scene.lab.cluster;
        let folders = self.first_in_path.iter().cloned().chain([link(&cluster.dir)?]);
        let mut command = Command::new(binaries().join("kubectl"));
        command.args(["warmpool", "-n", &self.scene.namespace]);
        command.args(&self.arguments).stdin(Stdio::null());
        command.current_dir(repository()).env("PATH", path_with(folders)?);
        command.env("KUBECONFIG", cluster.kubeconfig());
        Ok(command)
    }
}

/// A running call. Dropping it kills the process.
pub struct Running {
    child: Option<Child>,
    /// What it prints goes here, and can be read meanwhile.
    out: NamedTempFile,
}

impl Running {
    /// Waits until it has printed something. `rollout status` prints nothing before it has read the pool.
    pub fn has_begun(&self) -> Result<(), String> {
        wait::until("kubectl warmpool had printed something", 60, || {
            wait::ensure(!self.printed()?.is_empty(), || "nothing".into())
        })
    }

    fn printed(&self) -> Result<String, String> {
        fs::read_to_string(self.out.path()).map_err(|e| e.to_string())
    }

    /// Sends it a signal, as in `INT`. kubectl becomes the plugin it calls, so the process is the same.
    pub fn signal(&self, name: &str) -> Result<(), String> {
        let child = self.child.as_ref().ok_or("it has ended before")?;
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &child.id().to_string()])
            .status()
            .map_err(|e| e.to_string())?;
        wait::ensure(sent.success(), || format!("SIG{name} could not be sent"))
    }

    /// Waits until it has ended by itself.
    pub fn end(mut self) -> Result<CommandOutput, String> {
        wait::until("kubectl warmpool had ended", 60, || match &mut self.child {
            Some(child) => match child.try_wait().map_err(|e| e.to_string())? {
                Some(_) => Ok(()),
                None => Err("it runs".into()),
            },
            None => Ok(()),
        })?;
        let child = self.child.take().ok_or("it has ended before")?;
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        let out = self.printed()?;
        Ok(CommandOutput {
            out,
            ..CommandOutput::from(output)
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// A folder with the binary under the plugin's name. Tests run side by side, so it may be there already.
fn link(cluster: &Path) -> Result<PathBuf, String> {
    let folder = cluster.join("plugin");
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    match symlink(env!("CARGO_BIN_EXE_warmpool"), folder.join("kubectl-warmpool")) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.to_string()),
        _ => Ok(folder),
    }
}

fn path_with(folders: impl Iterator<Item = PathBuf>) -> Result<OsString, String> {
    let all = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(folders.chain(std::env::split_paths(&all))).map_err(|e| e.to_string())
}
