//! Deletes the claim when the command ends or a signal ends it, if `--rm` asks for that. Without `--rm` the claim is
//! left, and the command that deletes it is printed.

use crate::cli::kubectl::cluster::{Cluster, ClusterError};
use crate::cli::kubectl::pool;
use crate::cli::kubectl::print;
use crate::client::object_requests::only;
use kube::Api;
use kube::core::DynamicObject;
use thiserror::Error;

/// `--rm` could not delete the claim.
#[derive(Debug, Error)]
#[error("{source}; the claim was not deleted, '{command}' deletes it")]
pub struct NotDeleted {
    /// The command that deletes the claim.
    command: String,
    /// Cause.
    source: ClusterError,
}

/// Deletes the claim. Ignores a claim that is already deleted, and a new claim of the same name.
///
/// # Errors
/// The API server did not delete it.
pub(super) async fn delete(
    cluster: &Cluster,
    claims: &Api<DynamicObject>,
    claim: &DynamicObject,
) -> Result<(), NotDeleted> {
    let name = pool::name(claim);
    match cluster
        .ask(claims.delete(name, &only(pool::uid(claim), None)))
        .await
    {
        Ok(_) => {
            print::note(&format!("sandboxclaim.warmpool.dev {name:?} deleted"));
            Ok(())
        }
        Err(ClusterError::Rejected(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(source) => Err(NotDeleted {
            command: command(name, &cluster.namespace),
            source,
        }),
    }
}

/// The command that deletes the claim.
pub(super) fn command(claim: &str, namespace: &str) -> String {
    format!("kubectl delete sandboxclaim {claim} -n {namespace}")
}
