//! `completion` and `man`: prints what a shell completes, and the man pages.

use clap::{Args, Command};
use clap_complete::Shell;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Arguments of `completion`.
#[derive(Args)]
#[command(after_help = "\
kubectl completes the plugin by itself where a link of this program named kubectl_complete-warmpool is in the PATH.

Examples:
  source <(warmpool completion bash)
  warmpool completion zsh > ~/.zfunc/_warmpool")]
pub(super) struct CompletionArguments {
    /// The shell
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  warmpool man --out-dir ~/.local/share/man/man1")]
pub(super) struct ManArguments {
    /// Write one page per command into this directory
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,
}

/// Nothing was written.
#[derive(Debug, Error)]
pub enum CompletionError {
    /// Standard output is closed or full.
    #[error("cannot print the completion: {0}")]
    Print(#[source] io::Error),
    /// A page could not be written.
    #[error("cannot write the man pages into {}: {source}", folder.display())]
    Write {
        /// The folder.
        folder: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// Prints the completion script of `command`.
pub(super) fn print(mut command: Command, arguments: &CompletionArguments) -> Result<(), CompletionError> {
    let name = command.get_name().to_string();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    io::Write::write_all(&mut io::stdout(), &script).map_err(CompletionError::Print)
}

/// Writes the man pages of each of `commands` and of their verbs.
pub(super) fn write_pages(
    commands: impl IntoIterator<Item = Command>,
    arguments: &ManArguments,
) -> Result<(), CompletionError> {
    let folder = &arguments.out_dir;
    let written = commands
        .into_iter()
        .try_for_each(|command| clap_mangen::generate_to(command, folder));
    written.map_err(|source| CompletionError::Write {
        folder: folder.clone(),
        source,
    })
}
