//! Calls the API server with JSON.

use futures::stream::{self, StreamExt, TryStreamExt};
use kube::client::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::fmt;
use std::future::ready;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Handle;

/// A resource type: the path before its namespace, and its plural.
#[derive(Clone, Copy, Debug)]
pub struct Resource(pub &'static str, pub &'static str);

pub const POOLS: Resource = Resource("/apis/warmpool.dev/v1alpha1", "pools");
pub const CLAIMS: Resource = Resource("/apis/warmpool.dev/v1alpha1", "sandboxclaims");
pub const PODS: Resource = Resource("/api/v1", "pods");
pub const QUOTAS: Resource = Resource("/api/v1", "resourcequotas");
pub const ACCOUNTS: Resource = Resource("/api/v1", "serviceaccounts");
pub const NAMESPACES: Resource = Resource("/api/v1", "namespaces");
pub const NODES: Resource = Resource("/api/v1", "nodes");
pub const EVENTS: Resource = Resource("/apis/events.k8s.io/v1", "events");
pub const TEMPLATES: Resource = Resource("/api/v1", "podtemplates");
pub const REVISIONS: Resource = Resource("/apis/apps/v1", "controllerrevisions");
pub const BUDGETS: Resource = Resource("/apis/policy/v1", "poddisruptionbudgets");
pub const LEASES: Resource = Resource("/apis/coordination.k8s.io/v1", "leases");
pub const CRDS: Resource = Resource("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions");
pub const POLICIES: Resource = Resource(
    "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicies",
);
pub const POLICY_BINDINGS: Resource = Resource(
    "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings",
);

impl Resource {
    /// Path of the collection; with an empty namespace that of the whole cluster.
    pub fn path(self, namespace: &str) -> String {
        let Self(prefix, plural) = self;
        if namespace.is_empty() {
            format!("{prefix}/{plural}")
        } else {
            format!("{prefix}/namespaces/{namespace}/{plural}")
        }
    }
}

/// A request that did not succeed. Code 0: there was no answer.
#[derive(Clone, Debug)]
pub struct ApiError {
    pub code: u16,
    pub message: String,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.message)
    }
}

impl From<ApiError> for String {
    fn from(error: ApiError) -> Self {
        error.to_string()
    }
}

impl ApiError {
    fn local(error: impl fmt::Display) -> Self {
        Self {
            code: 0,
            message: error.to_string(),
        }
    }
}

#[derive(Clone)]
pub struct Api {
    client: Client,
    runtime: Handle,
}

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Most calls that run at once.
const AT_ONCE: usize = 50;

