//! Runs an API of external metrics that the API server of a scene hands requests on to.

use crate::cluster::repository;
use crate::http;
use crate::operator::start_noted;
use crate::scene::Scene;
use crate::wait;
use serde_json::json;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const GROUP: &str = "external.metrics.k8s.io";

/// The API, and its registration with the API server. Both end with this.
pub struct MetricsApi<'a> {
    scene: &'a Scene,
    child: Child,
    value: PathBuf,
}

impl<'a> MetricsApi<'a> {
    /// Serves the metric `jobs_queued` with this value.
    pub fn start(scene: &'a Scene, value: u32) -> Result<Self, String> {
        let folder = &scene.lab.cluster.dir;
        let (file, log) = (
            folder.join("jobs-queued"),
            folder.join("log").join("metrics-api.log"),
        );
        fs::write(&file, value.to_string()).map_err(|e| e.to_string())?;
        let out = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let mut command = Command::new("python3");
        command
            .arg(repository().join("e2e/cluster/metrics_api.py"))
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(out);
        let api = Self {
            scene,
            child: start_noted(&scene.lab.cluster, "the metrics API", &mut command)?,
            value: file,
        };
        let address = wait::until("the metrics API listened", 30, || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            http::address_after(&text, "serving on").ok_or(text)
        })?;
        let port: Option<u16> = address.rsplit(':').next().and_then(|port| port.parse().ok());
        api.register(port.unwrap_or_default())?;
        Ok(api)
    }

    /// Tells the API server where the API is, and waits until it has reached it.
    fn register(&self, port: u16) -> Result<(), String> {
        let version = format!("v1beta1.{GROUP}");
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics"},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        });
        let registration = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": version},
            "spec": {
                "group": GROUP, "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                "insecureSkipTLSVerify": true,
                "service": {"namespace": self.scene.namespace, "name": "metrics", "port": port},
            },
        });
        for object in [service, registration] {
            self.scene
                .kubectl(&["apply", "-f", "-"], Some(&object.to_string()))?;
        }
        let condition = "--for=condition=Available";
        let registered = ["wait", condition, "apiservice", &version, "--timeout=60s"];
        self.scene.kubectl(&registered, None).map(drop)
    }

    /// Changes the value of the metric.
    pub fn set(&self, value: u32) -> Result<(), String> {
        fs::write(&self.value, value.to_string()).map_err(|e| e.to_string())
    }
}

impl Drop for MetricsApi<'_> {
    fn drop(&mut self) {
        // An API that is registered and does not answer would keep namespaces from being deleted.
        let version = format!("v1beta1.{GROUP}");
        _ = self.scene.kubectl(&["delete", "apiservice", &version], None);
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
