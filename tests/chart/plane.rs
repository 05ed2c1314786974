//! Starts the control plane, and runs Helm and the operator on it.

use crate::api::{ACCOUNTS, Api, CLAIMS, CRDS, NAMESPACES, POOLS, Resource};
use crate::cluster::{Cluster, binaries, output_of, repository};
use crate::interrupt::close_on_signal;
use crate::left_behind::clear_away;
use crate::lock::lock;
use crate::operator::{Operator, end_all};
use crate::wait::{ensure, until};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::runtime::Runtime;

pub const DEPLOYMENTS: Resource = Resource("/apis/apps/v1", "deployments");
pub const REVIEWS: Resource = Resource("/apis/authorization.k8s.io/v1", "subjectaccessreviews");
/// Where the chart is installed.
pub const SYSTEM: &str = "warmpool-system";
/// Where users have their pools.
pub const TEAM: &str = "team";
pub const CHART: &str = "charts/warmpool";
pub const OUR_CRDS: [&str; 2] = ["pools.warmpool.dev", "sandboxclaims.warmpool.dev"];

pub struct Plane {
    pub cluster: Cluster,
    pub api: Api,
    failed: Mutex<bool>,
    operators: Mutex<usize>,
}

/// A control plane that is started when the first story asks for it.
pub struct Kind {
    number: usize,
    options: &'static [&'static str],
    plane: Mutex<Option<Result<Arc<Plane>, String>>>,
}

pub static USUAL: Kind = Kind {
    number: 0,
    options: &[],
    plane: Mutex::new(None),
};

/// Its API server runs a dozen requests at a time, so that a small flood fills it and leaves the processors idle.
pub static NARROW: Kind = Kind {
    number: 1,
    options: &[
        "--apiserver-flag=--max-requests-inflight=8",
        "--apiserver-flag=--max-mutating-requests-inflight=4",
    ],
    plane: Mutex::new(None),
};

/// The runtime of all planes. It is there before the first of them, so that no plane is taken for one left behind.
static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// Runs a story on a control plane without any trace of the chart.
pub fn run_story(kind: &Kind, story: fn(&Plane) -> Result<(), String>) -> Result<(), String> {
    let plane = kind.plane()?;
    plane.clear()?;
    story(&plane).inspect_err(|_| *lock(&plane.failed) = true)
}

/// Ends the control planes that stories have asked for. The logs stay when something failed.
pub fn close() {
    for kind in [&USUAL, &NARROW] {
        kind.close();
    }
}

impl Kind {
    fn plane(&self) -> Result<Arc<Plane>, String> {
        lock(&self.plane)
            .get_or_insert_with(|| Plane::open(self).map(Arc::new))
            .clone()
    }

    /// Waits for a control plane that is starting, since nobody else would end it, and lets none start later.
    fn close(&self) {
        let mut plane = lock(&self.plane);
        if let Ok(plane) = plane.get_or_insert_with(|| Err("the tests are ending".into())) {
            plane.close();
        }
    }
}

fn prepare() -> Result<Runtime, String> {
    let runtime = Runtime::new().map_err(|e| e.to_string())?;
    runtime.spawn(close_on_signal(close));
    clear_away()?;
    Ok(runtime)
}

/// Runs Helm without a cluster: Helm 4, or the program that the environment names.
pub fn helm(arguments: &[&str]) -> Result<String, String> {
    let program = std::env::var("WARMPOOL_HELM").unwrap_or_else(|_| "helm".into());
    let mut command = Command::new(binaries().join(program));
    command.current_dir(repository()).args(arguments);
    output_of(command, None)
}

/// The objects of a stream of YAML documents.
pub fn documents(text: &str) -> Result<Vec<Value>, String> {
    use serde::Deserialize;
    let each = serde_yaml_ng::Deserializer::from_str(text).map(Value::deserialize);
    let all: Vec<Value> = each.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}

impl Plane {
    fn open(kind: &Kind) -> Result<Self, String> {
        let runtime = RUNTIME.get_or_init(prepare).as_ref().map_err(Clone::clone)?;
        let cluster = Cluster::up(kind.number, kind.options)?;
        let api =
            Api::connect(&cluster.kubeconfig(), runtime.handle()).inspect_err(|_| _ = cluster.down(false))?;
        Ok(Self {
            cluster,
            api,
            failed: Mutex::new(false),
            operators: Mutex::new(0),
        })
    }

