//! What the outcome of each request changes in the cache. An answer that shows an object counts as an event of its
//! watch, unless the watch knows better: an answer may arrive late.

use crate::api::claim::{BoundSandbox, Phase};
use crate::cache::grouped::remove_from;
use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::{Renumbering, RevisionProgress, SandboxRead};
use crate::cache::stale_answers::{WatchProgress, is_news};
use crate::cache::write_stage;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::failure::{Class, Failure};
use crate::model::pool::Pool;
use crate::model::request::{
    Answer, ClaimWrite, Outcome, PodChange, PodCreation, PodWrite, PoolWrite, Request, RevisionRequest,
    RevisionStep,
};
use crate::model::retry::{ObjectWrite, RETRY_DELAY, Stage, Tries};
use crate::model::revision::Revision;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::stored::{self, StoredClaim, StoredPod, StoredPool, StoredRevision};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use smol_str::SmolStr;
use std::collections::HashSet;
use std::sync::Arc;

impl Index {
    /// How far the watches have got. Take it before a request whose answer the index learns from.
    pub fn watch_progress(&self) -> WatchProgress {
        self.watch_progress
    }

    /// Takes over what became of a request that was sent at `before`. Returns what to reconcile.
    pub fn take_over(
        &mut self,
        request: &Request,
        outcome: Outcome,
        before: WatchProgress,
        now: Timestamp,
    ) -> Vec<ReconcileRequest> {
        let mut to_reconcile = self.changed_by(request, outcome, before, now);
        to_reconcile.extend(self.reports_over_limit.next(&self.requests));
        let mut seen = HashSet::new();
        to_reconcile.retain(|object| seen.insert(object.clone()));
        to_reconcile
    }

    fn changed_by(
        &mut self,
        request: &Request,
        outcome: Outcome,
        before: WatchProgress,
        now: Timestamp,
    ) -> Vec<ReconcileRequest> {
        match request {
            Request::WritePod(write) => self.pod_written(write, outcome, before, now),
            Request::CreatePod(creation) => self.pod_created(creation, outcome, now),
            Request::ReadPod(key) => self.pod_read(key, outcome, before, now),
            Request::ReadLostPod(claim, published) => {
                let read = self.lost_pod_read(claim, &published.uid, outcome, before, now);
                if let Some(memory) = self.claim_memory_mut(claim) {
                    memory.reads.insert(published.uid.as_str().into(), read);
                }
                self.of_claim(claim)
            }
            Request::WriteClaim(write) => self.claim_written(write, outcome, now),
            Request::DeleteClaim(claim) => {
                match outcome {
                    Err(failure) if failure.class != Class::Gone => {
                        self.end_claim_write(claim, Some(failure), now);
                    }
                    // The write is awaited until the watch shows that the claim is gone, so it is not sent twice.
                    Ok(_) | Err(_) => {}
                }
                vec![ReconcileRequest::Claim(claim.key.clone())]
            }
            Request::ReadClaim(claim) => self.claim_read(claim, outcome, now),
            Request::WritePool(write) => self.pool_written(write, outcome, now),
            Request::Revision(request) => self.revision_answered(request, outcome, before, now),
            Request::DisruptionBudget(request) => self.budget_answered(request, outcome, before, now),
        }
    }

    fn pod_written(
        &mut self,
        write: &PodWrite,
        outcome: Outcome,
        before: WatchProgress,
        now: Timestamp,
    ) -> Vec<ReconcileRequest> {
        match outcome {
            Ok(Answer::Pod(pod)) if !matches!(write.change, PodChange::Delete) => {
                self.expectations.answered(write);
                self.note_claimed(write, now);
                self.learn_pod(&pod, before);
            }
            Ok(_) => self.expectations.deleted(write),
            Err(failure) if failure.class == Class::Gone => self.expectations.deleted(write),
            Err(failure) => {
                self.expectations.failed(write, failure, now);
                return vec![ReconcileRequest::FailedWrites];
            }
        }
        let PodChange::Bind { claim, .. } = &write.change else {
            return self.of_sandbox(&write.sandbox);
        };
        self.end_rejection(claim);
        if self.is_complete(claim) {
            // The pool is planned once the claim is published, so that its refill does not delay the publication.
            return vec![ReconcileRequest::Claim(claim.key.clone())];
        }
        let mut to_reconcile = self.of_sandbox(&write.sandbox);
        to_reconcile.extend(self.of_claim(claim));
        to_reconcile
    }

