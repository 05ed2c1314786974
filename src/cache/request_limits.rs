//! Limits the requests in flight: those above a limit wait here, in the order in which they were decided.

use crate::api::claim::Phase;
use crate::model::request::{ClaimWrite, PodChange, Request};
use smol_str::SmolStr;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Most binding patches and publications in flight together. More requests only make the API server answer slower.
pub const BINDINGS: usize = 32;
/// Most binding patches of one claim in flight. A claim for many sandboxes leaves requests to other claims.
const BINDINGS_PER_CLAIM: usize = BINDINGS / 4;
/// Most creations, deletions and drains in flight. Their limit is separate, so that no binding waits for them.
const CHANGES: usize = 32;
/// Most statuses of claims in flight, beside those that bind.
const STATUSES: usize = 32;

/// Most statuses of claims queued or in flight before reports wait unplanned: enough that one follows each answer at
/// once.
const QUEUED_STATUSES: usize = 2 * STATUSES;

/// Requests that share a limit, in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    /// Bindings.
    Bindings,
    /// Bindings that failed before. A request that is never answered counts until its deadline; with a limit of their
    /// own, retries of such requests cannot delay first tries.
    RetriedBindings,
    /// Other writes on pods.
    Changes,
    /// Other writes on pods that failed before.
    RetriedChanges,
    /// Other statuses of claims. No claim waits for one.
    Statuses,
    /// Everything else. No limit holds.
    Others,
}

impl Lane {
    fn of(request: &Request, is_retry: bool) -> Self {
        match request {
            Request::WriteClaim(write) if is_publication(write) && is_retry => Self::RetriedBindings,
            Request::WriteClaim(write) if is_publication(write) => Self::Bindings,
            Request::WriteClaim(_) | Request::DeleteClaim(_) => Self::Statuses,
            Request::WritePod(_) | Request::CreatePod(_) => match (claim_of(request).is_some(), is_retry) {
                (true, false) => Self::Bindings,
                (true, true) => Self::RetriedBindings,
                (false, false) => Self::Changes,
                (false, true) => Self::RetriedChanges,
            },
            _ => Self::Others,
        }
    }

    fn limit(self) -> usize {
        match self {
            Self::Bindings | Self::RetriedBindings => BINDINGS,
            Self::Changes | Self::RetriedChanges => CHANGES,
            Self::Statuses => STATUSES,
            Self::Others => usize::MAX,
        }
    }
}

/// A request to be sent now.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The request.
    pub request: Request,
    lane: Lane,
}

/// The requests of one lane.
#[derive(Clone, Debug, Default)]
struct Requests {
    waiting: VecDeque<Request>,
    in_flight: usize,
}

/// Requests that wait to be sent, and how many are in flight.
#[derive(Clone, Debug, Default)]
pub struct RequestQueue {
    lanes: BTreeMap<Lane, Requests>,
    /// Binding patches in flight, by UID of the claim.
    of_claims: HashMap<SmolStr, usize>,
}

impl RequestQueue {
    /// Adds a request, which waits while its limit is reached. Publications go before binding patches: a claim that
    /// holds its sandboxes is served before another claim begins.
    pub fn push(&mut self, request: Request, is_retry: bool) {
        let lane = Lane::of(&request, is_retry);
        let waiting = &mut self.lanes.entry(lane).or_default().waiting;
        let of_bindings = matches!(lane, Lane::Bindings | Lane::RetriedBindings);
        let is_publication = of_bindings && claim_of(&request).is_none();
        let first_binding = waiting.iter().position(|waiting| claim_of(waiting).is_some());
        match first_binding.filter(|_| is_publication) {
            Some(first_binding) => waiting.insert(first_binding, request),
            None => waiting.push_back(request),
        }
    }

    /// Whether another status of a claim may be queued.
    pub(crate) fn takes_statuses(&self) -> bool {
        let statuses = self.lanes.get(&Lane::Statuses);
        statuses.is_none_or(|statuses| statuses.waiting.len() + statuses.in_flight < QUEUED_STATUSES)
    }

    /// Drops every waiting request but those that publish bound claims.
    pub fn keep_publications(&mut self) {
        for (lane, requests) in &mut self.lanes {
            let binds = matches!(lane, Lane::Bindings | Lane::RetriedBindings);
            requests
                .waiting
                .retain(|request| binds && claim_of(request).is_none());
        }
    }

    /// Takes the next request that no limit holds back. It counts as in flight until [`RequestQueue::answered`].
    pub fn take_next(&mut self) -> Option<Sent> {
        let of_claims = &self.of_claims;
        let may_go = |request: &Request| {
            let in_flight = claim_of(request).and_then(|claim| of_claims.get(claim));
            in_flight.is_none_or(|count| *count < BINDINGS_PER_CLAIM)
        };
        let mut open = self
            .lanes
            .iter_mut()
            .filter(|(lane, requests)| requests.in_flight < lane.limit());
        let sent = open.find_map(|(lane, requests)| {
            let position = requests.waiting.iter().position(may_go)?;
            let request = requests.waiting.remove(position)?;
            requests.in_flight += 1;
            Some(Sent { request, lane: *lane })
        })?;
        if let Some(claim) = claim_of(&sent.request) {
            *self.of_claims.entry(claim.clone()).or_default() += 1;
        }
        Some(sent)
    }

    /// The request has its answer, or is not sent after all.
    pub fn answered(&mut self, sent: &Sent) {
        if let Some(requests) = self.lanes.get_mut(&sent.lane) {
            requests.in_flight = requests.in_flight.saturating_sub(1);
        }
        if let Some(claim) = claim_of(&sent.request) {
            let left = self
                .of_claims
                .get(claim)
                .map_or(0, |count| count.saturating_sub(1));
            if left == 0 {
                self.of_claims.remove(claim);
            } else {
                self.of_claims.insert(claim.clone(), left);
            }
        }
    }

    /// Drops the waiting requests that `is_obsolete` selects and returns them.
    pub fn cancel(&mut self, is_obsolete: impl Fn(&Request) -> bool) -> Vec<Request> {
        let mut cancelled = Vec::new();
        for requests in self.lanes.values_mut() {
            if requests.waiting.iter().any(&is_obsolete) {
                let all = requests.waiting.drain(..);
                let (gone, stay): (Vec<_>, Vec<_>) = all.partition(&is_obsolete);
                cancelled.extend(gone);
                requests.waiting = stay.into();
            }
        }
        cancelled
    }
}

/// Whether the write publishes the sandboxes of a waiting claim.
fn is_publication(write: &ClaimWrite) -> bool {
    write.status.phase == Some(Phase::Bound) && write.claim.waiting()
}

/// UID of the claim to which the request binds a pod.
fn claim_of(request: &Request) -> Option<&SmolStr> {
    match request {
        Request::WritePod(write) => match &write.change {
            PodChange::Bind { claim, .. } => Some(&claim.uid),
            _ => None,
        },
        _ => None,
    }
}
