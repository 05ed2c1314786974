//! Starts a control plane with the CRDs and the operator's permissions.

use crate::Outcome;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NAME: &str = "bench";

pub struct ControlPlane {
    pub dir: PathBuf,
    keep: bool,
}

impl ControlPlane {
    /// Starts a new control plane. Ends the one that a killed run may have left.
    pub fn up(keep: bool) -> Outcome<Self> {
        let dir = repository().join(".cluster").join(NAME);
        if dir.join("ports.json").exists() {
            tool(&["down"])?;
        }
        tool(&["up"])?;
        let plane = Self { dir, keep };
        plane.kubectl(&["apply", "--server-side", "-k", "crds"])?;
        plane.kubectl(&["apply", "--server-side", "-k", "config/rbac"])?;
        let kubeconfig = plane.operator_kubeconfig();
        let path = kubeconfig.to_string_lossy();
        tool(&["token", "warmpool-system", "warmpool", "--out", &path])?;
        Ok(plane)
    }

    /// The kubeconfig of the operator's account, which has exactly the permissions that users install.
    pub fn operator_kubeconfig(&self) -> PathBuf {
        self.dir.join("operator.kubeconfig")
    }

    pub fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }

    pub fn log(&self, name: &str) -> PathBuf {
        self.dir.join("log").join(format!("{name}.log"))
    }

    /// A client under the name `load`, which the audit log distinguishes from the operator's.
    pub async fn load_client(&self) -> Outcome<Client> {
        let kubeconfig = Kubeconfig::read_from(self.dir.join("load.kubeconfig"))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        // A request that the client retries would be measured as one slow request.
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    fn kubectl(&self, arguments: &[&str]) -> Outcome<()> {
        let bin =
            std::env::var_os("WARMPOOL_CLUSTER_BIN").map_or(repository().join(".cluster/bin"), PathBuf::from);
        let mut command = Command::new(bin.join("kubectl"));
        command.arg("--kubeconfig").arg(self.dir.join("kubeconfig"));
        command.arg("--cache-dir").arg(self.dir.join("kubectl-cache"));
        finish(command.args(arguments))
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if self.keep {
            println!("export KUBECONFIG={}", self.dir.join("kubeconfig").display());
        } else if let Err(error) = tool(&["down"]) {
            eprintln!("error: {error}");
        }
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `cluster.py VERB ... --name bench`
fn tool(arguments: &[&str]) -> Outcome<()> {
    let mut command = Command::new(repository().join("e2e/cluster/cluster.py"));
    finish(command.args(arguments).args(["--name", NAME]))
}

/// Runs a program to its end. Hides its stdout, because errors are on stderr.
fn finish(command: &mut Command) -> Outcome<()> {
    command
        .current_dir(repository())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} ended with {status}").into())
    }
}
