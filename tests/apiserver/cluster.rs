//! Starts a control plane and reads its audit log.

use jiff::Timestamp;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The operator's name in the audit log.
pub const OPERATOR: &str = "system:serviceaccount:warmpool-system:warmpool";

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the programs of a control plane are, kubectl among them.
pub fn binaries() -> PathBuf {
    std::env::var_os("WARMPOOL_CLUSTER_BIN").map_or(repository().join(".cluster/bin"), PathBuf::from)
}

/// A file in the directory of a cluster that was ended after a failure.
pub const FAILED: &str = "failed";

#[derive(Clone)]
pub struct Cluster {
    pub dir: PathBuf,
}

impl Cluster {
    /// Starts one under `.cluster/test-<pid>-<number>` with more options of `cluster.py up`.
    pub fn up(number: usize, options: &[&str]) -> Result<Self, String> {
        let cluster = Self {
            dir: state().join(format!("test-{}-{number}", std::process::id())),
        };
        cluster.tool(&[&["up", "--nodes", "2"], options].concat())?;
        Ok(cluster)
    }

    /// `cluster.py VERB ... --dir DIR`.
    pub fn tool(&self, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new(repository().join("e2e/cluster/cluster.py"));
        command.args(arguments).arg("--dir").arg(&self.dir);
        output_of(command, None).map(drop)
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// The process of a part, as in `etcd`, if the part was started.
    pub fn pid_of(&self, part: &str) -> Option<u32> {
        let record = fs::read_to_string(self.dir.join("run").join(format!("{part}.json"))).ok()?;
        let record: Value = serde_json::from_str(&record).ok()?;
        record["pid"].as_u64()?.try_into().ok()
    }

    /// Runs kubectl as admin and returns its stdout.
    pub fn kubectl(&self, arguments: &[&str], stdin: Option<&str>) -> Result<String, String> {
        let mut command = Command::new(binaries().join("kubectl"));
        command.arg("--kubeconfig").arg(self.kubeconfig());
        command.arg("--cache-dir").arg(self.dir.join("kubectl-cache"));
        command.current_dir(repository()).args(arguments);
        output_of(command, stdin)
    }

    /// Deletes CustomResourceDefinitions, named as to kubectl, and waits until they are gone. When two writes of the API
    /// server itself meet (409) as it ends one, Kubernetes 1.36 leaves that one alone for five minutes; after any other
    /// change it goes on at once.
    pub fn delete_types(&self, which: &[&str]) -> Result<(), String> {
        let delete = ["delete", "--ignore-not-found", "--wait", "--timeout=10s"];
        let delete = || self.kubectl(&[&delete[..], which].concat(), None);
        let mut deleted = delete();
        for time in 1..=5 {
            if deleted.is_ok() {
                break;
            }
            let woken = format!("tests.warmpool.dev/woken={time}");
            // What is gone by now cannot be annotated.
            _ = self.kubectl(&[&["annotate", "--overwrite"], which, &[&woken]].concat(), None);
            deleted = delete();
        }
        deleted.map(drop)
    }

    /// Every write to objects of a namespace so far, as the API server recorded it.
    pub fn audit(&self, namespace: &str) -> Result<Vec<Recorded>, String> {
        self.recorded(namespace, |write| write.namespace == namespace)
    }

    /// Every request of a user so far. Of most users the API server records only the writes.
    pub fn audit_of(&self, user: &str) -> Result<Vec<Recorded>, String> {
        self.recorded(user, |request| request.user == user)
    }

    /// The requests that match. Only lines with `word` are parsed, because the log is long.
    pub fn recorded(&self, word: &str, matches: impl Fn(&Recorded) -> bool) -> Result<Vec<Recorded>, String> {
        let log = fs::read_to_string(self.dir.join("audit.log")).map_err(|e| format!("audit.log: {e}"))?;
        let lines = log.lines().filter(|line| line.contains(word));
        let entries = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(entries
            .map(|entry| Recorded::read(&entry))
            .filter(matches)
            .collect())
    }

    /// Ends it. Its data goes; its logs stay, marked with [`FAILED`], when something failed.
    pub fn down(&self, failed: bool) -> Result<(), String> {
        self.tool(&["down"])?;
        let done = match failed {
            true => fs::write(self.dir.join(FAILED), ""),
            false => fs::remove_dir_all(&self.dir),
        };
        done.map_err(|e| format!("{}: {e}", self.dir.display()))
    }
}

/// One line of the audit log.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub at: Timestamp,
    pub answered: Timestamp,
    pub user: String,
    pub agent: String,
    pub verb: String,
    pub resource: String,
    /// Its API group; empty for the core group.
    pub group: String,
    pub namespace: String,
    pub name: String,
    pub code: i64,
    /// Refused for want of permission.
    pub forbidden: bool,
}

impl Recorded {
    fn read(entry: &Value) -> Self {
        let text = |pointer: &str| {
            entry
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_string()
        };
        let (resource, subresource) = (text("/objectRef/resource"), text("/objectRef/subresource"));
        let moment = |pointer: &str| text(pointer).parse().unwrap_or(Timestamp::MIN);
        Self {
            at: moment("/requestReceivedTimestamp"),
            answered: moment("/stageTimestamp"),
            user: text("/user/username"),
            agent: text("/userAgent"),
            verb: text("/verb"),
            resource: if subresource.is_empty() {
                resource
            } else {
                format!("{resource}/{subresource}")
            },
            group: text("/objectRef/apiGroup"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: entry["responseStatus"]["code"].as_i64().unwrap_or(0),
            forbidden: text("/annotations/authorization.k8s.io~1decision") == "forbid",
        }
    }
}

/// Runs a program to its end. The error holds its stderr.
pub fn output_of(mut command: Command, stdin: Option<&str>) -> Result<String, String> {
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).trim().to_string();
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(if stdin.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    });
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{program} does not start: {e}"))?;
    if let (Some(text), Some(mut pipe)) = (stdin, child.stdin.take()) {
        // A program that ends without reading says itself why.
        _ = pipe.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| format!("{program}: {e}"))?;
    if !output.status.success() {
        let arguments: Vec<_> = command
            .get_args()
            .map(|a| a.to_string_lossy().into_owned())
            .collect();
        return Err(format!(
            "{program} {} ended with {}: {}",
            arguments.join(" "),
            output.status,
            said(&output)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Where control planes have their folders.
pub fn state() -> PathBuf {
    repository().join(".cluster")
}
