//! What a program asks for, and how it is bound.

use crate::api::claim::{PodMetadata, PoolRef, PoolSelector};
use crate::api::{SandboxClaim, SandboxClaimSpec};
use crate::claim_client::background;
use crate::claim_client::claim::Claim;
use crate::claim_client::held_claim::HeldClaim;
use crate::claim_client::wait::{ClaimError, until_ready};
use crate::client::call::call;
use crate::client::request_errors::CallError;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Longest prefix of a name: with a dash and 16 random digits the name stays within the 63 characters of a claim's
/// name.
const LONGEST_PREFIX: usize = 46;

/// A claim that is not created yet. The fields that are not set have the pool's `claimDefaults`.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is bound"]
pub struct ClaimRequest {
    spec: SandboxClaimSpec,
    prefix: String,
    namespace: Option<String>,
}

impl Claim {
    /// Begins a claim on a pool.
    pub fn from_pool(pool: &str) -> ClaimRequest {
        let spec = SandboxClaimSpec {
            pool_ref: Some(PoolRef { name: pool.into() }),
            ..SandboxClaimSpec::default()
        };
        ClaimRequest::new(spec, pool)
    }

    /// Begins a claim on any pool that has these labels.
    pub fn from_pools_with<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> ClaimRequest {
        let labels = labels.into_iter().map(|(key, value)| (key.into(), value.into()));
        let spec = SandboxClaimSpec {
            pool_selector: Some(PoolSelector {
                match_labels: labels.collect(),
            }),
            ..SandboxClaimSpec::default()
        };
        ClaimRequest::new(spec, "claim")
    }
}

impl ClaimRequest {
    fn new(spec: SandboxClaimSpec, prefix: &str) -> Self {
        let spec = SandboxClaimSpec { replicas: 1, ..spec };
        Self {
            spec,
            prefix: prefix.into(),
            namespace: None,
        }
    }

    /// The namespace of the pool. Default: that of the client.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// What the claim's name begins with; a random part follows. Default: the name of the pool.
    pub fn name_prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How many sandboxes, bound all together or not at all. Default: 1.
    pub fn replicas(mut self, replicas: i32) -> Self {
        self.spec.replicas = replicas;
        self
    }

    /// How long the claim may stay bound, in whole seconds rounded up.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.spec.lifetime_seconds = Some(seconds(lifetime));
        self
    }

    /// How long the operator lets the claim wait, in whole seconds rounded up. [`ClaimRequest::bind`] then ends with
    /// the reason `WaitTimeout`. Wrap it in [`tokio::time::timeout`] for a deadline that holds without an operator,
    /// too.
    pub fn wait_timeout(mut self, timeout: Duration) -> Self {
        self.spec.wait_timeout_seconds = Some(seconds(timeout));
        self
    }

    /// Adds a label to each sandbox, in the write that binds it.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.pod_metadata().0.insert(key.into(), value.into());
        self
    }

    /// Adds an annotation to each sandbox, in the write that binds it.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.pod_metadata().1.insert(key.into(), value.into());
        self
    }

    /// Sets any other field of the claim's spec.
    pub fn with(mut self, change: impl FnOnce(&mut SandboxClaimSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    fn pod_metadata(&mut self) -> (&mut BTreeMap<String, String>, &mut BTreeMap<String, String>) {
        let metadata = self.spec.pod_metadata.get_or_insert_with(PodMetadata::default);
        (&mut metadata.labels, &mut metadata.annotations)
    }

    /// Creates the claim and waits until its sandboxes are Ready. Where that fails, or where the future is dropped
    /// before, the claim is deleted in the background.
    ///
    /// # Errors
    /// When the API server rejects the claim, when the claim ends unbound, or when it is deleted meanwhile.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn bind(self, client: Client) -> Result<Claim, ClaimError> {
        let namespace = self.namespace.as_deref().unwrap_or(client.default_namespace());
        let api: Api<SandboxClaim> = Api::namespaced(client.clone(), namespace);
        let prefix: String = self.prefix.chars().take(LONGEST_PREFIX).collect();
        let prefix = prefix.trim_end_matches(['-', '.']);
        let name = format!("{prefix}-{:016x}", rand::random::<u64>());
        let held = create(HeldClaim::new(api, name), self.spec).await?;
        let status = until_ready(&held).await?;
        Claim::new(held, status)
    }
}

/// Creates the claim in a task of its own: a caller that is dropped meanwhile must not leave a claim behind whose
/// creation was on its way. Without a receiver the answer is dropped, and the claim is deleted with it.
async fn create(held: HeldClaim, spec: SandboxClaimSpec) -> Result<HeldClaim, ClaimError> {
    let (answer, answered) = oneshot::channel();
    let claim = held.name.clone();
    background::spawn(&Handle::current(), async move {
        drop(answer.send(send(held, spec).await));
    });
    match answered.await {
        Ok(outcome) => outcome.map_err(|source| ClaimError::Request { claim, source }),
        // The task has ended without an answer: the runtime stops.
        Err(_) => Err(ClaimError::Deleted { claim }),
    }
}

async fn send(mut held: HeldClaim, spec: SandboxClaimSpec) -> Result<HeldClaim, CallError> {
    let object = SandboxClaim::new(&held.name, spec);
    match call(held.api.create(&PostParams::default(), &object)).await {
        Ok(created) => {
            held.uid = created.uid();
            Ok(held)
        }
        Err(error) => {
            // An answer from the API server says that nothing was created. Without one the claim may exist, so it is
            // deleted.
            if matches!(&error, CallError::Kube(kube::Error::Api(status)) if status.code < 500) {
                held.disarm();
            }
            Err(error)
        }
    }
}

fn seconds(duration: Duration) -> i32 {
    let whole = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(whole).unwrap_or(i32::MAX)
}
