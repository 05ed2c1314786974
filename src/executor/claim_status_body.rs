//! The body that replaces the status of a claim.

use crate::api::{SandboxClaim, SandboxClaimStatus};
use crate::model::claim::Claim;
use kube::Resource;
use serde::Serialize;
use std::borrow::Cow;

/// What the API server reads of a claim when its status is replaced. A replacement costs the API server less than a
/// patch, see docs/performance.md.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimStatusBody<'a> {
    api_version: Cow<'static, str>,
    kind: Cow<'static, str>,
    metadata: DecidedOn<'a>,
    status: &'a SandboxClaimStatus,
}

/// The version of the claim that the status was decided on. The API server rejects the status for any other.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DecidedOn<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
}

/// The body that replaces the status of `claim` with `status`.
pub fn claim_status_body<'a>(claim: &'a Claim, status: &'a SandboxClaimStatus) -> ClaimStatusBody<'a> {
    ClaimStatusBody {
        api_version: SandboxClaim::api_version(&()),
        kind: SandboxClaim::kind(&()),
        metadata: DecidedOn {
            namespace: &claim.key.namespace,
            name: &claim.key.name,
            uid: &claim.uid,
            resource_version: &claim.resource_version,
        },
        status,
    }
}