    /// A claim took a sandbox of the pool. A rejected binding took none, and the pool has nothing to make up for.
    fn note_claimed(&mut self, write: &PodWrite, now: Timestamp) {
        if let PodChange::Bind { pool, .. } = &write.change
            && let Some(memory) = self.pool_memory_mut(pool)
        {
            memory.recent_claims.note(now);
        }
    }

    /// Whether a waiting claim holds all its sandboxes.
    fn is_complete(&self, claim: &Claim) -> bool {
        let known = self.claims.get(&claim.key).filter(|known| known.uid == claim.uid);
        known.is_some_and(|known| known.waiting() && self.held_by(known).count() >= known.wanted())
    }

    /// The watch shows the pod soon, and then the pool is planned. Only what waited for the answer is decided on at
    /// once.
    fn pod_created(
        &mut self,
        creation: &Arc<PodCreation>,
        outcome: Outcome,
        now: Timestamp,
    ) -> Vec<ReconcileRequest> {
        if let Err(failure) = outcome {
            self.expectations.creation_failed(&creation.pod, failure, now);
            return vec![ReconcileRequest::FailedWrites];
        }
        if let Some(known) = self.expectations.creation(&creation.pod) {
            known.progress.enter(write_stage::Stage::Answered);
        }
        if self.creation_accepted(&creation.pool, now) {
            vec![ReconcileRequest::Pool(creation.pool.key.clone())]
        } else {
            Vec::new()
        }
    }

    /// The API server created a pod of `pool`. Returns whether other creations waited for that.
    fn creation_accepted(&mut self, pool: &Pool, now: Timestamp) -> bool {
        let Some(memory) = self.pool_memory_mut(pool) else {
            return false;
        };
        memory.accepted_creation.note(pool.generation, now);
        let was_rejected = memory.creation_backoff.succeeded(pool);
        std::mem::take(&mut memory.waits_for_first_pod) || was_rejected
    }

    /// A live read of pod `key`, sent at `before`, shows whether a write on the pod happened.
    fn pod_read(
        &mut self,
        key: &Key,
        outcome: Outcome,
        before: WatchProgress,
        now: Timestamp,
    ) -> Vec<ReconcileRequest> {
        let has_failed = matches!(&outcome, Err(failure) if failure.class != Class::Gone);
        // The cache refuses what was read before a new list, so the read proves nothing either.
        if has_failed || self.watch_progress.pods.lists != before.pods.lists {
            self.expectations.read_failed(key, now);
            return vec![ReconcileRequest::FailedWrites];
        }
        let live = match outcome {
            Ok(Answer::Pod(pod)) => Some(pod),
            Ok(_) | Err(_) => None,
        };
        let known = self.pod(key);
        let known_before = known
            .as_ref()
            .is_some_and(|known| before.pods.covers(&known.resource_version));
        let sandbox = live.as_ref().and_then(|pod| Sandbox::read(pod));
        let mut to_reconcile = vec![ReconcileRequest::FailedWrites];
        to_reconcile.extend(self.expectations.claims_of(key).map(ReconcileRequest::of_binding));
        if let Some(proven) = self.expectations.read(key, sandbox.as_ref()) {
            self.creation_accepted(&proven.pool, now);
        }
        match live {
            Some(pod) => to_reconcile.extend(self.learn_pod(&pod, before)),
            None if known_before => to_reconcile.extend(self.remove_pod(key)),
            // The pod may have been created after the read.
            None => {}
        }
        match self.pod(key).or(known) {
            Some(sandbox) => to_reconcile.extend(self.of_sandbox(&sandbox)),
            None => {
                let pools = self.pool_keys().into_iter();
                let here = pools.filter(|pool| pool.namespace == key.namespace);
                to_reconcile.extend(here.map(ReconcileRequest::Pool));
            }
        }
        to_reconcile
    }

    /// What a live read says of a published sandbox. A pod whose labels a user removed leaves the watch but still
    /// belongs to the claim.
    fn lost_pod_read(
        &mut self,
        claim: &Claim,
        uid: &str,
        outcome: Outcome,
        before: WatchProgress,
        now: Timestamp,
    ) -> SandboxRead {
        match outcome {
            Ok(Answer::Pod(pod)) => {
                let held = stored::is_owned_by(&pod.metadata, &claim.uid);
                let labelled = Sandbox::read(&pod).is_some_and(|s| matches!(s.owner, Owner::Claim { .. }));
                if held && labelled {
                    self.learn_pod(&pod, before);
                }
                if held && stored::uid(&pod.metadata) == uid {
                    SandboxRead::Again(again(None, now))
                } else {
                    SandboxRead::Lost
                }
            }
            Err(failure) if failure.class != Class::Gone => SandboxRead::Again(again(Some(&failure), now)),
            Ok(_) | Err(_) => SandboxRead::Lost,
        }
    }

