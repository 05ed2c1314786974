//! Checks the name of the binary, its help and its arguments.

use clap::error::ErrorKind;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};
use warmpool::cli::kubectl::pool_name::{PoolName, PoolNameError};
use warmpool::cli::kubectl::{command, usage_error};

/// Runs the binary under `name`, without a kubeconfig and with an empty PATH.
pub fn run_as(name: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join(name);
    symlink(env!("CARGO_BIN_EXE_warmpool"), &link).unwrap();
    let mut command = Command::new(&link);
    command.env("KUBECONFIG", folder.path().join("none"));
    command.env_remove("KUBERNETES_SERVICE_HOST").env("PATH", "");
    command.args(arguments).output().unwrap()
}

pub fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

fn read(written: &str) -> Result<PoolName, PoolNameError> {
    written.parse()
}

#[test]
fn the_name_of_the_binary_selects_operator_or_plugin() {
    let plugin = run_as("kubectl-warmpool", &["rollout", "--help"]);
    assert!(plugin.status.success(), "{}", printed(&plugin));
    assert!(
        printed(&plugin).contains("Usage: kubectl warmpool rollout"),
        "{}",
        printed(&plugin)
    );
    let operator = run_as("warmpool", &["rollout", "--help"]);
    assert!(!operator.status.success(), "{}", printed(&operator));
}

#[test]
fn the_help_of_the_operator_mentions_the_plugin() {
    let help = printed(&run_as("warmpool", &["--help"]));
    assert!(help.contains("kubectl-warmpool"), "{help}");
}

#[test]
fn the_help_of_every_verb_has_examples() {
    for verb in ["status", "history", "undo", "pause", "resume", "restart"] {
        let help = printed(&run_as("kubectl-warmpool", &["rollout", verb, "--help"]));
        let example = format!("  kubectl warmpool rollout {verb} python");
        assert!(help.contains("Examples:") && help.contains(&example), "{help}");
    }
    for verb in ["claim", "exec", "release", "why", "status", "top", "plan"] {
        let help = printed(&run_as("kubectl-warmpool", &[verb, "--help"]));
        let example = format!("  kubectl warmpool {verb} ");
        assert!(help.contains("Examples:") && help.contains(&example), "{help}");
    }
}

#[test]
fn a_pool_is_named_with_or_without_its_kind_as_in_kubectl() {
    for written in [
        "python",
        "pool/python",
        "pools/python",
        "wp/python",
        "Pool/python",
        "pool.warmpool.dev/python",
        "pools.v1alpha1.warmpool.dev/python",
    ] {
        assert_eq!(read(written), Ok(PoolName("python".into())), "{written}");
    }
}

#[test]
fn an_argument_that_names_no_pool_is_rejected_with_a_hint() {
    assert_eq!(
        read("deployment/python"),
        Err(PoolNameError::Kind("deployment/python".into()))
    );
    for name in ["", "../secrets", "Python", "a b", "-n"] {
        assert_eq!(
            read(&format!("pool/{name}")),
            Err(PoolNameError::Name(name.into()))
        );
    }
    let output = run_as("kubectl-warmpool", &["rollout", "status", "deployment/python"]);
    let words = "\"deployment/python\" is not a pool; write the pool's name alone, or pool/NAME";
    assert_eq!(output.status.code(), Some(2));
    assert!(printed(&output).contains(words), "{}", printed(&output));
}