    fn close(&self) {
        let failed = *lock(&self.failed);
        end_all(&self.cluster);
        if let Err(error) = self.cluster.down(failed) {
            eprintln!("{error}");
        } else if failed {
            eprintln!("logs are kept in {}", self.cluster.dir.display());
        }
    }

    /// Runs Helm as admin and returns its stdout.
    pub fn helm(&self, arguments: &[&str]) -> Result<String, String> {
        let kubeconfig = self.cluster.kubeconfig().to_string_lossy().into_owned();
        helm(&[&["--kubeconfig", &kubeconfig], arguments].concat())
    }

    /// `helm install` of the chart, until its pods are Ready.
    pub fn install(&self, chart: &str, more: &[&str]) -> Result<String, String> {
        self.helm_release("install", chart, more)
    }

    /// `helm upgrade`, likewise.
    pub fn upgrade(&self, chart: &str, more: &[&str]) -> Result<String, String> {
        self.helm_release("upgrade", chart, more)
    }

    fn helm_release(&self, verb: &str, chart: &str, more: &[&str]) -> Result<String, String> {
        self.helm_and_wait(&[verb, "warmpool", chart], more)
    }

    /// Runs a Helm command on a release in the operator's namespace, until its objects are ready or gone.
    pub fn helm_and_wait(&self, command: &[&str], more: &[&str]) -> Result<String, String> {
        let wait = ["-n", SYSTEM, "--wait", "--timeout", "60s"];
        self.helm(&[command, &wait, more].concat())
    }

    /// The operator's namespace, which takes none but pods of the level `restricted`.
    pub fn restricted(&self) -> Result<(), String> {
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM, "labels": labels},
        });
        let apply = ["apply", "-f", "-"];
        self.cluster.kubectl(&apply, Some(&object.to_string())).map(drop)
    }

    /// The namespace for pools, without pods. It takes seconds for a namespace to go, so it stays for the next story.
    pub fn team(&self) -> Result<(), String> {
        if self.api.get(NAMESPACES, "", TEAM)?.is_none() {
            self.cluster.kubectl(&["create", "namespace", TEAM], None)?;
        }
        until("the namespace had its default ServiceAccount", 30, || {
            self.get(ACCOUNTS, TEAM, "default").map(drop)
        })?;
        let pods = ["-n", TEAM, "delete", "pods", "--all", "--wait"];
        self.cluster.kubectl(&pods, None).map(drop)
    }

    /// The operator as the Deployment describes it, with its arguments and the rights of its ServiceAccount. Only its
    /// ports differ, because they may be in use on this machine.
    pub fn operator(&self) -> Result<Operator, String> {
        let deployment = self.get(DEPLOYMENTS, SYSTEM, "warmpool")?;
        let pod = &deployment["spec"]["template"]["spec"];
        let rendered = pod["containers"][0]["args"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let ports = [(":8080", free_port()?), (":8081", free_port()?)];
        let moved = |argument: &str| {
            let port = ports.iter().find(|(port, _)| argument.ends_with(port));
            port.map_or(argument.to_string(), |(port, free)| {
                argument.replace(port, &format!("127.0.0.1:{free}"))
            })
        };
        let arguments: Vec<String> = rendered.iter().filter_map(Value::as_str).map(moved).collect();
        let account = pod["serviceAccountName"].as_str().unwrap_or_default();
        let number = {
            let mut started = lock(&self.operators);
            *started += 1;
            *started
        };
        let kubeconfig = self.cluster.dir.join(format!("operator-{number}.kubeconfig"));
        self.cluster
            .tool(&["token", SYSTEM, account, "--out", &kubeconfig.to_string_lossy()])?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_warmpool"));
        command
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("POD_NAME", format!("warmpool-{number}"))
            .env("POD_NAMESPACE", SYSTEM);
        Operator::launch(&self.cluster, &format!("operator-{number}"), command)
    }

    /// The object, which has to be there.
    pub fn get(&self, resource: Resource, namespace: &str, name: &str) -> Result<Value, String> {
        let found = self.api.get(resource, namespace, name)?;
        found.ok_or_else(|| format!("there is no {resource:?} {name}"))
    }

    /// Waits until the claim is Bound, and returns its sandbox.
    pub fn sandbox_of(&self, claim: &str) -> Result<Value, String> {
        until(&format!("claim {claim} was Bound"), 30, || {
            let seen = self.get(CLAIMS, TEAM, claim)?;
            ensure(seen["status"]["phase"] == "Bound", || seen["status"].to_string())?;
            Ok(seen["status"]["sandboxes"][0].clone())
        })
    }

    /// Creates a pool, or a claim, of the team; the types may be new.
    pub fn create(&self, resource: Resource, object: &Value) -> Result<(), String> {
        until("it could be created", 30, || {
            Ok(self.api.create(resource, TEAM, object).map(drop)?)
        })
    }

    /// Waits until the pool has that many available sandboxes.
    pub fn available(&self, pool: &str, count: i64) -> Result<(), String> {
        until(&format!("pool {pool} had {count} available"), 30, || {
            let seen = self.get(POOLS, TEAM, pool)?;
            ensure(seen["status"]["available"] == count, || {
                seen["status"].to_string()
            })
        })
    }

    /// Fails where the operator was refused any write, in whatever namespace. What it may not read is in its log.
    pub fn nothing_was_forbidden(&self) -> Result<(), String> {
        nothing_was_forbidden_in(&self.cluster)
    }

    /// Takes away whatever an earlier story has left.
    fn clear(&self) -> Result<(), String> {
        let releases: Value = serde_json::from_str(&self.helm(&["list", "-A", "-o", "json"])?)
            .map_err(|e| format!("helm list: {e}"))?;
        for release in releases.as_array().into_iter().flatten() {
            let text = |key: &str| release[key].as_str().unwrap_or_default().to_string();
            self.helm(&["uninstall", &text("name"), "-n", &text("namespace")])?;
        }
        self.cluster.delete_types(&[&["crd"][..], &OUR_CRDS].concat())?;
        let left = self.api.list(CRDS, "")?;
        ensure(
            !left.iter().any(|crd| crd["spec"]["group"] == "warmpool.dev"),
            || "the CRDs are still there".into(),
        )
    }
}

