//! Checks that no verb waits longer than it is told for a server that accepts connections and answers nothing.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

/// A call that hangs is ended long before this.
const LONG: Duration = Duration::from_secs(10);

#[test]
fn a_verb_gives_up_on_a_server_that_hangs_and_names_it() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (link, kubeconfig) = (
        folder.path().join("kubectl-warmpool"),
        folder.path().join("config"),
    );
    symlink(env!("CARGO_BIN_EXE_warmpool"), &link).unwrap();
    let config = format!(
        "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}],
         clusters: [{{name: a, cluster: {{server: 'http://{address}'}}}}], users: [{{name: a, user: {{}}}}]}}"
    );
    std::fs::write(&kubeconfig, config).unwrap();
    for verb in [
        &["why", "run-42"][..],
        &["status", "python"],
        &["top"],
        &["plan"],
        &["claim", "python"],
        &["release", "run-42"],
        &["set", "image", "python", "main=a"],
        &["rollout", "status", "python"],
        &["rollout", "undo", "python"],
        &["rollout", "history", "python"],
        &["rollout", "pause", "-l", "lang=python"],
        &["exec", "run-42", "--", "true"],
        &["drain", "node-1", "--dry-run"],
        &["size", "python"],
    ] {
        let begun = Instant::now();
        let output = Command::new(&link)
            .env("KUBECONFIG", &kubeconfig)
            .arg("--request-timeout=300ms")
            .args(verb)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(begun.elapsed() < LONG, "{verb:?} hung");
        assert_eq!(output.status.code(), Some(1), "{verb:?}: {said}");
        let why =
            format!("error: no answer from the API server at http://{address}/: no answer within 0.3 s");
        assert!(said.starts_with(&why), "{verb:?}: {said}");
    }
}
