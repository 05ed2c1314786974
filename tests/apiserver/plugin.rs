//! Calls the kubectl plugin through a real kubectl.

use crate::cluster::{binaries, repository};
use crate::program::{CommandOutput, Running};
use crate::scene::Scene;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

    /// Leaves it running. kubectl becomes the plugin that it calls, so a signal reaches the plugin.
    pub fn start(self) -> Result<Running, String> {
        Running::start(self.command()?)
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
