//! Owns a claim in the cluster: deletes it when it is dropped.

use crate::api::SandboxClaim;
use crate::claim_client::background;
use crate::client::call::call;
use crate::client::request_errors::CallError;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use std::time::Duration;
use tokio::runtime::Handle;

/// Tries of a deletion. With the pauses between them they take a second and a half, and the deadlines of the requests.
const TRIES: u32 = 5;

/// The pause after the first try; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// A claim that is deleted on drop, unless it was disarmed.
#[derive(Debug)]
pub(super) struct HeldClaim {
    /// The claims of the namespace.
    pub(super) api: Api<SandboxClaim>,
    /// Name of the claim, with a random part: no other program has a claim of this name.
    pub(super) name: String,
    /// UID of the claim. Unknown while the answer to the creation has not come.
    pub(super) uid: Option<String>,
    runtime: Handle,
    armed: bool,
}

impl HeldClaim {
    /// Takes charge of a claim that is about to be created. Runs on a tokio runtime.
    pub(super) fn new(api: Api<SandboxClaim>, name: String) -> Self {
        Self {
            api,
            name,
            uid: None,
            runtime: Handle::current(),
            armed: true,
        }
    }

    /// Leaves the claim in the cluster.
    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }

    /// Deletes the claim. A caller that is dropped does not stop the deletion.
    ///
    /// # Errors
    /// The error of the last try.
    pub(super) async fn delete(mut self) -> Result<(), CallError> {
        self.disarm();
        let deletion = delete(self.api.clone(), self.name.clone(), self.uid.clone());
        // A task ends without an answer only when the runtime stops, and then nobody awaits it.
        background::spawn(&self.runtime, deletion).await.unwrap_or(Ok(()))
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        if self.armed {
            let deletion = delete(self.api.clone(), self.name.clone(), self.uid.clone());
            let name = self.name.clone();
            background::spawn(&self.runtime, async move {
                if let Err(error) = deletion.await {
                    tracing::warn!(
                        claim = name,
                        "the claim could not be deleted: {}",
                        error.message()
                    );
                }
            });
        }
    }
}

/// Deletes exactly this claim. A claim that is gone, or whose name another one has, needs no deletion.
async fn delete(api: Api<SandboxClaim>, name: String, uid: Option<String>) -> Result<(), CallError> {
    let exactly = DeleteParams {
        preconditions: uid.map(|uid| Preconditions {
            uid: Some(uid),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match call(api.delete(&name, &exactly)).await {
            Ok(_) => return Ok(()),
            Err(error) if is_gone(&error) => return Ok(()),
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause *= 2;
    }
    match call(api.delete(&name, &exactly)).await {
        Err(error) if !is_gone(&error) => Err(error),
        _ => Ok(()),
    }
}

fn is_gone(error: &CallError) -> bool {
    matches!(error, CallError::Kube(kube::Error::Api(status)) if matches!(status.code, 404 | 409))
}
