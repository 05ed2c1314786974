//! The operator serves metrics and health over HTTP even without a cluster.

// A test may panic: that is how it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "apiserver/http.rs"]
mod http;
#[allow(dead_code, reason = "of the stories' helpers some are enough here")]
#[path = "apiserver/wait.rs"]
mod wait;

use http::{address_after, get};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// Nobody listens there.
const NO_SERVER: &str = "127.0.0.1:1";

fn kubeconfig_of(server: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Config
current-context: none
contexts: [{{name: none, context: {{cluster: none, user: none}}}}]
clusters: [{{name: none, cluster: {{server: 'http://{server}'}}}}]
users: [{{name: none, user: {{}}}}]
"
    )
}

struct Operator {
    child: Child,
    folder: TempDir,
}

impl Operator {
    fn start(arguments: &[&str]) -> Self {
        Self::start_with(NO_SERVER, arguments)
    }

    fn start_with(server: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kubeconfig"), kubeconfig_of(server)).unwrap();
        Self::launch(folder, arguments)
    }

    /// The folder has its kubeconfig.
    fn launch(folder: TempDir, arguments: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_warmpool"))
            .arg("controller")
            .args(arguments)
            .env("KUBECONFIG", folder.path().join("kubeconfig"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stderr(File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    fn ended(&mut self) -> ExitStatus {
        wait::until("it ended", 30, || {
            let status = self.child.try_wait().map_err(|e| e.to_string())?;
            status.ok_or_else(|| self.log())
        })
        .unwrap()
    }

    fn log(&self) -> String {
        let path: PathBuf = self.folder.path().join("log");
        fs::read_to_string(path).unwrap()
    }

    fn address(&self, flag: &str) -> String {
        let words = format!("serving --{flag}");
        let served = || address_after(&self.log(), &words).ok_or_else(|| self.log());
        wait::until("the address was served", 30, served).unwrap()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn without_an_api_server_it_is_alive_not_ready_and_says_why() {
    let operator = Operator::start(&[
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
    ]);
    let health = operator.address("health-probe-bind-address");
    assert_eq!(get(&health, "/livez").unwrap(), (200, "ok".to_string()));
    let (code, verbose) = get(&health, "/livez?verbose").unwrap();
    assert_eq!(
        (code, verbose.as_str()),
        (200, "[+]ping ok\nlivez check passed\n")
    );
    wait::until("it said why it is not ready", 30, || {
        let (code, text) = get(&health, "/readyz")?;
        let says = text.contains("[-]watches failed: ") && text.contains("Connection refused");
        wait::ensure(code == 500 && says, || format!("{code} {text}"))
    })
    .unwrap();
    let metrics = operator.address("metrics-bind-address");
    wait::until("the failed watches were counted", 30, || {
        let (code, text) = get(&metrics, "/metrics")?;
        let restarted = |line: &str| {
            let of_pods = line.strip_prefix(r#"warmpool_watch_restarts_total{kind="Pod"} "#);
            of_pods.is_some_and(|count| count != "0")
        };
        let asked = r#"warmpool_api_requests_total{verb="list",resource="pods",code="error"}"#;
        let counted = text.lines().any(restarted) && text.contains(asked);
        wait::ensure(code == 200 && counted, || text)
    })
    .unwrap();
    assert_eq!(get(&health, "/metrics").unwrap().0, 404);
    let log = operator.log();
    let starts = format!(
        "starting version=\"{}\" cluster=http://{NO_SERVER}/",
        env!("CARGO_PKG_VERSION")
    );
    assert!(
        log.contains(&starts) && log.contains("scope=\"all namespaces\""),
        "{log}"
    );
    let failures: Vec<_> = log
        .lines()
        .filter(|line| line.contains("a request fails"))
        .collect();
    let [failure] = failures[..] else {
        panic!("all watches fail alike and share a line: {log}");
    };
    assert!(failure.contains("verb=\"list\" resource=\""), "{failure}");
    assert!(!log.contains("Some(") && !log.contains("Status {"), "{log}");
}

/// Answers every request with `body`, as long as the test runs.
fn serve_always(body: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            // The head of a request comes at once.
            _ = connection.read(&mut [0; 8192]);
            _ = connection.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn an_unreadable_answer_is_logged_but_not_quoted() {
    let odd = r#"{"metadata": {}, "items": [{"metadata": 7, "env": "nobody-else-may-read-this"}]}"#;
    let server = serve_always(odd);
    for log in ["warn", "debug"] {
        let log = format!("--log={log}");
        let local = ["--metrics-bind-address=0", "--health-probe-bind-address=0", &log];
        let operator = Operator::start_with(&server, &local);
        let told = || wait::ensure(operator.log().contains("invalid type"), || operator.log());
        wait::until("it told why nothing is understood", 30, told).unwrap();
        assert!(!operator.log().contains("nobody-else"), "{}", operator.log());
    }
}

#[test]
fn the_last_line_of_a_json_log_is_json_and_an_error_without_a_log_is_printed() {
    for (log, is_json) in [("info", true), ("off", false)] {
        let log = format!("--log={log}");
        let mut operator = Operator::start(&["--metrics-bind-address=everywhere", "--log-format=json", &log]);
        assert_eq!(operator.child.wait().unwrap().code(), Some(1));
        let last = operator.log().lines().last().unwrap_or_default().to_string();
        assert!(last.contains("everywhere"), "{last}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&last).is_ok(),
            is_json,
            "{last}"
        );
    }
}

#[test]
fn an_operator_stopped_during_its_start_ends_without_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    assert!(
        Command::new("mkfifo")
            .arg(&kubeconfig)
            .status()
            .unwrap()
            .success()
    );
    // A pipe that is opened for reading as well does not block.
    let mut pipe = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&kubeconfig)
        .unwrap();
    let local = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
    let mut operator = Operator::launch(folder, &local);
    let files = format!("/proc/{}/fd", operator.child.id());
    wait::until("it was about to read its kubeconfig", 30, || {
        let files = fs::read_dir(&files).map_err(|e| e.to_string())?.flatten();
        let reads = files
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|to| to == kubeconfig);
        wait::ensure(reads, || operator.log())
    })
    .unwrap();
    kill_process(Pid::from_child(&operator.child), Signal::TERM).unwrap();
    pipe.write_all(kubeconfig_of(NO_SERVER).as_bytes()).unwrap();
    drop(pipe);
    let status = operator.ended();
    assert_eq!(status.code(), Some(0), "{status}: {}", operator.log());
}

#[test]
fn a_taken_port_is_an_error_that_names_address_and_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for flag in ["metrics-bind-address", "health-probe-bind-address"] {
        let argument = format!("--{flag}={address}");
        let other = match flag {
            "metrics-bind-address" => "--health-probe-bind-address=0",
            _ => "--metrics-bind-address=0",
        };
        let mut operator = Operator::start(&[&argument, other]);
        let status = operator.ended();
        let log = operator.log();
        assert_eq!(status.code(), Some(1), "{log}");
        let expected = format!("error: {argument} cannot be served: Address already in use");
        assert!(log.contains(&expected), "{log}");
    }
}

#[test]
fn an_invalid_address_is_an_error_that_says_what_to_write() {
    let mut operator = Operator::start(&[
        "--metrics-bind-address=everywhere",
        "--health-probe-bind-address=0",
    ]);
    assert_eq!(operator.child.wait().unwrap().code(), Some(1));
    let log = operator.log();
    assert!(
        log.contains("--metrics-bind-address=everywhere cannot be served"),
        "{log}"
    );
    assert!(
        log.contains("write another address, as in 127.0.0.1:8080 or :8080, or 0"),
        "{log}"
    );
}
