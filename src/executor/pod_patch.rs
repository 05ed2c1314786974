//! Builds the JSON Patches (RFC 6902) that change a pod's owner or state.
//!
//! They hold no resource version, so that a status update of the kubelet is no conflict. Instead they test what the
//! change depends on. A failed test answers 422 and changes nothing.

use crate::api::claim::{Disruption, PodMetadata};
use crate::api::{API_VERSION, labels};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::disruption_mark::DisruptionMark;
use crate::model::lifecycle_hook::Hook;
use crate::model::pool::Pool;
use crate::model::resolved_claim_spec::pod_metadata;
use crate::model::sandbox::{Owner, Sandbox};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use serde_json::{Value, json};
use thiserror::Error;

/// Why no patch of a pod can be built: the pod, as last seen, already fails a test of the patch. Senders treat it as a
/// conflict.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PodPatchError {
    /// A pool or claim that could be tested for does not own the pod.
    #[error("pod {0} has no owner that may change it")]
    Owner(Key),
    /// The pod's status has no condition Ready.
    #[error("pod {0} has no condition Ready")]
    NotReady(Key),
    /// A finalizer of a lifecycle hook is not on the pod.
    #[error("pod {pod} lacks the finalizer {finalizer}")]
    Finalizer {
        /// The pod.
        pod: Key,
        /// The finalizer.
        finalizer: String,
    },
}

/// The patch that binds `sandbox` of `pool` to `claim`, if the pod is still available. It tests the phase beside Ready,
/// because the pod garbage collector leaves Ready True on a pod that it marks Failed.
///
/// # Errors
/// When the pod as last seen cannot be bound.
pub fn claiming_patch(claim: &Claim, sandbox: &Sandbox, pool: &Pool) -> Result<Patch, PodPatchError> {
    let Owner::Pool { uid: owning_pool } = &sandbox.owner else {
        return Err(PodPatchError::Owner(sandbox.key.clone()));
    };
    let ready_index = sandbox.ready_index;
    let ready_index = ready_index.ok_or_else(|| PodPatchError::NotReady(sandbox.key.clone()))?;
    let owner = owner(sandbox);
    let ready = pointer(["status", "conditions"]).with_trailing_token(ready_index);
    let mut patch = vec![
        test(pointer(["metadata", "uid"]), json!(sandbox.uid)),
        test(label(labels::STATE), json!(labels::WARM)),
        test(pointer(["metadata", "deletionTimestamp"]), Value::Null),
        test(owner.with_trailing_token("uid"), json!(owning_pool)),
        test(pointer(["status", "phase"]), json!("Running")),
        test(ready.with_trailing_token("type"), json!("Ready")),
        test(ready.with_trailing_token("status"), json!("True")),
    ];
    patch.extend(handlers_are_on(&pool.spec.availability_rule.pre_normal, sandbox)?);
    patch.push(add(label(labels::STATE), json!(labels::CLAIMED)));
    patch.push(add(label(labels::CLAIM), json!(claim.key.name)));
    patch.push(add(label(labels::CLAIM_UID), json!(claim.uid)));
    patch.extend(disruption(claim, sandbox, pool));
    let reference = json!({
        "apiVersion": API_VERSION, "kind": "SandboxClaim", "name": claim.key.name, "uid": claim.uid,
        "controller": true, "blockOwnerDeletion": false,
    });
    patch.push(replace(owner, reference));
    let metadata = claim
        .spec
        .as_ref()
        .map(|spec| pod_metadata(spec, &pool.claim_defaults))
        .unwrap_or_default();
    let PodMetadata {
        labels: own_labels,
        annotations,
    } = metadata;
    let is_reserved = |key: &str| key.starts_with(labels::PREFIX);
    patch.extend(
        own_labels
            .iter()
            .filter(|(k, _)| !is_reserved(k))
            .map(|(k, v)| add(label(k), json!(v))),
    );
    let chosen_on = claim.was_bound().then(|| chosen_on(claim));
    if !sandbox.annotated && (!annotations.is_empty() || chosen_on.is_some()) {
        patch.extend(make_annotations());
    }
    patch.extend(chosen_on);
    patch.extend(
        annotations
            .iter()
            .filter(|(k, _)| !is_reserved(k))
            .map(|(k, v)| add(annotation(k), json!(v))),
    );
    Ok(Patch(patch))
}

/// The operation by which a sandbox says on which version of its claim it was chosen as a replacement.
fn chosen_on(claim: &Claim) -> PatchOperation {
    add(annotation(labels::CHOSEN_ON), json!(claim.resource_version))
}

/// The operation that lets the sandbox be evicted, or takes that back, as the claim asks.
fn disruption(claim: &Claim, sandbox: &Sandbox, pool: &Pool) -> Option<PatchOperation> {
    let allows = claim.resolved_spec(Some(&pool.claim_defaults)).disruption == Disruption::Allow;
    let path = label(labels::DISRUPTION);
    match (allows, sandbox.allows_disruption) {
        (true, _) => Some(add(path, json!(labels::ALLOW))),
        (false, true) => Some(remove(path)),
        (false, false) => None,
    }
}

/// The patch that marks a warm sandbox as draining, if the pod has not changed at all: a claim may have bound it, or it
/// may have become available.
///
/// # Errors
/// When the pod as last seen has no owner to test for.
pub(crate) fn draining_patch(sandbox: &Sandbox) -> Result<Patch, PodPatchError> {
    let version = pointer(["metadata", "resourceVersion"]);
    let unchanged = vec![test(version, json!(sandbox.resource_version))];
    state_patch(sandbox, labels::WARM, labels::DRAINING, unchanged)
}

