//! W1: gives a pod to a claim, and excludes every other claim.

use crate::cache::index::Index;
use crate::executor::Writer;
use crate::executor::bind::{Order, claiming_patch, say_refused};
use crate::executor::outcome::{CallError, Class, Tries};
use crate::executor::request_limit::Place;
use crate::model::claim::Claim;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::stored::StoredPod;
use jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use std::sync::Arc;
use std::time::Duration;

/// What came of W1.
pub(crate) enum Given {
    /// The claim holds the pod, which is like this now.
    Held(Arc<Sandbox>),
    /// Not this one: it has changed, is another's, or the claim has no use for it any more.
    Missed,
    /// The API server will not have it; its words. That may be for what the claim adds, so no other claim is to miss the
    /// sandbox.
    Refused(String),
    /// No pod can have the metadata that the claim wants for it; the API server's words.
    Invalid(String),
}

/// Why W1 was not made.
enum NotGiven {
    /// The API server's last word.
    For(CallError),
    /// The claim waits no more, and the sandbox is as it was.
    Free,
    /// The claim waits no more, and a try whose answer was lost may have been carried out.
    Unknown,
}

/// W1 for one sandbox.
pub(crate) async fn give(
    writer: &Writer,
    place: &mut Place<'_>,
    order: &Order,
    sandbox: &Arc<Sandbox>,
) -> Given {
    let claim = &order.claim;
    match exclude(writer, place, order, sandbox).await {
        Ok(pod) => {
            writer.shared.lock().pending.answered(sandbox);
            return Given::Held(Arc::new(pod));
        }
        Err(NotGiven::Unknown) => {
            // A live read is to tell, unless the watch does before.
            writer.shared.lock().pending.answered(sandbox);
        }
        Err(NotGiven::Free) => free(writer, sandbox),
        Err(NotGiven::For(error)) if error.is_refusal() => {
            let message = error.message();
            if !error.is_told() {
                tracing::error!(claim = %claim.key, pod = %sandbox.key, error = message, "the binding was refused");
            }
            let now = writer.shared.now();
            let mut index = writer.shared.lock();
            if still_waits(&index, order, now) {
                index.note_refuser(claim, sandbox);
            }
            drop(index);
            free(writer, sandbox);
            return Given::Refused(message);
        }
        Err(NotGiven::For(error)) => match error.class() {
            Class::Invalid(message) => {
                free(writer, sandbox);
                return Given::Invalid(message);
            }
            Class::Gone => writer.gone(sandbox),
            class => {
                tracing::debug!(claim = %claim.key, pod = %sandbox.key, ?class, "the sandbox was taken or has changed");
                writer.set_aside(sandbox);
            }
        },
    }
    Given::Missed
}

/// The sandbox was not given, and is as it was.
fn free(writer: &Writer, sandbox: &Sandbox) {
    writer.shared.lock().pending.forget(sandbox);
    writer.look_again(sandbox);
}

/// W1. Answers the pod as it is now. It is tried no more once the claim has no use for it.
async fn exclude(
    writer: &Writer,
    place: &mut Place<'_>,
    order: &Order,
    sandbox: &Sandbox,
) -> Result<Sandbox, NotGiven> {
    let (claim, pool) = (&order.claim, &order.pool);
    let pods: Api<StoredPod> = Api::namespaced(writer.client.clone(), &sandbox.key.namespace);
    let name = &sandbox.key.name;
    let patch: json_patch::Patch = serde_json::from_value(claiming_patch(claim, sandbox, pool))
        .map_err(|e| NotGiven::For(CallError::Kube(kube::Error::SerdeError(e))))?;
    let (parameters, patch) = (PatchParams::default(), Patch::Json::<()>(patch));
    let (mut tries, mut told) = (Tries::new(), false);
    let answer = loop {
        place.take().await;
        if !still_waits(&writer.shared.lock(), order, writer.shared.now()) {
            break Err(NotGiven::Free);
        }
        writer.shared.lock().pending.goes_on(sandbox);
        let error = match place.call(pods.patch(name, &parameters, &patch)).await {
            Ok(pod) => break Ok(pod),
            Err(error) => error,
        };
        let Some(pause) = tries.pause_after(&error) else {
            break Err(NotGiven::For(error));
        };
        if tries.go_on_failing(pause) {
            if error.is_refusal() {
                break Err(NotGiven::For(error));
            }
            if !std::mem::replace(&mut told, true) {
                place.leave();
                let error = error.message();
                tracing::warn!(claim = %claim.key, pod = %sandbox.key, error, "the API server does not make the binding");
                let message = format!("the API server does not make the binding: {error}");
                // Where that fails, too, it is not the claim that has to be told.
                _ = say_refused(writer, order, &message).await;
            }
        }
        wait(writer, place, order, pause).await;
    };
    let pod = match answer {
        // An earlier try whose answer was lost may be the one that changed the pod, whatever is said of a later one.
        Err(why) if is_open(&why, tries.lost) => {
            let now = live(writer, place, order, &pods, name).await?;
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
fn is_open(why: &NotGiven, lost: bool) -> bool {
    match why {
        NotGiven::For(error) if error.class() == Class::Stale => true,
        NotGiven::For(error) if error.class() == Class::Gone => false,
        _ => lost,
    }
}

/// The pod as it is, read as often as it takes while the claim waits, and once at least.
async fn live(
    writer: &Writer,
    place: &mut Place<'_>,
    order: &Order,
    pods: &Api<StoredPod>,
    name: &str,
) -> Result<StoredPod, NotGiven> {
    let mut tries = Tries::new();
    loop {
        let error = match place.call(pods.get(name)).await {
            Ok(pod) => return Ok(pod),
            Err(error) => error,
        };
        let pause = match error.class() {
            Class::Gone => return Err(NotGiven::For(error)),
            Class::Throttled(pause) => pause,
            _ => tries.next_pause(),
        };
        wait(writer, place, order, pause).await;
        if !still_waits(&writer.shared.lock(), order, writer.shared.now()) {
            return Err(NotGiven::Unknown);
        }
    }
}

/// Gives the place up and waits, but for no longer than the claim does.
async fn wait(writer: &Writer, place: &mut Place<'_>, order: &Order, pause: Duration) {
    let left = time_left(&writer.shared.lock(), order, writer.shared.now());
    place.pause(pause.min(left)).await;
}

/// Whether the claim is still there and waits, as far as is seen.
pub(crate) fn still_waits(index: &Index, order: &Order, now: Timestamp) -> bool {
    !time_left(index, order, now).is_zero()
}

/// For how long the claim still waits to be served, as far as is seen: its user may have given it more or less time.
pub(crate) fn time_left(index: &Index, order: &Order, now: Timestamp) -> Duration {
    let claim = index.claim(&order.claim.key);
    let Some(claim) = claim.filter(|claim| claim.uid == order.claim.uid && claim.waiting()) else {
        return Duration::ZERO;
    };
    let terms = claim.terms(Some(&order.pool.claim_defaults));
    let ends = [claim.deadline(&terms), claim.expiration()];
    let end = ends.into_iter().flatten().min().unwrap_or(Timestamp::MAX);
    end.duration_since(now).try_into().unwrap_or_default()
}

fn is_held(pod: &StoredPod, claim: &Claim, sandbox: &Sandbox) -> bool {
    Sandbox::read(pod).is_some_and(|pod| {
        pod.uid == sandbox.uid && matches!(&pod.owner, Owner::Claim { uid, .. } if *uid == claim.uid)
    })
}
