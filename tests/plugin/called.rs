//! The binary as kubectl calls it, and how it reads its arguments.

use std::os::unix::fs::symlink;
use std::process::{Command, Output};
use warmpool::cli::kubectl::pool_name::{PoolName, PoolNameError};

/// Runs the binary under that name, with no cluster and no other program to be found.
pub fn called(name: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join(name);
    symlink(env!("CARGO_BIN_EXE_warmpool"), &link).unwrap();
    let mut command = Command::new(&link);
    command.env("KUBECONFIG", folder.path().join("none"));
    command.env_remove("KUBERNETES_SERVICE_HOST").env("PATH", "");
    command.args(arguments).output().unwrap()
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

fn read(written: &str) -> Result<PoolName, PoolNameError> {
    written.parse()
}

#[test]
fn the_name_decides_what_the_binary_is() {
    let plugin = called("kubectl-warmpool", &["rollout", "--help"]);
    assert!(plugin.status.success(), "{}", said(&plugin));
    assert!(
        said(&plugin).contains("Usage: kubectl warmpool rollout"),
        "{}",
        said(&plugin)
    );
    let operator = called("warmpool", &["rollout", "--help"]);
    assert!(!operator.status.success(), "{}", said(&operator));
}

#[test]
fn the_operators_help_tells_of_the_plugin() {
    let help = said(&called("warmpool", &["--help"]));
    assert!(help.contains("kubectl-warmpool"), "{help}");
}

#[test]
fn every_verb_teaches_with_examples() {
    for verb in ["status", "history", "undo", "pause", "resume", "restart"] {
        let help = said(&called("kubectl-warmpool", &["rollout", verb, "--help"]));
        let example = format!("  kubectl warmpool rollout {verb} python");
        assert!(help.contains("Examples:") && help.contains(&example), "{help}");
    }
    for verb in ["claim", "why"] {
        let help = said(&called("kubectl-warmpool", &[verb, "--help"]));
        let example = format!("  kubectl warmpool {verb} ");
        assert!(help.contains("Examples:") && help.contains(&example), "{help}");
    }
}

#[test]
fn a_pool_is_named_as_kubectl_names_things() {
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
fn what_is_no_pool_is_refused_with_a_sentence() {
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
    let output = called("kubectl-warmpool", &["rollout", "status", "deployment/python"]);
    let words = "\"deployment/python\" is not a pool; write the pool's name alone, or pool/NAME";
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains(words), "{}", said(&output));
}

#[test]
fn without_a_cluster_it_says_so_and_fails() {
    let output = called("kubectl-warmpool", &["rollout", "status", "python"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).starts_with("error: no cluster to connect to"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_timeout_is_written_as_in_kubectl() {
    let with = |timeout: &str| {
        let flag = format!("--timeout={timeout}");
        let output = called("kubectl-warmpool", &["rollout", "status", "python", &flag]);
        output.status.code()
    };
    for good in ["0", "0s", "30s", "1m30s", "1.5h", "300ms"] {
        assert_eq!(
            with(good),
            Some(1),
            "{good} is understood, and then there is no cluster"
        );
    }
    for bad in ["30", "-5s", "soon", ""] {
        assert_eq!(with(bad), Some(2), "{bad}");
    }
}