    fn claim_written(
        &mut self,
        write: &ClaimWrite,
        outcome: Outcome,
        now: Timestamp,
    ) -> Vec<ReconcileRequest> {
        let claim = &write.claim;
        match outcome {
            Ok(Answer::Claim(stored)) => {
                let unkept = not_kept(&stored.metadata, &claim.resource_version);
                self.end_claim_write(claim, unkept, now);
                let to_reconcile = self.learn_claim(&stored, now);
                if !to_reconcile.is_empty() {
                    return to_reconcile;
                }
            }
            Ok(_) => self.end_claim_write(claim, None, now),
            Err(failure) => self.end_claim_write(claim, Some(failure), now),
        }
        self.of_claim(claim)
    }

    /// The write on the claim is done, or failed. A claim that is gone needs no further write; the watch will show
    /// that. The answer to a write says nothing of one that followed it on another version of the claim.
    fn end_claim_write(&mut self, claim: &Claim, failure: Option<Failure>, now: Timestamp) {
        let Some(memory) = self.claim_memory_mut(claim) else {
            return;
        };
        let is_of_another = |write: &ObjectWrite| write.version != claim.resource_version;
        if memory.write.as_deref().is_some_and(is_of_another) {
            return;
        }
        match (&mut memory.write, failure) {
            (Some(write), Some(failure)) => write.failed(failure, now),
            (write, _) => {
                *write = None;
                // These reads decided on this write, which is done.
                memory.reads.retain(|_, read| *read != SandboxRead::Lost);
            }
        }
    }

    /// A live read of the claim: what its status lists, and whether a write that met a conflict is due again.
    fn claim_read(&mut self, claim: &Claim, outcome: Outcome, now: Timestamp) -> Vec<ReconcileRequest> {
        let known = self.claim(&claim.key);
        let Some(known) = known.filter(|known| known.uid == claim.uid) else {
            return Vec::new();
        };
        let (live, failure) = match outcome {
            Ok(Answer::Claim(stored)) => {
                let live = Claim::read(&stored, known.sequence, known.arrived);
                (Some((live, stored)), None)
            }
            Err(failure) if failure.class != Class::Gone => (None, Some(failure)),
            Ok(_) | Err(_) => (None, None),
        };
        let owned: Vec<_> = self.owned_by(&known).collect();
        let Some(memory) = self.claim_memory_mut(claim) else {
            return Vec::new();
        };
        for sandbox in &owned {
            let Some(read) = memory.reads.get_mut(&sandbox.uid) else {
                continue;
            };
            let SandboxRead::ClaimSent(seen) = read else {
                continue;
            };
            let unlisted = |claim: &SmolStr| SandboxRead::Unlisted {
                claim: claim.clone(),
                sandbox: seen.clone(),
            };
            *read = match (&live, &failure) {
                (_, Some(failure)) => SandboxRead::Again(again(Some(failure), now)),
                (Some((live, _)), None) if !may_be_released(live, &known, sandbox, &owned) => {
                    SandboxRead::Again(again(None, now))
                }
                (Some((live, _)), None) if live.uid == known.uid => unlisted(&live.resource_version),
                (Some(_) | None, None) => unlisted(&known.resource_version),
            };
        }
        // Drops pending reads of sandboxes that are gone by now: no answer will come for them.
        memory
            .reads
            .retain(|_, read| !matches!(read, SandboxRead::ClaimSent(_)));
        if let Some(write) = memory
            .write
            .as_mut()
            .filter(|write| write.stage == Stage::Reading)
        {
            match failure {
                Some(failure) => write.failed(failure, now),
                None => write.stage = Stage::Read,
            }
        }
        let mut to_reconcile = self.of_claim(claim);
        if let Some((_, stored)) = live {
            to_reconcile.extend(self.learn_claim(&stored, now));
        }
        to_reconcile
    }

