//! W1: gives a pod to a claim, and excludes every other claim.

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

/// What came of W1.
pub(crate) enum ClaimPodOutcome {
    /// The claim holds the pod, which is like this now.
    Held(Arc<Sandbox>),
    /// Not this one: it has changed, is another's, or the claim has no use for it any more.
    Missed,
    /// The API server will not have it; its words. That may be for what the claim adds, so no other claim is to miss the
    /// sandbox.
    Rejected(String),
    /// No pod can have the metadata that the claim wants for it; the API server's words.
    Invalid(String),
}

/// Why W1 was not made.
enum NotClaimed {
    /// The pod as last seen cannot be bound.
    Conflict(PodPatchError),
    /// The API server's last word.
    For(CallError),
    /// The claim waits no more, and the sandbox is as it was.
    Free,
    /// The claim waits no more, and a try whose answer was lost may have been carried out.
    Unknown,
}

/// W1 for one sandbox.
pub(crate) async fn give(
    executor: &Executor,
    slot: &mut RequestSlot<'_>,
    order: &BindOrder,
    sandbox: &Arc<Sandbox>,
) -> ClaimPodOutcome {
    let claim = &order.claim;
    match exclude(executor, slot, order, sandbox).await {
        Ok(pod) => {
            executor.shared.lock().expectations.answered(sandbox);
            return ClaimPodOutcome::Held(Arc::new(pod));
        }
        Err(NotClaimed::Unknown) => {
            // A live read is to tell, unless the watch does before.
            executor.shared.lock().expectations.answered(sandbox);
        }
        Err(NotClaimed::Conflict(error)) => {
            tracing::debug!(claim = %claim.key, %error, "the sandbox cannot be bound");
            executor.hold_until_changed(sandbox);
        }
        Err(NotClaimed::Free) => free(executor, sandbox),
        Err(NotClaimed::For(error)) if error.is_rejection() => {
            let message = error.message();
            if !error.is_logged() {
                tracing::error!(claim = %claim.key, pod = %sandbox.key, error = message, "the binding was refused");
            }
            let now = executor.shared.now();
            let mut index = executor.shared.lock();
            if still_waits(&index, order, now) {
                index.note_rejected_sandbox(claim, sandbox);
            }
            drop(index);
            free(executor, sandbox);
            return ClaimPodOutcome::Rejected(message);
        }
        Err(NotClaimed::For(error)) => match error.class() {
            Class::Invalid(message) => {
                free(executor, sandbox);
                return ClaimPodOutcome::Invalid(message);
            }
            Class::Gone => executor.gone(sandbox),
            class => {
                tracing::debug!(claim = %claim.key, pod = %sandbox.key, ?class, "the sandbox was taken or has changed");
                executor.hold_until_changed(sandbox);
            }
        },
    }
    ClaimPodOutcome::Missed
}

/// The sandbox was not given, and is as it was.
fn free(executor: &Executor, sandbox: &Sandbox) {
    executor.shared.lock().expectations.forget(sandbox);
    executor.requeue(sandbox);
}

/// W1. Answers the pod as it is now. It is tried no more once the claim has no use for it.
async fn exclude(
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
    let (mut tries, mut told) = (Tries::new(), false);
    let answer = loop {
        slot.take().await;
        if !still_waits(&executor.shared.lock(), order, executor.shared.now()) {
            break Err(NotClaimed::Free);
        }
        executor.shared.lock().expectations.goes_on(sandbox);
        let error = match slot.call(pods.patch(name, &parameters, &patch)).await {
            Ok(pod) => break Ok(pod),
            Err(error) => error,
        };
        let Some(pause) = tries.pause_after(&error) else {
            break Err(NotClaimed::For(error));
        };
        if tries.go_on_failing(pause) {
            if error.is_rejection() {
                break Err(NotClaimed::For(error));
            }
            if !std::mem::replace(&mut told, true) {
                slot.leave();
                let error = error.message();
                tracing::warn!(claim = %claim.key, pod = %sandbox.key, error, "the API server does not make the binding");
                let message = format!("the API server does not make the binding: {error}");
                // Where that fails, too, it is not the claim that has to be told.
                _ = report_rejection(executor, order, &message).await;
            }
        }
        wait(executor, slot, order, pause).await;
    };
    let pod = match answer {
        // An earlier try whose answer was lost may be the one that changed the pod, whatever is said of a later one.
        Err(why) if is_open(&why, tries.lost) => {
            let now = live(executor, slot, order, &pods, name).await?;
            if !is_held(&now, claim, sandbox) {
                return Err(why);
            }
            now
        }
        answer => answer?,
    };
    Ok(Sandbox::read(&pod).unwrap_or_else(|| sandbox.clone()))
}

/// Whether `why` leaves open who has the pod.
fn is_open(why: &NotClaimed, lost: bool) -> bool {
    match why {
        NotClaimed::For(error) if error.class() == Class::Conflict => true,
        NotClaimed::For(error) if error.class() == Class::Gone => false,
        _ => lost,
    }
}

/// The pod as it is, read as often as it takes while the claim waits, and once at least.
async fn live(
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
        wait(executor, slot, order, pause).await;
        if !still_waits(&executor.shared.lock(), order, executor.shared.now()) {
            return Err(NotClaimed::Unknown);
        }
    }
}

/// Gives the place up and waits, but for no longer than the claim does.
async fn wait(executor: &Executor, slot: &mut RequestSlot<'_>, order: &BindOrder, pause: Duration) {
    let left = time_left(&executor.shared.lock(), order, executor.shared.now());
    slot.pause(pause.min(left)).await;
}

fn is_held(pod: &StoredPod, claim: &Claim, sandbox: &Sandbox) -> bool {
    Sandbox::read(pod).is_some_and(|pod| {
        pod.uid == sandbox.uid && matches!(&pod.owner, Owner::Claim { uid, .. } if *uid == claim.uid)
    })
}