/// The patch that marks a draining sandbox as warm, if every handler of `hook`, its preDelete hooks, is still on it.
///
/// # Errors
/// When the pod as last seen has no owner to test for, or lacks a handler.
pub(crate) fn restoring_patch(sandbox: &Sandbox, hook: &Hook) -> Result<Patch, PodPatchError> {
    let untouched = handlers_are_on(hook, sandbox)?;
    state_patch(sandbox, labels::DRAINING, labels::WARM, untouched)
}

/// The tests that the pod is still the sandbox that was seen, of that owner and not being deleted.
fn is_still_owned_by(owner_uid: &str, sandbox: &Sandbox) -> Vec<PatchOperation> {
    vec![
        test(pointer(["metadata", "uid"]), json!(sandbox.uid)),
        test(pointer(["metadata", "deletionTimestamp"]), Value::Null),
        test(owner(sandbox).with_trailing_token("uid"), json!(owner_uid)),
    ]
}

/// The tests that the pod is still the claimed sandbox that was seen.
fn is_still_claimed(sandbox: &Sandbox) -> Result<Vec<PatchOperation>, PodPatchError> {
    match &sandbox.owner {
        Owner::Claim { uid, .. } => Ok(is_still_owned_by(uid, sandbox)),
        _ => Err(PodPatchError::Owner(sandbox.key.clone())),
    }
}

/// The patch by which a sandbox that `claim` holds says that the claim chose it as a replacement.
///
/// # Errors
/// When no claim owns the pod as last seen.
pub(crate) fn choosing_patch(claim: &Claim, sandbox: &Sandbox) -> Result<Patch, PodPatchError> {
    let mut patch = is_still_claimed(sandbox)?;
    patch.extend((!sandbox.annotated).then(make_annotations).into_iter().flatten());
    patch.push(chosen_on(claim));
    Ok(Patch(patch))
}

/// The patch by which a claimed sandbox says since when it may be evicted.
///
/// # Errors
/// When no claim owns the pod as last seen.
pub(crate) fn disruption_patch(sandbox: &Sandbox, mark: DisruptionMark) -> Result<Patch, PodPatchError> {
    let mut patch = is_still_claimed(sandbox)?;
    let at = annotation(labels::DISRUPTION_DEADLINE);
    match (mark.deadline, sandbox.disruption_deadline) {
        (Some(deadline), _) => {
            patch.extend((!sandbox.annotated).then(make_annotations).into_iter().flatten());
            patch.push(add(at, json!(deadline.to_string())));
        }
        (None, Some(_)) => patch.push(remove(at)),
        (None, None) => {}
    }
    match (mark.allowed, sandbox.allows_disruption) {
        (true, _) => patch.push(add(label(labels::DISRUPTION), json!(labels::ALLOW))),
        (false, true) => patch.push(remove(label(labels::DISRUPTION))),
        (false, false) => {}
    }
    Ok(Patch(patch))
}

/// The patch that changes the state label of an unclaimed pod from one value to another, under `conditions`.
fn state_patch(
    sandbox: &Sandbox,
    from: &str,
    to: &str,
    conditions: Vec<PatchOperation>,
) -> Result<Patch, PodPatchError> {
    let (Owner::Pool { uid: owner_uid } | Owner::Claim { uid: owner_uid, .. }) = &sandbox.owner else {
        return Err(PodPatchError::Owner(sandbox.key.clone()));
    };
    let mut patch = is_still_owned_by(owner_uid, sandbox);
    patch.push(test(label(labels::STATE), json!(from)));
    patch.extend(conditions);
    patch.push(replace(label(labels::STATE), json!(to)));
    Ok(Patch(patch))
}

/// Tests that every handler of `hook` is still on the pod, where it was seen on `sandbox`.
fn handlers_are_on(hook: &Hook, sandbox: &Sandbox) -> Result<Vec<PatchOperation>, PodPatchError> {
    let labels = hook
        .labels
        .iter()
        .map(|(key, value)| Ok(test(label(key), json!(value))));
    let finalizers = hook.finalizers.iter().map(|name| {
        let index = sandbox.finalizers.iter().position(|f| f == name);
        let index = index.ok_or_else(|| PodPatchError::Finalizer {
            pod: sandbox.key.clone(),
            finalizer: name.clone(),
        })?;
        let finalizer = pointer(["metadata", "finalizers"]).with_trailing_token(index);
        Ok(test(finalizer, json!(name)))
    });
    labels.chain(finalizers).collect()
}

/// The test that `path` holds `value`. Null also holds where nothing is.
fn test(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path, value })
}

/// The operation that puts `value` at `path`, over what is there.
fn add(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}

/// The operations that give a pod without annotations a place for them.
fn make_annotations() -> [PatchOperation; 2] {
    let path = pointer(["metadata", "annotations"]);
    [test(path.clone(), Value::Null), add(path, json!({}))]
}

/// The operation that removes what is at `path`; it fails where nothing is.
fn remove(path: PointerBuf) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path })
}

/// The operation that replaces what is at `path`; it fails where nothing is.
fn replace(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Replace(ReplaceOperation { path, value })
}

/// The path of these fields. The library escapes each of them (RFC 6901).
fn pointer<const N: usize>(fields: [&str; N]) -> PointerBuf {
    PointerBuf::from_tokens(fields)
}

fn label(key: &str) -> PointerBuf {
    pointer(["metadata", "labels", key])
}

fn annotation(key: &str) -> PointerBuf {
    pointer(["metadata", "annotations", key])
}

/// The path of the owner reference of the pool or claim that owns the pod.
fn owner(sandbox: &Sandbox) -> PointerBuf {
    pointer(["metadata", "ownerReferences"]).with_trailing_token(sandbox.owner_index)
}
