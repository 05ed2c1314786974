//! Completes the plugin for kubectl, which calls `kubectl_complete-warmpool` with the words of the line.
//!
//! The last word is the one to complete. A candidate stands on each line, and the last line tells kubectl to add no
//! file names.

use clap::{Arg, Command};
use std::ffi::OsStr;
use std::path::Path;

/// The name under which kubectl finds the program.
const NAME: &str = "kubectl_complete-warmpool";
/// `ShellCompDirectiveNoFileComp` of cobra.
const NO_FILES: &str = ":4";

/// Whether `argv0` is the name of the program.
pub(super) fn is_called(argv0: Option<&OsStr>) -> bool {
    argv0.and_then(|path| Path::new(path).file_name()) == Some(OsStr::new(NAME))
}

/// The answer for the words that follow `kubectl warmpool`.
pub fn answer(command: &mut Command, words: &[String]) -> String {
    command.build();
    let (last, before) = words
        .split_last()
        .map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut lines = candidates(verb_of(command, before), last);
    lines.push(NO_FILES.to_string());
    lines.join("\n") + "\n"
}

/// The verb that these words name.
pub(super) fn verb_of<'a>(command: &'a Command, words: &[String]) -> &'a Command {
    words.iter().fold(command, |command, word| {
        let verb = |verb: &&Command| verb.get_name() == word;
        command.get_subcommands().find(verb).unwrap_or(command)
    })
}

/// The verbs or flags that begin with `start`.
fn candidates(command: &Command, start: &str) -> Vec<String> {
    let line = |name: String, about: Option<String>| match about {
        Some(about) => format!("{name}\t{}", about.lines().next().unwrap_or_default()),
        None => name,
    };
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs = verbs.map(|verb| {
        line(
            verb.get_name().to_string(),
            verb.get_about().map(ToString::to_string),
        )
    });
    let flag = |flag: &Arg| {
        Some((
            format!("--{}", flag.get_long()?),
            flag.get_help().map(ToString::to_string),
        ))
    };
    let flags = command
        .get_arguments()
        .filter(|flag| !flag.is_hide_set())
        .filter_map(flag);
    let flags = flags.map(|(name, help)| line(name, help));
    let all: Vec<String> = if start.starts_with('-') {
        flags.collect()
    } else {
        verbs.collect()
    };
    all.into_iter().filter(|line| line.starts_with(start)).collect()
}
