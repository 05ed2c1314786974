//! What the spec of a claim may not hold, although an object stored under an older, looser schema may.

use crate::api::SandboxClaimSpec;

/// The spec, or a sentence that names the field with an invalid value.
pub(crate) fn validated(spec: SandboxClaimSpec) -> Result<SandboxClaimSpec, String> {
    if !(1..=1000).contains(&spec.replicas) {
        return Err(format!("spec.replicas: {} is not from 1 to 1000", spec.replicas));
    }
    if let Some(seconds) = spec.wait_timeout_seconds.filter(|s| *s < 1) {
        return Err(format!("spec.waitTimeoutSeconds: {seconds} is not 1 or more"));
    }
    if let Some(seconds) = spec.lifetime_seconds.filter(|s| *s < 1) {
        return Err(format!("spec.lifetimeSeconds: {seconds} is not 1 or more"));
    }
    if spec.lifetime_seconds.is_some() && spec.shutdown_time.is_some() {
        return Err("spec: must hold at most one of lifetimeSeconds and shutdownTime".into());
    }
    Ok(spec)
}
