//! Limits the requests in flight: those above a limit wait here, in the order in which they were decided.

use crate::cache::fair_share;
use crate::cache::request_flow::{self, Flow};
use crate::cache::request_lane::{Lane, bound_claim, publishes};
use crate::model::request::Request;
use smol_str::SmolStr;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Most requests of a lane in flight for one pool while no other pool has any. More only make the API server answer
/// slower.
pub const IN_FLIGHT: usize = 32;
/// Most binding patches of one claim in flight. A claim for many sandboxes leaves requests to other claims.
const BINDINGS_PER_CLAIM: usize = IN_FLIGHT / 4;
/// Most statuses of claims queued or in flight for one pool before reports wait unplanned: enough that one follows each
/// answer at once.
const QUEUED_STATUSES: usize = 2 * IN_FLIGHT;

/// A request to be sent now.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The request.
    pub request: Request,
    lane: Lane,
    flow: Flow,
}

/// Requests that wait to be sent, and how many are in flight.
#[derive(Clone, Debug, Default)]
pub struct RequestQueue {
    lanes: BTreeMap<Lane, LaneQueue>,
    /// Binding patches in flight, by UID of the claim.
    of_claims: HashMap<SmolStr, usize>,
    /// How many requests were ever added.
    added: u64,
}

/// The requests of one lane.
#[derive(Clone, Debug, Default)]
struct LaneQueue {
    flows: BTreeMap<Flow, FlowQueue>,
    waiting: usize,
    in_flight: usize,
}

/// The requests of one flow in a lane.
#[derive(Clone, Debug, Default)]
struct FlowQueue {
    waiting: VecDeque<Waiting>,
    in_flight: usize,
}

/// A request that waits, and how many were added before it.
#[derive(Clone, Debug)]
struct Waiting {
    request: Request,
    added: u64,
}

impl RequestQueue {
    /// Adds a request, which waits while its limit is reached. Publications go before binding patches: a claim that
    /// holds its sandboxes is served before another claim begins.
    pub fn push(&mut self, request: Request, is_retry: bool) {
        let lane = self.lanes.entry(Lane::of(&request, is_retry)).or_default();
        let added = self.added;
        self.added += 1;
        lane.push(Waiting { request, added });
    }

    /// Whether another status of a claim of this flow may be queued.
    pub(crate) fn takes_statuses(&self, flow: &Flow) -> bool {
        let lanes = [Lane::Statuses, Lane::RetriedStatuses].map(|lane| self.lanes.get(&lane));
        let (mut own, mut all) = (0, 0);
        for lane in lanes.into_iter().flatten() {
            own += lane.flows.get(flow).map_or(0, FlowQueue::len);
            all += lane.waiting + lane.in_flight;
        }
        fair_share::may_take(own, all, fair_share::limit(QUEUED_STATUSES))
    }

    /// Drops every waiting request but those that publish bound claims.
    pub fn keep_publications(&mut self) {
        for lane in self.lanes.values_mut() {
            lane.drop_where(|request| !publishes(request));
        }
    }

    /// Takes the next request that no limit holds back. It counts as in flight until [`RequestQueue::answered`].
    pub fn take_next(&mut self) -> Option<Sent> {
        let of_claims = &self.of_claims;
        let may_go = |request: &Request| {
            let in_flight = bound_claim(request).and_then(|claim| of_claims.get(claim));
            in_flight.is_none_or(|count| *count < BINDINGS_PER_CLAIM)
        };
        let sent = self.lanes.iter_mut().find_map(|(lane, queue)| {
            let (flow, request) = queue.take_next(may_go)?;
            let lane = *lane;
            Some(Sent { request, lane, flow })
        })?;
        if let Some(claim) = bound_claim(&sent.request) {
            *self.of_claims.entry(claim.clone()).or_default() += 1;
        }
        Some(sent)
    }

    /// The request has its answer, or is not sent after all.
    pub fn answered(&mut self, sent: &Sent) {
        if let Some(lane) = self.lanes.get_mut(&sent.lane) {
            lane.answered(&sent.flow);
        }
        if let Some(claim) = bound_claim(&sent.request) {
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
        let lanes = self.lanes.values_mut();
        lanes.flat_map(|lane| lane.drop_where(&is_obsolete)).collect()
    }
}

impl LaneQueue {
    fn push(&mut self, new: Waiting) {
        let flow = self.flows.entry(request_flow::of(&new.request)).or_default();
        let goes_first = publishes(&new.request);
        let first_other = flow.waiting.iter().position(|w| !publishes(&w.request));
        match first_other.filter(|_| goes_first) {
            Some(first_other) => flow.waiting.insert(first_other, new),
            None => flow.waiting.push_back(new),
        }
        self.waiting += 1;
    }

    /// Takes the oldest publication, or else the oldest request, of the flows that may send another.
    fn take_next(&mut self, may_go: impl Fn(&Request) -> bool) -> Option<(Flow, Request)> {
        let limit = fair_share::limit(IN_FLIGHT);
        if self.waiting == 0 || self.in_flight >= limit {
            return None;
        }
        let flows = self.flows.iter();
        let open = flows.filter(|(_, flow)| fair_share::may_take(flow.in_flight, self.in_flight, limit));
        let firsts = open.filter_map(|(name, flow)| {
            let mut waiting = flow.waiting.iter().enumerate();
            let (position, first) = waiting.find(|(_, w)| may_go(&w.request))?;
            Some((!publishes(&first.request), first.added, name, position))
        });
        let (.., name, position) = firsts.min()?;
        let name = name.clone();
        let flow = self.flows.get_mut(&name)?;
        let taken = flow.waiting.remove(position)?;
        flow.in_flight += 1;
        self.waiting -= 1;
        self.in_flight += 1;
        Some((name, taken.request))
    }

    fn answered(&mut self, name: &Flow) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(flow) = self.flows.get_mut(name) {
            flow.in_flight = flow.in_flight.saturating_sub(1);
            if flow.len() == 0 {
                self.flows.remove(name);
            }
        }
    }

    /// Drops the waiting requests that `is_obsolete` selects and returns them.
    fn drop_where(&mut self, is_obsolete: impl Fn(&Request) -> bool) -> Vec<Request> {
        let mut dropped = Vec::new();
        for flow in self.flows.values_mut() {
            if flow.waiting.iter().any(|w| is_obsolete(&w.request)) {
                let all = flow.waiting.drain(..);
                let (gone, stay): (Vec<_>, Vec<_>) = all.partition(|w| is_obsolete(&w.request));
                dropped.extend(gone.into_iter().map(|w| w.request));
                flow.waiting = stay.into();
            }
        }
        self.waiting -= dropped.len();
        self.flows.retain(|_, flow| flow.len() > 0);
        dropped
    }
}

impl FlowQueue {
    fn len(&self) -> usize {
        self.waiting.len() + self.in_flight
    }
}