    fn pool_written(&mut self, write: &PoolWrite, outcome: Outcome, now: Timestamp) -> Vec<ReconcileRequest> {
        let pool = &write.pool;
        let Some(memory) = self.pool_memory_mut(pool) else {
            return Vec::new();
        };
        let mut to_reconcile = vec![ReconcileRequest::Pool(pool.key.clone())];
        match outcome {
            Ok(Answer::Pool(stored)) => {
                let unkept = not_kept(&stored.metadata, &pool.resource_version);
                match (&mut memory.status_write, unkept) {
                    (Some(write), Some(failure)) => write.failed(failure, now),
                    (write, _) => *write = None,
                }
                to_reconcile.extend(self.learn_pool(&stored));
            }
            Ok(_) => memory.status_write = None,
            Err(failure) if failure.class == Class::Gone => memory.status_write = None,
            Err(failure) => {
                if let Some(write) = &mut memory.status_write {
                    write.failed(failure, now);
                }
            }
        }
        to_reconcile
    }

    fn revision_answered(
        &mut self,
        request: &RevisionRequest,
        outcome: Outcome,
        before: WatchProgress,
        now: Timestamp,
    ) -> Vec<ReconcileRequest> {
        let pool = &request.pool;
        let Some(memory) = self.pool_memory_mut(pool) else {
            return Vec::new();
        };
        let earlier = match std::mem::take(&mut memory.revision_request) {
            RevisionProgress::Sent(tries) => tries,
            _ => None,
        };
        match (&request.step, outcome) {
            (RevisionStep::Delete(revision), Ok(_)) => self.forget_revision(revision),
            (RevisionStep::Delete(revision), Err(failure)) if failure.class == Class::Gone => {
                self.forget_revision(revision);
            }
            (RevisionStep::Delete(_), Err(failure)) => {
                memory.revision_request = RevisionProgress::TrimFailed(again(Some(&failure), now));
            }
            (RevisionStep::Read { hash }, Ok(Answer::Revision(found))) if !is_of(&found, pool, hash) => {
                if stored::is_owned_by(&found.metadata, &pool.uid) {
                    memory.revision_request = RevisionProgress::Unlabeled(stored::uid(&found.metadata));
                } else {
                    let message = format!("another object has the name {}-{hash}", pool.key.name);
                    memory.creation_backoff.failed(pool, message, None, now);
                }
            }
            (
                RevisionStep::Create { hash, .. } | RevisionStep::Label { hash, .. },
                Ok(Answer::Revision(stored)),
            ) if !is_of(&stored, pool, hash) => {
                let name = &stored::key(&stored.metadata).name;
                let message = format!(
                    "the API server stored ControllerRevision {name} without its labels, owner or template; look for a \
                     webhook that changes it"
                );
                memory.creation_backoff.failed(pool, message, None, now);
            }
            (RevisionStep::Renumber(revision, number), Ok(Answer::Revision(stored))) => {
                memory.revision_request = RevisionProgress::Renumbered(Renumbering {
                    revision: revision.uid.clone(),
                    number: *number,
                    change_cause: pool.change_cause.clone(),
                    until: again(None, now),
                });
                self.learn_revision(&stored, before);
            }
            (_, Ok(Answer::Revision(stored))) => self.learn_revision(&stored, before),
            (RevisionStep::Create { .. }, Err(failure)) if failure.class == Class::Conflict => {
                memory.revision_request = RevisionProgress::NameTaken;
            }
            (RevisionStep::Read { .. }, Err(failure)) if failure.class == Class::Gone => {}
            (_, Err(failure)) => {
                let tries = Tries::after(earlier.as_ref(), failure, now);
                match tries.failure.class {
                    Class::Unknown | Class::NotAdmitted | Class::Throttled(_) => {
                        memory.revision_request = RevisionProgress::Failed(request.step.clone(), tries);
                    }
                    _ => {
                        let message = tries.failure.message;
                        memory.creation_backoff.failed(pool, message, None, now);
                    }
                }
            }
            (_, Ok(_)) => {}
        }
        vec![ReconcileRequest::Pool(pool.key.clone())]
    }

    /// A pod as an answer to a request sent at `before` showed it.
    pub fn learn_pod(&mut self, stored: &StoredPod, before: WatchProgress) -> Vec<ReconcileRequest> {
        let version = stored::resource_version(&stored.metadata);
        if self.watch_progress.pods.knows_better(&version, before.pods) {
            return Vec::new();
        }
        self.take_over_pod(stored)
    }

    /// A revision as an answer to a request sent at `before` showed it.
    pub fn learn_revision(&mut self, stored: &StoredRevision, before: WatchProgress) {
        let version = stored::resource_version(&stored.metadata);
        if !self
            .watch_progress
            .revisions
            .knows_better(&version, before.revisions)
        {
            self.take_over_revision(stored);
        }
    }

