//! W1: one pod becomes the claim's, and no other claim can bind it.

use crate::client::call::{CallError, Class};
use crate::executor::handle::Executor;
use crate::executor::pod_patch::{PodPatchError, claiming_patch};
use crate::executor::request_limit::RequestSlot;
use crate::executor::retry::Tries;
use crate::executor::task::BindOrder;
use crate::executor::waiting_claim::{report_rejection, still_waits, time_left};
use crate::model::claim::Claim;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::stored::StoredPod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use std::sync::Arc;
use std::time::Duration;

/// The outcome of W1.
pub(crate) enum ClaimPodOutcome {
    /// The claim holds the pod, whose present state this is.
    Held(Arc<Sandbox>),
    /// The pod has changed or belongs to another claim, or this claim no longer waits.
    Missed,
    /// The API server rejects the write; its message. The cause may be the metadata that this claim adds, so the sandbox stays
    /// available to other claims.
    Rejected(String),
    /// No pod can have the claim's metadata; the API server's message.
    Invalid(String),
}

/// Why W1 did not happen.
enum NotClaimed {
    /// The pod as last seen cannot be bound.
    Conflict(PodPatchError),
    /// The API server's last answer.
    For(CallError),
    /// The claim no longer waits; the pod is unchanged.
    Unsent,
    /// The claim no longer waits; a try whose answer was lost may have happened.
    Unknown,
}

/// Binds one sandbox to the claim of `order`.
pub(crate) async fn claim_pod(
    executor: &Executor,
    slot: &mut RequestSlot<'_>,
    order: &BindOrder,
    sandbox: &Arc<Sandbox>,
) -> ClaimPodOutcome {
    let claim = &order.claim;
    match patch_pod(executor, slot, order, sandbox).await {
        Ok(pod) => {
            executor.shared.lock().expectations.answered(sandbox);
            return ClaimPodOutcome::Held(Arc::new(pod));
        }
        Err(NotClaimed::Unknown) => {
            // The watch shows the outcome, or else a live read.
            executor.shared.lock().expectations.answered(sandbox);
        }
        Err(NotClaimed::Conflict(error)) => {
            tracing::debug!(claim = %claim.key, %error, "the sandbox cannot be bound");
            executor.hold_until_changed(sandbox);
        }
        Err(NotClaimed::Unsent) => forget_binding(executor, sandbox),
        Err(NotClaimed::For(error)) if error.is_rejection() => {
            let message = error.message();
            if !error.is_logged() {
                tracing::error!(claim = %claim.key, pod = %sandbox.key, error = message, "the API server rejects the binding");
            }
            let now = executor.shared.now();
            let mut index = executor.shared.lock();
            if still_waits(&index, order, now) {
                index.note_rejected_sandbox(claim, sandbox);
            }
            drop(index);
            forget_binding(executor, sandbox);
            return ClaimPodOutcome::Rejected(message);
        }
        Err(NotClaimed::For(error)) => match error.class() {
            Class::Invalid(message) => {
                forget_binding(executor, sandbox);
                return ClaimPodOutcome::Invalid(message);
            }
            Class::Gone => executor.gone(sandbox),
            class => {
                tracing::debug!(claim = %claim.key, pod = %sandbox.key, ?class, "the sandbox has changed since it was selected");
                executor.hold_until_changed(sandbox);
            }
        },
    }
    ClaimPodOutcome::Missed
}

/// Forgets the expected binding of a sandbox that is unchanged.
fn forget_binding(executor: &Executor, sandbox: &Sandbox) {
    executor.shared.lock().expectations.forget(sandbox);
    executor.requeue(sandbox);
}

/// Sends W1 until its outcome is known or the claim no longer waits. Returns the pod as it is now.
async fn patch_pod(
    executor: &Executor,
    slot: &mut RequestSlot<'_>,
    order: &BindOrder,
    sandbox: &Sandbox,
) -> Result<Sandbox, NotClaimed> {
    let (claim, pool) = (&order.claim, &order.pool);
    let pods: Api<StoredPod> = Api::namespaced(executor.client.clone(), &sandbox.key.namespace);
    let name = &sandbox.key.name;
    let patch = claiming_patch(claim, sandbox, pool).map_err(NotClaimed::Conflict)?;
    let (parameters, patch) = (PatchParams::default(), Patch::Json::<()>(patch));
    let (mut tries, mut reported) = (Tries::new(), false);
    let answer = loop {
        slot.acquire().await;
        if !still_waits(&executor.shared.lock(), order, executor.shared.now()) {
            break Err(NotClaimed::Unsent);
        }
        executor.shared.lock().expectations.goes_on(sandbox);
        let error = match slot.call(pods.patch(name, &parameters, &patch)).await {
            Ok(pod) => break Ok(pod),
            Err(error) => error,
        };
        let Some(pause) = tries.pause_after(&error) else {
            break Err(NotClaimed::For(error));
        };
        if tries.keep_failing(pause) {
            if error.is_rejection() {
                break Err(NotClaimed::For(error));
            }
            if !std::mem::replace(&mut reported, true) {
                slot.release();
                let error = error.message();
                tracing::warn!(claim = %claim.key, pod = %sandbox.key, error, "the binding keeps failing");
                let message = format!("the API server does not make the binding: {error}");
                // When this write fails, too, the cause is not the claim.
                _ = report_rejection(executor, order, &message).await;
            }
        }
        back_off(executor, slot, order, pause).await;
    };
    let pod = match answer {
        // An earlier try whose answer was lost may have changed the pod, whatever a later try is answered.
        Err(why) if is_unknown(&why, tries.lost) => {
            let now = read_live(executor, slot, order, &pods, name).await?;
            if !is_held(&now, claim, sandbox) {
                return Err(why);
            }
            now
        }
        answer => answer?,
    };
    Ok(Sandbox::read(&pod).unwrap_or_else(|| sandbox.clone()))
}

/// Whether `why` does not say which claim holds the pod.
fn is_unknown(why: &NotClaimed, lost: bool) -> bool {
    match why {
        NotClaimed::For(error) if error.class() == Class::Conflict => true,
        NotClaimed::For(error) if error.class() == Class::Gone => false,
        _ => lost,
    }
}

/// Reads the pod, again and again while the claim waits and at least once.
async fn read_live(
    executor: &Executor,
    slot: &mut RequestSlot<'_>,
    order: &BindOrder,
    pods: &Api<StoredPod>,
    name: &str,
) -> Result<StoredPod, NotClaimed> {
    let mut tries = Tries::new();
    loop {
        let error = match slot.call(pods.get(name)).await {
            Ok(pod) => return Ok(pod),
            Err(error) => error,
        };
        let pause = match error.class() {
            Class::Gone => return Err(NotClaimed::For(error)),
            Class::Throttled(pause) => pause,
            _ => tries.next_pause(),
        };
        back_off(executor, slot, order, pause).await;
        if !still_waits(&executor.shared.lock(), order, executor.shared.now()) {
            return Err(NotClaimed::Unknown);
        }
    }
}

/// Releases the slot and waits, but no longer than the claim waits.
async fn back_off(executor: &Executor, slot: &mut RequestSlot<'_>, order: &BindOrder, pause: Duration) {
    let left = time_left(&executor.shared.lock(), order, executor.shared.now());
    slot.back_off(pause.min(left)).await;
}

fn is_held(pod: &StoredPod, claim: &Claim, sandbox: &Sandbox) -> bool {
    Sandbox::read(pod).is_some_and(|pod| {
        pod.uid == sandbox.uid && matches!(&pod.owner, Owner::Claim { uid, .. } if *uid == claim.uid)
    })
}
