//! What to write instead of a flag of kubectl that a verb does not have.

use crate::cli::kubectl::complete::verb_of;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::ffi::OsString;

/// A verb, its flag in both forms, and what to write instead.
type Unfit = (&'static str, [&'static str; 2], &'static str);

const LABELS: [&str; 2] = ["-l", "--selector"];
const ALL: [&str; 2] = ["-A", "--all-namespaces"];
const OUTPUT: [&str; 2] = ["-o", "--output"];

/// What the verbs that act on pools by name or labels have in common.
const ONE_NAMESPACE: &str = "the verb acts in one namespace; name it with -n";

const UNFIT: [Unfit; 19] = [
    (
        "claim",
        ALL,
        "a claim is created in one namespace; name it with -n",
    ),
    (
        "exec",
        LABELS,
        "a command runs in one sandbox; name its claim: 'kubectl get sbc -l LABELS' lists the claims",
    ),
    (
        "exec",
        ALL,
        "a command runs in one sandbox; name its namespace with -n",
    ),
    (
        "exec",
        OUTPUT,
        "standard output belongs to CMD; 'kubectl get sbc CLAIM -o json' prints the claim",
    ),
    (
        "why",
        LABELS,
        "name one object; 'kubectl warmpool status -l LABELS' explains every pool with these labels",
    ),
    (
        "why",
        ALL,
        "name one object and its namespace with -n; 'kubectl warmpool status -A' explains every pool",
    ),
    (
        "why",
        OUTPUT,
        "why prints sentences; 'kubectl warmpool status POOL -o json' has those of a pool for programs, and 'kubectl get \
         sbc CLAIM -o json' has the conditions of a claim",
    ),
    (
        "drain",
        LABELS,
        "name one node; 'kubectl get nodes -l LABELS' lists the nodes",
    ),
    (
        "drain",
        ALL,
        "without -n, the sandboxes of all namespaces are shown already",
    ),
    (
        "size",
        LABELS,
        "name one pool; 'kubectl get pools -l LABELS' lists the pools",
    ),
    ("size", ALL, "name one pool, and its namespace with -n"),
    ("rollout status", ALL, ONE_NAMESPACE),
    (
        "rollout status",
        OUTPUT,
        "the verb prints a line for each change; 'kubectl get pool POOL -o json' has the status of the pool",
    ),
    ("rollout history", ALL, ONE_NAMESPACE),
    ("rollout undo", ALL, ONE_NAMESPACE),
    ("rollout pause", ALL, ONE_NAMESPACE),
    ("rollout resume", ALL, ONE_NAMESPACE),
    ("rollout restart", ALL, ONE_NAMESPACE),
    ("set image", ALL, ONE_NAMESPACE),
];

/// Adds to an error about an unknown flag what to write instead. `words` follow the name of the program.
pub(super) fn with_advice(mut error: Error, command: &mut Command, words: &[OsString]) -> Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    command.build();
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let verb = verb_of(command, &words).get_bin_name().unwrap_or_default();
    let fits = |unfit: &&Unfit| verb.ends_with(&format!(" {}", unfit.0)) && unfit.1.contains(&flag.as_str());
    let found = UNFIT.iter().find(fits);
    if let Some((_, _, advice)) = found {
        let advice = ContextValue::StyledStrs(vec![StyledStr::from(*advice)]);
        error.insert(ContextKind::Suggested, advice);
    }
    error
}