impl Api {
    pub fn connect(kubeconfig: &Path, runtime: &Handle) -> Result<Self, String> {
        let client = runtime.block_on(async {
            let file = Kubeconfig::read_from(kubeconfig).map_err(|e| e.to_string())?;
            let options = KubeConfigOptions::default();
            let mut config = kube::Config::from_custom_kubeconfig(file, &options)
                .await
                .map_err(|e| e.to_string())?;
            // A test wants to see a refusal, not to wait for a retry.
            config.default_retry = false;
            Client::try_from(config).map_err(|e| e.to_string())
        })?;
        Ok(Self {
            client,
            runtime: runtime.clone(),
        })
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub async fn call_async(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, ApiError> {
        let mut request = kube::core::Request::new("/")
            .list(&Default::default())
            .map_err(ApiError::local)?;
        *request.method_mut() = method.parse().map_err(ApiError::local)?;
        *request.uri_mut() = path.parse().map_err(ApiError::local)?;
        if let Some((content_type, body)) = body {
            request
                .headers_mut()
                .insert("content-type", content_type.parse().map_err(ApiError::local)?);
            *request.body_mut() = body.to_string().into_bytes();
        }
        match tokio::time::timeout(PATIENCE, self.client.request::<Value>(request)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(kube::Error::Api(status))) => Err(ApiError {
                code: status.code,
                message: status.message.clone(),
            }),
            Ok(Err(error)) => Err(ApiError::local(error)),
            Err(_) => Err(ApiError::local(format!(
                "no answer to {method} {path} within {PATIENCE:?}"
            ))),
        }
    }

    fn call(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> Result<Value, ApiError> {
        self.runtime.block_on(self.call_async(method, path, body))
    }

    /// The object, or `None` where there is none.
    pub fn get(&self, resource: Resource, namespace: &str, name: &str) -> Result<Option<Value>, ApiError> {
        match self.call("GET", &format!("{}/{name}", resource.path(namespace)), None) {
            Err(error) if error.code == 404 => Ok(None),
            answer => answer.map(Some),
        }
    }

    pub fn list(&self, resource: Resource, namespace: &str) -> Result<Vec<Value>, ApiError> {
        let list = self.call("GET", &resource.path(namespace), None)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Whether no namespace has one.
    pub fn is_empty(&self, resource: Resource) -> Result<bool, ApiError> {
        let list = self.call("GET", &format!("{}?limit=1", resource.path("")), None)?;
        Ok(list["items"].as_array().is_none_or(Vec::is_empty))
    }

    pub fn create(&self, resource: Resource, namespace: &str, object: &Value) -> Result<Value, ApiError> {
        self.call(
            "POST",
            &resource.path(namespace),
            Some(("application/json", object)),
        )
    }

    /// Creates all of them, many at once.
    pub fn create_all(&self, resource: Resource, namespace: &str, objects: &[Value]) -> Result<(), ApiError> {
        let path = resource.path(namespace);
        let calls = objects
            .iter()
            .map(|o| self.call_async("POST", &path, Some(("application/json", o))));
        self.run_all(calls)
    }

    /// Deletes all of them, many at once.
    pub fn delete_all(&self, resource: Resource, namespace: &str, names: &[String]) -> Result<(), ApiError> {
        let paths: Vec<String> = names
            .iter()
            .map(|name| format!("{}/{name}", resource.path(namespace)))
            .collect();
        let calls = paths.iter().map(|path| self.call_async("DELETE", path, None));
        self.run_all(calls)
    }

    /// Runs some of the calls at a time. Each has a connection of its own, and a busy machine takes long to open hundreds.
    fn run_all(
        &self,
        calls: impl Iterator<Item = impl Future<Output = Result<Value, ApiError>>>,
    ) -> Result<(), ApiError> {
        let calls = stream::iter(calls).buffer_unordered(AT_ONCE);
        self.runtime.block_on(calls.try_for_each(|_| ready(Ok(()))))
    }

    /// Creates without storing, refusing unknown fields as kubectl does.
    pub fn try_create(&self, resource: Resource, namespace: &str, object: &Value) -> Result<Value, ApiError> {
        let path = format!("{}?dryRun=All&fieldValidation=Strict", resource.path(namespace));
        self.call("POST", &path, Some(("application/json", object)))
    }

    /// A merge patch of the object, or with `name/status` of its status.
    pub fn merge(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        let path = format!("{}/{name}", resource.path(namespace));
        self.call("PATCH", &path, Some(("application/merge-patch+json", patch)))
    }

    /// A JSON patch with one replacement.
    pub fn replace_at(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
        at: &str,
        value: Value,
    ) -> Result<Value, ApiError> {
        let path = format!("{}/{name}", resource.path(namespace));
        let patch = json!([{"op": "replace", "path": at, "value": value}]);
        self.call("PATCH", &path, Some(("application/json-patch+json", &patch)))
    }

    /// Deletes; something that is gone already is no error.
    pub fn delete(&self, resource: Resource, namespace: &str, name: &str) -> Result<(), ApiError> {
        match self.call("DELETE", &format!("{}/{name}", resource.path(namespace)), None) {
            Err(error) if error.code != 404 => Err(error),
            _ => Ok(()),
        }
    }
}
