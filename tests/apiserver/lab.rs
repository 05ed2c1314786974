//! Holds what the tests in one lab share: control plane and operator.

use crate::api::{Api, CLAIMS, PODS, POOLS};
use crate::check::Figures;
use crate::check::processor_waits::ProcessorWaits;
use crate::check::requests::Request;
use crate::cluster::{Cluster, repository};
use crate::faults::proxy::Proxy;
use crate::gate::Group;
use crate::lock::lock;
use crate::operator::{Operator, end_all};
use crate::processor_watch::ProcessorWatch;
use crate::wait;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use tokio::runtime::Handle;

pub struct Lab {
    pub cluster: Cluster,
    pub api: Api,
    operator: Mutex<Option<(Group, Operator)>>,
    proxy: OnceLock<Result<Proxy, String>>,
    processors: ProcessorWatch,
    operators_started: AtomicUsize,
    failures: Mutex<Vec<String>>,
    figures: Mutex<Vec<(String, Figures)>>,
    summary: Mutex<Vec<String>>,
}

impl Lab {
    /// Starts its control plane. `number` tells it from the other labs of this process.
    pub fn open(number: usize, runtime: &Handle) -> Result<Self, String> {
        // The garbage collector knows our types from the start, so that no story waits until it has learnt of them.
        let crds = repository().join("crds");
        let cluster = Cluster::up(number, &["--crds", &crds.to_string_lossy()])?;
        let prepared = prepare(&cluster, runtime).inspect_err(|_| _ = cluster.down(false))?;
        fs::create_dir_all(cluster.dir.join("history")).map_err(|e| e.to_string())?;
        Ok(Self {
            processors: ProcessorWatch::start(&cluster),
            cluster,
            api: prepared,
            operator: Mutex::new(None),
            proxy: OnceLock::new(),
            operators_started: AtomicUsize::new(0),
            failures: Mutex::new(Vec::new()),
            figures: Mutex::new(Vec::new()),
            summary: Mutex::new(Vec::new()),
        })
    }

    /// Ends it. The logs stay when something failed.
    pub fn close(&self) {
        // A test that is interrupted fails once its operator has ended. That is no failure to keep anything of.
        let failed = self.has_failed();
        drop(lock(&self.operator).take());
        end_all(&self.cluster);
        if let Err(error) = self.cluster.down(failed) {
            eprintln!("{error}");
        } else if failed {
            eprintln!("histories and logs are kept in {}", self.cluster.dir.display());
        }
    }

    /// A new operator for one test. Leader election is off, so that a test can run two.
    pub fn start_operator(&self) -> Result<Operator, String> {
        self.start_operator_with(&["--leader-elect=false"])
    }

    /// A new operator of a test's own, called with `arguments`.
    pub fn start_operator_with(&self, arguments: &[&str]) -> Result<Operator, String> {
        self.start_operator_as(&operator_kubeconfig(&self.cluster), arguments)
    }