    /// A claim as an answer showed it, if the watch has shown that claim and nothing newer of it.
    pub fn learn_claim(&mut self, stored: &StoredClaim, now: Timestamp) -> Vec<ReconcileRequest> {
        let known = self.claims.get(&stored::key(&stored.metadata));
        let is_news =
            known.is_some_and(|known| is_news(&known.uid, &known.resource_version, &stored.metadata));
        if is_news {
            self.apply_claim(stored, true, now)
        } else {
            Vec::new()
        }
    }

    /// A pool as an answer showed it, if the watch has shown that pool and nothing newer of it.
    pub fn learn_pool(&mut self, stored: &StoredPool) -> Vec<ReconcileRequest> {
        let known = self.pools.get(&stored::key(&stored.metadata));
        let is_news =
            known.is_some_and(|known| is_news(&known.uid, &known.resource_version, &stored.metadata));
        if is_news {
            self.apply_pool(stored)
        } else {
            Vec::new()
        }
    }

    /// The API server deleted the revision.
    pub fn forget_revision(&mut self, revision: &Revision) {
        let pool = Key::new(revision.key.namespace.clone(), revision.pool.clone());
        remove_from(&mut self.revisions, &pool, |of_pool| {
            let known = of_pool.get(&revision.key.name);
            known.is_some_and(|known| known.uid == revision.uid)
                && of_pool.remove(&revision.key.name).is_some()
        });
    }

    /// The pool of `sandbox`, and the claim that now owns it.
    pub(crate) fn of_sandbox(&self, sandbox: &Sandbox) -> Vec<ReconcileRequest> {
        let mut to_reconcile = vec![ReconcileRequest::Pool(sandbox.pool_key())];
        let now = self.pod(&sandbox.key);
        if let Owner::Claim { name, .. } = now.as_ref().map_or(&sandbox.owner, |pod| &pod.owner) {
            to_reconcile.push(ReconcileRequest::Claim(Key::new(
                sandbox.key.namespace.clone(),
                name.clone(),
            )));
        }
        to_reconcile
    }

    /// `claim`, and the pools that may serve it.
    pub(crate) fn of_claim(&self, claim: &Claim) -> Vec<ReconcileRequest> {
        let mut to_reconcile = self.pools_for(claim);
        to_reconcile.push(ReconcileRequest::Claim(claim.key.clone()));
        to_reconcile
    }
}

/// Whether a sandbox that the claim owns may be released after a live read of the claim. While the claim waits or has
/// lost a listed sandbox, another leader may be about to publish the sandbox, so it is released only if it has ended.
fn may_be_released(live: &Claim, known: &Claim, sandbox: &Sandbox, owned: &[Arc<Sandbox>]) -> bool {
    let has = |listed: &BoundSandbox| owned.iter().any(|s| s.uid == listed.uid && live.keeps(s));
    let has_ended = matches!(live.status.phase, Some(Phase::Failed | Phase::Expired));
    let is_final = has_ended || (!live.waiting() && live.status.sandboxes.iter().all(has));
    live.uid != known.uid || (!live.lists(sandbox) && (sandbox.finished() || is_final))
}

/// Why a write that the API server answered as done has failed all the same: the object is still at the version `before`,
/// because its schema lacks a field, or because a webhook took the change back.
fn not_kept(stored: &ObjectMeta, before: &str) -> Option<Failure> {
    (stored::resource_version(stored) == before).then(|| Failure {
        class: Class::Rejected,
        message: "the API server stored the status without the change".into(),
    })
}

/// When an object is read again after a read that changed nothing, or that failed.
fn again(failure: Option<&Failure>, now: Timestamp) -> Timestamp {
    let asked = match failure.map(|failure| failure.class) {
        Some(Class::Throttled(pause)) => pause.try_into().unwrap_or(RETRY_DELAY),
        _ => RETRY_DELAY,
    };
    now.checked_add(asked.max(RETRY_DELAY)).unwrap_or(Timestamp::MAX)
}

/// Whether `stored` reads as the pool's revision with this hash.
fn is_of(stored: &StoredRevision, pool: &Pool, hash: &str) -> bool {
    Revision::read(stored).is_some_and(|revision| {
        revision.owner == pool.uid && revision.pool == pool.key.name && revision.hash == hash
    })
}
