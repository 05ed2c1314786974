//! The invariants of the design, judged on what the API server holds and on what each write has changed there.

use crate::api_server::{ApiServer, Event, Kind};
use crate::bounds::Bounds;
use crate::claims;
use crate::given;
use crate::object::Object;
use crate::operator::{Decision, Operator};
use crate::scene::Scene;
use crate::sizes::{self, Raised};
use crate::state::State;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use warmpool::api::claim::Phase;
use warmpool::api::claim::RevisionPolicy;
use warmpool::model::Key;
use warmpool::model::claim::Claim;
use warmpool::model::leaving_reason::LeavingReason;
use warmpool::model::request::{PodChange, Request};
use warmpool::model::retry::{NextWrite, Purpose};
use warmpool::planner::pool_snapshot;

/// A law that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    pub law: &'static str,
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.law, self.what)
    }
}

pub fn breach(law: &'static str, what: impl Into<String>) -> Result<(), Breach> {
    let what = what.into();
    Err(Breach { law, what })
}

/// What has happened, as far as the laws ask for it and the objects do not tell it any more.
#[derive(Clone, Debug, Default)]
pub struct Ghost {
    /// Bindings that the API server made.
    pub bindings: usize,
    /// A request was served after its sender had given it up, or a creation once more after its pod had gone.
    pub late: bool,
    /// Names of the pods created.
    made: Arc<BTreeSet<String>>,
    /// The claim whose status has listed a pod, by UIDs.
    pub published: BTreeMap<String, String>,
    /// When each claim was bound first, by UID.
    pub bound: BTreeMap<String, Timestamp>,
    /// When claims last raised the size of each pool, by UID.
    pub raised: BTreeMap<String, Raised>,
}

pub fn claimed(pod: &Object) -> bool {
    pod.owner().0 == "SandboxClaim"
}

/// A claim could take it.
pub fn available(pod: &Object) -> bool {
    let warm = !claimed(pod) && pod.state() == "warm";
    warm && !pod.terminating() && pod.runs() && pod.ready() && pod.is_admitted()
}

/// The sandboxes that a claim holds and may keep.
pub fn held<'a>(api_server: &'a ApiServer, claim: &str) -> impl Iterator<Item = &'a Arc<Object>> {
    let of_claim = move |pod: &&Arc<Object>| pod.owner() == ("SandboxClaim", claim);
    api_server
        .list(Kind::Pods)
        .filter(of_claim)
        .filter(|pod| !pod.terminating() && !pod.ended())
        .collect::<Vec<_>>()
        .into_iter()
}

/// Judges what an operator has just decided on a pool: no claim is passed over in favor of a younger one (I7).
pub fn planned(scene: &Scene, operator: &Operator, sent: &[Request], now: Timestamp) -> Result<(), Breach> {
    let index = &operator.index;
    let place = |claim: &Claim| (-claim.resolved_spec(None).priority, claim.created, claim.sequence);
    let pauses_after_rejection = |claim: &Claim| {
        let pool = claim.named_pool();
        let view = pool.and_then(|pool| pool_snapshot(index, &pool, now, 0));
        let mut waiting = view.into_iter().flat_map(|view| view.claims);
        waiting.any(|waiting| waiting.claim.uid == claim.uid && waiting.retry_at.is_some())
    };
    let waits = |claim: &Claim| {
        let picky = claim.resolved_spec(None).revision_policy == RevisionPolicy::Latest;
        let coming = index.expectations.bound_to(&claim.uid);
        let needs = !picky && claim.waiting() && index.held_by(claim).count() + coming < claim.wanted();
        let over = claim.expires_at().is_some_and(|time| time <= now);
        let write = index.claim_memory(claim).and_then(|memory| memory.write.as_ref());
        let decides = write.filter(|write| write.purpose != Purpose::Report);
        let next = decides.map(|write| write.next(write.purpose, &claim.resource_version, now));
        let pauses = matches!(next, Some(NextWrite::Wait(_)));
        needs && !over && !pauses && !index.is_busy(claim, now) && claim.wanted() <= scene.most()
    };
    let fails = |claim: &Claim| {
        let fails = |request: &Request| match request {
            Request::WriteClaim(write) => {
                write.claim.uid == claim.uid && write.status.phase == Some(Phase::Failed)
            }
            _ => false,
        };
        sent.iter().any(fails)
    };
    for request in sent {
        let Request::WritePod(write) = request else {
            continue;
        };
        let PodChange::Bind { claim: bound, pool } = &write.change else {
            continue;
        };
        let keys = index.claim_keys();
        let claims = keys.iter().filter_map(|key| index.claim(key));
        // One that leaves the choice may have been another pool's to serve.
        let pool = Some(pool.key.clone());
        let passed = claims
            .filter(|c| waits(c) && !fails(c) && c.named_pool() == pool)
            .find(|c| place(c) < place(bound) && !pauses_after_rejection(c));
        if let Some(passed) = passed {
            let (older, younger) = (&passed.key.name, &bound.key.name);
            return breach(
                "I7",
                format!("{younger} is served before {older}, which waits for longer"),
            );
        }
    }
    Ok(())
}

