//! Checks the name of the binary, its help and its arguments.

use std::os::unix::fs::symlink;
use std::process::{Command, Output};
use warmpool::cli::kubectl::pool_name::{PoolName, PoolNameError};

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