    /// A new operator with the rights of another account than the operator's own.
    pub fn start_operator_as(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<Operator, String> {
        self.start(kubeconfig, arguments, &[])
    }

    fn start(
        &self,
        kubeconfig: &Path,
        arguments: &[&str],
        environment: &[(&str, String)],
    ) -> Result<Operator, String> {
        let number = self.operators_started.fetch_add(1, Ordering::SeqCst) + 1;
        Operator::start(
            &self.cluster,
            &format!("operator-{number}"),
            kubeconfig,
            arguments,
            environment,
        )
    }

    /// A new operator of a test's own, whose requests go through the proxy; with more variables in its environment.
    pub fn start_operator_behind_faults(&self, environment: &[(&str, String)]) -> Result<Operator, String> {
        let kubeconfig = &self.proxy()?.kubeconfig;
        self.start(kubeconfig, &["--leader-elect=false"], environment)
    }

    /// The API server as the operator's account has it.
    pub fn as_operator(&self) -> Result<Api, String> {
        Api::connect(&operator_kubeconfig(&self.cluster), self.api.runtime())
    }

    /// The way to the API server on which things go wrong, made when the first test asks for it.
    pub fn proxy(&self) -> Result<&Proxy, String> {
        let made = self.proxy.get_or_init(|| {
            let runtime = self.api.runtime();
            let operator = self.as_operator()?;
            let kubeconfig = self.cluster.dir.join("proxy.kubeconfig");
            Proxy::start(runtime, operator.client(), &kubeconfig, seed()?)
        });
        made.as_ref().map_err(Clone::clone)
    }

    /// The writes of operators behind the proxy on objects of a namespace.
    pub fn writes_through_proxy(&self, namespace: &str) -> Vec<Request> {
        match self.proxy.get() {
            Some(Ok(proxy)) => proxy.faults.writes(namespace),
            _ => Vec::new(),
        }
    }

    /// How long the operators and the API server waited for a processor so far.
    pub fn processor_waits(&self) -> ProcessorWaits {
        self.processors.so_far()
    }

    /// Waits until nothing is left of the tests that have ended. The API server deletes what their namespaces held. What a
    /// failed test has left may stay for good: after one, this does not wait.
    pub fn wait_until_cleared(&self) -> Result<(), String> {
        if self.has_failed() {
            return Ok(());
        }
        wait::until("the pods and claims of earlier tests were gone", 60, || {
            [PODS, CLAIMS].into_iter().try_for_each(|kind| {
                let is_empty = self.api.is_empty(kind)?;
                wait::ensure(is_empty, || format!("there are {kind:?}"))
            })
        })
    }

    /// Sees to it that nothing goes wrong any more for the next operator.
    pub fn end_faults(&self) {
        if let Some(Ok(proxy)) = self.proxy.get() {
            proxy.faults.stop(None);
        }
    }

    /// Sees to it that the operator runs that the tests of `group` share.
    pub fn share_operator(&self, group: Group) -> Result<(), String> {
        let mut shared = lock(&self.operator);
        if shared.as_ref().is_none_or(|(of, _)| *of != group) {
            shared.take().map_or(Ok(()), |(_, earlier)| earlier.stop())?;
            *shared = Some(match group {
                Group::BehindFaults => (group, self.start_operator_behind_faults(&[])?),
                Group::Together | Group::Alone | Group::Busy => (group, self.start_operator()?),
            });
        }
        drop(shared);
        self.shared_operator_is_well()
    }

    /// Sees to it that the shared operator does not run.
    pub fn end_shared_operator(&self) -> Result<(), String> {
        lock(&self.operator)
            .take()
            .map_or(Ok(()), |(_, operator)| operator.stop())
    }

    /// Where a test shares the operator: it must live, and its log be clean.
    pub fn shared_operator_is_well(&self) -> Result<(), String> {
        lock(&self.operator).as_mut().map_or(Ok(()), |(_, operator)| {
            operator.lives()?;
            operator.is_clean()
        })
    }

    /// How many operators have been started so far.
    pub fn operators_started(&self) -> usize {
        self.operators_started.load(Ordering::SeqCst)
    }

    /// The end of the newest operator's log.
    pub fn operator_tail(&self) -> String {
        let number = self.operators_started();
        let path = self
            .cluster
            .dir
            .join("log")
            .join(format!("operator-{number}.log"));
        crate::operator::tail(&fs::read_to_string(path).unwrap_or_default(), 30)
    }

    /// Hands out what the tests have measured, each with its name.
    pub fn take_figures(&self) -> Vec<(String, Figures)> {
        std::mem::take(&mut *lock(&self.figures))
    }

    /// Hands out the lines for the end of the run.
    pub fn take_summary(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.summary))
    }

    pub fn record(&self, test: &str, figures: Figures) {
        lock(&self.figures).push((test.into(), figures));
    }

    /// Has a line printed at the end of the run.
    pub fn print_at_end(&self, line: String) {
        lock(&self.summary).push(line);
    }

    /// Notes why a test failed, in one line for the end of the run.
    pub fn note_failure(&self, why: String) {
        lock(&self.failures).push(why);
    }

    fn has_failed(&self) -> bool {
        !lock(&self.failures).is_empty()
    }

    /// Hands out the lines of the tests that failed.
    pub fn take_failures(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.failures))
    }
}

fn operator_kubeconfig(cluster: &Cluster) -> PathBuf {
    cluster.dir.join("operator.kubeconfig")
}

/// A number from an environment variable.
pub fn number(variable: &str, otherwise: u64) -> Result<u64, String> {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .map_err(|_| format!("{variable}={text} is no number; write it like {variable}={otherwise}")),
        Err(_) => Ok(otherwise),
    }
}

/// What the dice of this run begin with.
pub fn seed() -> Result<u64, String> {
    number("SEED", 0x5eed_cafe)
}

/// The operator's permissions, as every user installs them, and the API.
fn prepare(cluster: &Cluster, runtime: &Handle) -> Result<Api, String> {
    cluster.kubectl(&["apply", "-k", "config/rbac"], None)?;
    let kubeconfig = operator_kubeconfig(cluster);
    cluster.tool(&[
        "token",
        "warmpool-system",
        "warmpool",
        "--out",
        &kubeconfig.to_string_lossy(),
    ])?;
    let api = Api::connect(&cluster.kubeconfig(), runtime)?;
    // A new type is Established before the server has its cache, and until then it answers 429.
    for kind in [POOLS, CLAIMS] {
        wait::until("the new types could be listed", 30, || {
            Ok(api.list(kind, "default").map(drop)?)
        })?;
    }
    Ok(api)
}