/// Judges what a request of an operator has just changed. Without a `decision` its sender has given the request up.
pub fn served(state: &mut State, before: &ApiServer, decision: Option<&Decision>) -> Result<(), Breach> {
    let news = state.api_server.news.clone();
    for event in news {
        let earlier = before.get(event.kind, event.object.name());
        match (event.kind, earlier) {
            (Kind::Pods, None) => {
                let name = event.object.name().to_string();
                state.ghost.late |= !Arc::make_mut(&mut state.ghost.made).insert(name);
                creation(state, &event.object, decision)?;
            }
            (Kind::Pods, Some(earlier)) => {
                let earlier = Arc::clone(earlier);
                pod_write(state, &earlier, &event, decision)?;
            }
            (Kind::Claims, Some(earlier)) if !event.gone => claims::written(state, earlier, &event.object)?,
            (Kind::Pools, Some(earlier)) if !event.gone => {
                let decided = decision.map_or(state.now(), |decision| decision.at);
                sizes::written(state, earlier, &event.object, decided)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The sandboxes of a pool, those that claims hold among them.
pub fn pods_of<'a>(api_server: &'a ApiServer, pool: &'a Object) -> impl Iterator<Item = &'a Arc<Object>> {
    let owned = |pod: &&Arc<Object>| claimed(pod) || pod.owner().1 == pool.uid();
    let pods = api_server
        .list(Kind::Pods)
        .filter(|pod| pod.pool() == pool.name());
    pods.filter(owned)
}

/// One operator, and nothing that it had given up has happened after all: it knows of all that it makes.
pub fn alone(state: &State) -> bool {
    state.scene.operators == 1 && !state.ghost.late
}

/// The pool had an error when the operator decided: nothing is made for it, and no unclaimed sandbox taken away.
fn is_frozen(decision: Option<&Decision>, pool: &str) -> bool {
    let known = decision.and_then(|decision| decision.known.pool(&Key::new("default", pool)));
    known.is_some_and(|pool| pool.error.is_some())
}

fn creation(state: &State, made: &Object, decision: Option<&Decision>) -> Result<(), Breach> {
    let key = Key::new("default", made.pool());
    if decision
        .and_then(|decision| decision.known.pool(&key))
        .is_some_and(|pool| pool.terminating)
    {
        let (name, pool) = (made.name(), made.pool());
        return breach(
            "end",
            format!("pod {name} is made for pool {pool}, which is being deleted"),
        );
    }
    if is_frozen(decision, made.pool()) {
        let (name, pool) = (made.name(), made.pool());
        return breach(
            "I10",
            format!("pod {name} is made for pool {pool}, whose template is missing"),
        );
    }
    let (scene, api_server) = (state.scene, &state.api_server);
    let Some(pool) = api_server.uid(Kind::Pools, made.owner().1) else {
        return Ok(());
    };
    let bounds = Bounds::of(pool);
    let all = pods_of(api_server, pool).count();
    if alone(state) && bounds.total.is_some_and(|most| all > most) {
        return breach("I4", format!("{all} pods exist, more than maxTotal"));
    }
    if !scene.strict || state.ghost.late {
        return Ok(());
    }
    let stays = |pod: &&Arc<Object>| !claimed(pod) && !pod.terminating() && pod.state() == "warm";
    let idle: Vec<_> = pods_of(api_server, pool).filter(stays).collect();
    let most = if scene.nodes.is_empty() {
        bounds.most
    } else {
        bounds.most_in_drain
    };
    if scene.left.claims.is_empty() && idle.len() > most {
        let all = idle.len();
        return breach("I4", format!("{all} unclaimed sandboxes exist, more than {most}"));
    }
    let broken = idle.iter().filter(|pod| pod.is_broken()).count();
    if broken > bounds.width {
        let most = bounds.width;
        return breach(
            "I5",
            format!("{broken} sandboxes of a revision that never comes up, more than {most}"),
        );
    }
    Ok(())
}

fn pod_write(
    state: &mut State,
    before: &Object,
    event: &Event,
    decision: Option<&Decision>,
) -> Result<(), Breach> {
    let (pod, name) = (&event.object, event.object.name());
    let (was, is) = (before.owner(), pod.owner());
    if was != is {
        if claimed(before) {
            return breach("I1", format!("pod {name} is taken from its claim"));
        }
        state.ghost.bindings += 1;
        return given::judge_binding(state, before, pod, decision);
    }
    let goes = !before.terminating() && (event.gone || pod.terminating());
    // Of two leaders one may publish what the other has just found dead, and so may what a killed one had sent.
    let dead = (state.scene.operators > 1 || state.ghost.late) && before.ended();
    if goes && claimed(before) && !dead {
        let claim = state.api_server.uid(Kind::Claims, was.1);
        let keeps = claim.is_some_and(|claim| {
            // One that has failed keeps what its tenant knows of.
            let given_back = claim.phase() == "Expired" && claim.at("/spec/releasePolicy") != "Retain";
            !given_back && claim.listed().contains(&before.uid())
        });
        if keeps {
            return breach("I2", format!("pod {name} is deleted while its claim has it"));
        }
    }
    if goes && !claimed(before) && before.is_held_back() && !before.ended() {
        return breach(
            "hook",
            format!("pod {name} is deleted although its preDelete handler is on it"),
        );
    }
    if goes && !claimed(before) && is_frozen(decision, before.pool()) {
        return breach(
            "I10",
            format!("pod {name} is deleted for a pool whose template is missing"),
        );
    }
    let runs = available(before) && !state.api_server.is_without_node(before);
    let leaves = (goes || before.state() != pod.state()) && runs;
    // One that was made anew under its name has none of the pods of the one before.
    let pool = state
        .api_server
        .get(Kind::Pools, pod.pool())
        .filter(|pool| was.1 == pool.uid());
    // Who asks for all at once has them replaced so.
    let at_once = |pool: &&Arc<Object>| pool.at("/spec/updateStrategy/type") == "Recreate";
    if let Some(pool) = pool.filter(|pool| state.scene.strict && leaves && !at_once(pool)) {
        let (with_claims, idle): (Vec<_>, Vec<_>) =
            pods_of(&state.api_server, pool).partition(|pod| claimed(pod));
        let left = idle.iter().filter(|pod| available(pod)).count();
        let bounds = Bounds::of(pool);
        if knows_that_it_leaves(before, decision) {
            replaced(state, before, &bounds, with_claims.len(), left)?;
        }
        let least = bounds.least_beside(with_claims.len());
        let bindings_since = decision.map_or(usize::MAX, |decision| state.ghost.bindings - decision.bindings);
        if left.saturating_add(bindings_since) < least {
            return breach(
                "I4",
                format!("without pod {name} only {left} are available, fewer than {least}"),
            );
        }
    }
    Ok(())
}

/// The operator knew as it decided that the node of the pod is cordoned.
fn knows_that_it_leaves(pod: &Object, decision: Option<&Decision>) -> bool {
    let Some(decision) = decision else {
        return false;
    };
    let key = |name: &str| Key::new("default", name);
    let view = pool_snapshot(&decision.known, &key(pod.pool()), decision.at, 0);
    let sandbox = decision.known.pod(&key(pod.name()));
    let leaving = view
        .zip(sandbox)
        .and_then(|(view, sandbox)| view.nodes.leaving(&sandbox, decision.at));
    leaving.is_some_and(|leaving| leaving.reason == LeavingReason::NodeCordoned)
}

/// An available sandbox goes from a cordoned node once its replacement is available (I6): where nothing else takes sandboxes away,
/// as many as `replicas` stay available, apart from those that claims have taken.
fn replaced(
    state: &State,
    before: &Object,
    bounds: &Bounds,
    claimed: usize,
    left: usize,
) -> Result<(), Breach> {
    let drains_only = state.scene.left.edits.is_empty() && state.scene.left.evictions == 0;
    if !drains_only || !state.api_server.is_on_cordoned(before) {
        return Ok(());
    }
    let room = bounds
        .total
        .map_or(usize::MAX, |most| most.saturating_sub(claimed));
    let wanted = bounds.replicas.min(room);
    if left + state.ghost.bindings < wanted {
        let name = before.name();
        return breach(
            "I6",
            format!("pod {name} leaves its node before it is replaced: {left} of {wanted} are available"),
        );
    }
    Ok(())
}
