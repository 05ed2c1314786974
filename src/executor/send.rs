//! One request, one call, one outcome.

use crate::client::call::call;
use crate::client::object_requests::{create, only, replace_status};
use crate::client::request_errors::CallError;
use crate::executor::claim_status_body::claim_status_body;
use crate::executor::pod_body::pod_body;
use crate::executor::pod_disruption_budget_body::{budget_body, budget_patch};
use crate::executor::pod_patch::{
    PodPatchError, choosing_patch, claiming_patch, disruption_patch, draining_patch, restoring_patch,
};
use crate::executor::pool_status_patch::pool_status_patch;
use crate::executor::revision_body::{labels_patch, number_patch, revision_body};
use crate::model::Key;
use crate::model::failure::{Class, Failure};
use crate::model::pod_disruption_budget::BudgetStep;
use crate::model::request::{
    Answer, BudgetRequest, Outcome, PodChange, PodWrite, Request, RevisionRequest, RevisionStep,
};
use crate::model::stored::{StoredClaim, StoredDisruptionBudget, StoredPod, StoredPool, StoredRevision};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Sends `request` once.
pub async fn send(client: &Client, request: &Request) -> Outcome {
    match request {
        Request::WritePod(write) => write_pod(client, write).await,
        Request::CreatePod(creation) => {
            let pods = api::<StoredPod>(client, &creation.pod.namespace);
            pod(create(client, &pods, &pod_body(creation)).await)
        }
        Request::ReadPod(key) => read_pod(client, key).await,
        Request::ReadLostPod(claim, published) => {
            read_pod(client, &Key::new(claim.key.namespace.clone(), &published.name)).await
        }
        Request::WriteClaim(write) => {
            let claims = api::<StoredClaim>(client, &write.claim.key.namespace);
            let body = claim_status_body(&write.claim, &write.status);
            claim(replace_status(client, &claims, &write.claim.key.name, &body).await)
        }
        Request::DeleteClaim(claim) => {
            let claims = api::<StoredClaim>(client, &claim.key.namespace);
            let version_decided_on = only(&claim.uid, Some(&claim.resource_version));
            deleted(call(claims.delete(&claim.key.name, &version_decided_on)).await)
        }
        Request::ReadClaim(read) => {
            let claims = api::<StoredClaim>(client, &read.key.namespace);
            claim(call(claims.get(&read.key.name)).await)
        }
        Request::WritePool(write) => {
            let pools = api::<StoredPool>(client, &write.pool.key.namespace);
            let patch = pool_status_patch(&write.pool, &write.status);
            let name = &write.pool.key.name;
            let answer = call(pools.patch_status(name, &PatchParams::default(), &patch)).await;
            answered(answer, |stored| Answer::Pool(Box::new(stored)))
        }
        Request::Revision(request) => revision(client, request).await,
        Request::DisruptionBudget(request) => disruption_budget(client, request).await,
    }
}

fn api<K>(client: &Client, namespace: &str) -> Api<K>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
{
    Api::namespaced(client.clone(), namespace)
}

fn answered<T>(answer: Result<T, CallError>, as_answer: impl FnOnce(T) -> Answer) -> Outcome {
    answer.map(as_answer).map_err(|error| error.failure())
}

fn pod(answer: Result<StoredPod, CallError>) -> Outcome {
    answered(answer, |stored| Answer::Pod(Box::new(stored)))
}

fn claim(answer: Result<StoredClaim, CallError>) -> Outcome {
    answered(answer, |stored| Answer::Claim(Box::new(stored)))
}

fn deleted<T>(answer: Result<T, CallError>) -> Outcome {
    answered(answer, |_| Answer::Deleted)
}

async fn read_pod(client: &Client, key: &Key) -> Outcome {
    let pods = api::<StoredPod>(client, &key.namespace);
    pod(call(pods.get(&key.name)).await)
}

async fn write_pod(client: &Client, write: &PodWrite) -> Outcome {
    let sandbox = &write.sandbox;
    let pods = api::<StoredPod>(client, &sandbox.key.namespace);
    let patch = match &write.change {
        // A claim that has bound the pod since has changed its resource version, and nothing is deleted.
        PodChange::Delete => {
            let version_decided_on = only(&sandbox.uid, Some(&sandbox.resource_version));
            return deleted(call(pods.delete(&sandbox.key.name, &version_decided_on)).await);
        }
        PodChange::Bind { claim, pool } => claiming_patch(claim, sandbox, pool),
        PodChange::Drain => draining_patch(sandbox),
        PodChange::Restore(hook) => restoring_patch(sandbox, hook),
        PodChange::MarkDisruption(mark) => disruption_patch(sandbox, *mark),
        PodChange::ChooseReplacement(claim) => choosing_patch(claim, sandbox),
    };
    let patch = patch.map_err(conflict)?;
    let patch = Patch::Json::<()>(patch);
    pod(call(pods.patch(&sandbox.key.name, &PatchParams::default(), &patch)).await)
}

/// The pod as last seen already fails a test of the patch, as the API server would answer.
fn conflict(error: PodPatchError) -> Failure {
    Failure {
        class: Class::Conflict,
        message: error.to_string(),
    }
}

async fn revision(client: &Client, request: &RevisionRequest) -> Outcome {
    let pool = &request.pool;
    let api = api::<StoredRevision>(client, &pool.key.namespace);
    let name = |hash: &str| format!("{}-{hash}", pool.key.name);
    let answer = match &request.step {
        RevisionStep::Create {
            hash,
            template,
            number,
        } => {
            let body = revision_body(pool, &name(hash), hash, template, *number);
            create(client, &api, &body).await
        }
        RevisionStep::Read { hash } => call(api.get(&name(hash))).await,
        RevisionStep::Label { hash, uid } => patched(&api, &name(hash), &labels_patch(pool, hash, uid)).await,
        RevisionStep::Renumber(revision, number) => {
            patched(&api, &revision.key.name, &number_patch(pool, revision, *number)).await
        }
        RevisionStep::Delete(revision) => {
            let parameters = only(&revision.uid, None);
            return deleted(call(api.delete(&revision.key.name, &parameters)).await);
        }
    };
    answered(answer, |stored| Answer::Revision(Box::new(stored)))
}

async fn disruption_budget(client: &Client, request: &BudgetRequest) -> Outcome {
    let api = api::<StoredDisruptionBudget>(client, &request.owner.key().namespace);
    let answer = match &request.step {
        BudgetStep::Create(name, spec) => {
            create(client, &api, &budget_body(&request.owner, name, spec)).await
        }
        BudgetStep::Change(budget, spec) => {
            let patch = Patch::Json::<()>(budget_patch(budget, spec));
            patched(&api, &budget.key.name, &patch).await
        }
        BudgetStep::Delete(budget) => {
            let parameters = only(&budget.uid, None);
            return deleted(call(api.delete(&budget.key.name, &parameters)).await);
        }
    };
    answered(answer, |stored| Answer::DisruptionBudget(Box::new(stored)))
}

async fn patched<K, P>(api: &Api<K>, name: &str, patch: &Patch<P>) -> Result<K, CallError>
where
    K: Clone + DeserializeOwned + Debug,
    P: Serialize + Debug,
{
    call(api.patch(name, &PatchParams::default(), patch)).await
}