fn nothing_was_forbidden_in(cluster: &Cluster) -> Result<(), String> {
    let accounts = format!("system:serviceaccount:{SYSTEM}:");
    let denied = cluster.recorded(&accounts, |request| {
        request.user.starts_with(&accounts) && request.forbidden
    })?;
    ensure(denied.is_empty(), || {
        format!("the chart's roles do not allow {denied:?}")
    })
}

pub fn a_forbidden_request_is_found_in_any_namespace() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let cluster = Cluster {
        dir: folder.path().to_path_buf(),
    };
    let line = |account: &str, namespace: &str, decision: &str| {
        json!({
            "requestReceivedTimestamp": "2026-01-31T12:00:00.000000Z", "verb": "patch",
            "user": {"username": format!("system:serviceaccount:{account}")},
            "objectRef": {"resource": "pods", "namespace": namespace, "name": "python-1"},
            "annotations": {"authorization.k8s.io/decision": decision},
        })
    };
    for (account, namespace, decision, accepted) in [
        ("warmpool-system:warmpool", SYSTEM, "forbid", false),
        ("warmpool-system:warmpool", TEAM, "forbid", false),
        ("warmpool-system:warmpool", "elsewhere", "forbid", false),
        // A request for an object of the whole cluster.
        ("warmpool-system:warmpool", "", "forbid", false),
        ("warmpool-system:warmpool", "elsewhere", "allow", true),
        ("team:warmpool", "elsewhere", "forbid", true),
    ] {
        let line = line(account, namespace, decision);
        std::fs::write(cluster.dir.join("audit.log"), format!("{line}\n")).map_err(|e| e.to_string())?;
        ensure(nothing_was_forbidden_in(&cluster).is_ok() == accepted, || {
            format!("accepted: {}: {line}", !accepted)
        })?;
    }
    Ok(())
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    Ok(listener.local_addr().map_err(|e| e.to_string())?.port())
}