#[test]
fn without_a_cluster_the_plugin_fails_with_an_error() {
    let output = run_as("kubectl-warmpool", &["rollout", "status", "python"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        printed(&output).starts_with("error: no cluster to connect to"),
        "{}",
        printed(&output)
    );
}

#[test]
fn a_timeout_is_written_as_in_kubectl() {
    let with = |timeout: &str| {
        let flag = format!("--timeout={timeout}");
        let output = run_as("kubectl-warmpool", &["rollout", "status", "python", &flag]);
        output.status.code()
    };
    for good in ["0", "0s", "30s", "1m30s", "1.5h", "300ms"] {
        assert_eq!(
            with(good),
            Some(1),
            "{good} is valid, so the error is the missing cluster"
        );
    }
    for bad in ["30", "-5s", "soon", ""] {
        assert_eq!(with(bad), Some(2), "{bad}");
    }
}

#[test]
fn kubectl_gets_the_verbs_and_flags_that_fit() {
    let answer = |words: &[&str]| {
        let output = run_as("kubectl_complete-warmpool", words);
        assert!(output.status.success(), "{}", printed(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let (lines, directive) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
        assert_eq!(directive, ":4", "{text}");
        lines
            .lines()
            .map(|line| line.split('\t').next().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(answer(&["r"]), ["release", "rollout"]);
    assert_eq!(answer(&["rollout", "re"]), ["resume", "restart"]);
    assert_eq!(answer(&["rollout", "status", "python", "--rev"]), ["--revision"]);
    assert_eq!(answer(&["why", "--req"]), ["--request-timeout"]);
    assert!(answer(&["why", "run"]).is_empty());
    assert!(answer(&[""]).contains(&"claim".to_string()));
}

/// Every verb without verbs below it, as its words.
fn verbs(command: &clap::Command, so_far: &[&str], found: &mut Vec<Vec<String>>) {
    for verb in command.get_subcommands() {
        let words = [so_far, &[verb.get_name()]].concat();
        if verb.has_subcommands() {
            verbs(verb, &words, found);
        } else {
            found.push(words.iter().map(ToString::to_string).collect());
        }
    }
}

#[test]
fn every_verb_has_the_flags_of_kubectl_or_says_what_to_write_instead() {
    let mut found = Vec::new();
    verbs(&command(), &[], &mut found);
    assert!(found.len() > 15, "{found:?}");
    for verb in &found {
        let verb: Vec<&str> = verb.iter().map(String::as_str).collect();
        for flag in ["-l", "--selector", "-A", "--all-namespaces", "-o", "--output"] {
            // A value that no flag rejects, so that an error says whether the flag is there.
            let words = [&verb[..], &[flag, "json"]].concat();
            let Some(error) = usage_error(&words) else {
                continue;
            };
            if error.kind() == ErrorKind::UnknownArgument && !error.to_string().contains("argument 'json'") {
                let advice = error.to_string().contains("\n\n  tip: ");
                let own = !error.to_string().contains("as a value");
                assert!(advice && own, "{words:?}: {error}");
            }
        }
        for flag in ["-n", "--context", "--kubeconfig", "--as", "--request-timeout"] {
            let value = if flag == "--request-timeout" { "1s" } else { "a" };
            let words = [&verb[..], &[flag, value]].concat();
            let unknown = usage_error(&words).is_some_and(|e| e.kind() == ErrorKind::UnknownArgument);
            assert!(!unknown, "{words:?}");
        }
    }
}

#[test]
fn a_flag_that_makes_no_sense_is_rejected_with_what_to_write() {
    for (words, advice) in [
        (&["exec", "run-42", "-A"][..], "name its namespace with -n"),
        (
            &["why", "pool/python", "-o", "json"],
            "'kubectl warmpool status POOL -o json'",
        ),
        (
            &["rollout", "status", "python", "-o", "json"],
            "'kubectl get pool POOL -o json'",
        ),
        (
            &["-n", "ns", "rollout", "pause", "python", "-A"],
            "name it with -n",
        ),
        (
            &["top", "-o", "table"],
            "[possible values: json, yaml, wide, name]",
        ),
        (&["status", "python", "-A"], "cannot be used with"),
        (&["release", "-A", "run-42"], "--selector"),
    ] {
        let output = run_as("kubectl-warmpool", words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(
            printed(&output).contains(advice),
            "{words:?}: {}",
            printed(&output)
        );
    }
}

#[test]
fn the_last_of_a_repeated_flag_counts_as_in_kubectl() {
    for words in [
        &["-n", "a", "top", "-n", "b"][..],
        &["top", "-o", "json", "-n", "a", "-n", "b", "-o", "yaml"],
    ] {
        assert_eq!(usage_error(words).map(|error| error.to_string()), None);
    }
}

#[test]
fn set_image_takes_one_pool_or_labels_and_at_least_one_image() {
    for words in [
        &["python"][..],
        &["main=a"],
        &["python", "ruby", "main=a"],
        &["python", "main=a", "-l", "a=b"],
        &["-l", "a=b"],
        &["python", "main="],
        &["Python", "main=a"],
    ] {
        let output = run_as("kubectl-warmpool", &[&["set", "image"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", printed(&output));
    }
    for words in [
        &["python", "main=a", "b=c"][..],
        &["-l", "a=b", "main=a"],
        &["main=a", "pool/python"],
    ] {
        let output = run_as("kubectl-warmpool", &[&["set", "image"], words].concat());
        assert!(
            printed(&output).starts_with("error: no cluster"),
            "{words:?}: {}",
            printed(&output)
        );
    }
}

#[test]
fn completion_scripts_and_man_pages_name_every_verb() {
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&run_as("warmpool", &["completion", shell]));
        assert!(
            script.contains("controller") && script.contains("plan"),
            "{shell}: {script}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let written = run_as(
        "warmpool",
        &["man", "--out-dir", &folder.path().to_string_lossy()],
    );
    assert!(written.status.success(), "{}", printed(&written));
    for page in [
        "warmpool.1",
        "warmpool-controller.1",
        "kubectl-warmpool.1",
        "kubectl-warmpool-why.1",
    ] {
        let path = folder.path().join(page);
        assert!(
            path.is_file(),
            "{page} is missing among {:?}",
            std::fs::read_dir(folder.path()).unwrap().collect::<Vec<_>>()
        );
    }
}
