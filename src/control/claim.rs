//! Reconciling a claim: observe, plan, apply. The binding itself is the pool's matter; here the claim's status
//! follows its sandbox, and what was left half done is finished.

use super::{Context, requeue};
use crate::api::claim::{BoundSandbox, Phase};
use crate::apply::outcome::{Class, call};
use crate::apply::publish;
use crate::observe::claim::Claim;
use crate::observe::index::Trigger;
use crate::observe::sandbox::{Owner, Sandbox};
use crate::observe::stored::{self, StoredClaim, StoredPod};
use crate::plan::claim::{ClaimPlan, plan};
use jiff::Timestamp;
use kube::Api;
use kube::runtime::controller::Action;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How soon a live read that failed is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Brings a claim's status up to date.
///
/// # Errors
/// None: what a write meets is part of the next view.
pub async fn reconcile(claim: Arc<StoredClaim>, context: Arc<Context>) -> Result<Action, Infallible> {
    let key = stored::key(&claim.metadata);
    let _timed = context.writer.metrics.reconciling(Trigger::Claim(key.clone()));
    if !context.shared.synced() {
        return Ok(Action::await_change());
    }
    let now = Timestamp::now();
    let view = context.shared.lock().claim_view(&key, now);
    let Some(view) = view else {
        return Ok(Action::await_change());
    };
    let ClaimPlan {
        status,
        release,
        confirm_loss,
        delete,
        next,
    } = plan(&view);
    let why = match view.claim.status.phase {
        Some(Phase::Expired) => "ClaimExpired",
        _ => "NotPublished",
    };
    release
        .into_iter()
        .for_each(|sandbox| context.writer.release(sandbox, why));
    if delete {
        publish::delete_claim(&context.writer, &view.claim).await;
        return Ok(Action::await_change());
    }
    let Some(status) = status else {
        return Ok(requeue(now, next));
    };
    for published in &confirm_loss {
        match is_lost(&context, &view.claim, published).await {
            Some(true) => {}
            Some(false) => return Ok(Action::await_change()),
            None => return Ok(Action::requeue(RETRY)),
        }
    }
    publish::claim_update(&context.writer, &view.claim, *status).await;
    Ok(requeue(now, next))
}

/// Whether the published sandbox is gone indeed; `None` when nobody can tell now. A pod whose labels were
/// taken off by hand leaves the watch and is still its tenant's.
async fn is_lost(context: &Context, claim: &Claim, published: &BoundSandbox) -> Option<bool> {
    let pods: Api<StoredPod> = Api::namespaced(context.writer.client.clone(), &claim.key.namespace);
    match call(pods.get(&published.name)).await {
        Ok(pod) => {
            let held = pod
                .metadata
                .owner_references
                .iter()
                .flatten()
                .any(|o| o.uid == claim.uid);
            let labelled = Sandbox::read(&pod).is_some_and(|s| matches!(s.owner, Owner::Claim { .. }));
            if held && labelled {
                context.shared.lock().apply_pod(&pod);
            }
            Some(!held || stored::uid(&pod.metadata) != published.uid)
        }
        Err(error) => (error.class() == Class::Gone).then_some(true),
    }
}
