//! What a claim may be given: judged as it is given, by what there is then and by what the operator knew as it decided.

use crate::api_server::Kind;
use crate::claims::moment;
use crate::goal::{accepts, image};
use crate::laws::{Breach, alone, breach, held};
use crate::object::Object;
use crate::operator::Decision;
use crate::state::State;
use jiff::Timestamp;
use warmpool::api::claim::RevisionPolicy;
use warmpool::cache::waiting_claim::Waiting;
use warmpool::model::Key;
use warmpool::model::claim::Claim;
use warmpool::planner::can_ever_serve::can_ever_serve;
use warmpool::planner::pool_snapshot;

/// I3, I7, and that a claim holds no more than it wants. Without a `decision` its sender has given the request up.
pub fn judge_binding(
    state: &State,
    before: &Object,
    pod: &Object,
    decision: Option<&Decision>,
) -> Result<(), Breach> {
    is_fit(before)?;
    let Some(claim) = state.api_server.uid(Kind::Claims, pod.owner().1) else {
        return Ok(());
    };
    let (name, count) = (claim.name(), held(&state.api_server, claim.uid()).count());
    if alone(state) && count > claim.wanted() {
        return breach("I1", format!("claim {name} holds {count} sandboxes"));
    }
    let pool = state.api_server.uid(Kind::Pools, before.owner().1);
    if pool.is_some_and(|pool| !accepts(claim, pool)) {
        return breach(
            "I3",
            format!(
                "claim {name} is given pod {} of a pool that will not do",
                pod.name()
            ),
        );
    }
    decision.map_or(Ok(()), |decision| is_due(before, claim, decision))
}

fn is_fit(before: &Object) -> Result<(), Breach> {
    let why = if before.state() != "warm" {
        "not warm"
    } else if before.terminating() {
        "being deleted"
    } else if !before.runs() || !before.ready() {
        "not Ready"
    } else if !before.is_admitted() {
        "not admitted"
    } else {
        return Ok(());
    };
    breach(
        "I3",
        format!("a claim is given pod {}, which is {why}", before.name()),
    )
}

/// By what the operator knew, the claim is the next that the pod would do for, and the pod does for it.
fn is_due(before: &Object, claim: &Object, decision: &Decision) -> Result<(), Breach> {
    let (known, at) = (&decision.known, decision.at);
    let (name, given) = (before.name(), claim.name());
    let key = Key::new("default", before.pool());
    let Some(view) = pool_snapshot(known, &key, at, 0) else {
        return breach(
            "I3",
            format!("pod {name} is given away for a pool that the operator does not know"),
        );
    };
    let template = &view.pool.template.value;
    let updated = image(before, "/spec") == template["spec"]["containers"][0]["image"].as_str().unwrap_or("");
    if !updated && claim.at("/spec/revisionPolicy") == "Latest" {
        return breach(
            "I3",
            format!("claim {given} is given pod {name} of an old revision"),
        );
    }
    // One that falters for a moment is Ready anew, and its binding tests no more than that.
    let since = known
        .pod(&Key::new("default", name))
        .and_then(|pod| pod.ready_since);
    let is_up = |since| at.duration_since(since) >= view.pool.spec.availability_rule.min_ready;
    let falters = since != ready_since(before);
    if !falters && !since.is_some_and(is_up) {
        return breach("I3", format!("claim {given} is given pod {name} too early"));
    }
    let Some(claim) = known.claim(&Key::new("default", given)) else {
        return Ok(());
    };
    if claim.terminating {
        return breach(
            "end",
            format!("pod {name} is given to claim {given}, which is being deleted"),
        );
    }
    let resolved_spec = claim.resolved_spec(Some(&view.pool.claim_defaults));
    let own = place(resolved_spec.priority, &claim);
    let would_do = |one: &&Waiting| {
        // A claim whose time is over gets no more. While a binding is in flight it has not failed yet.
        let ends = one.claim.expires_at().into_iter().chain(one.deadline()).min();
        let over = ends.is_some_and(|time| time <= at);
        let takes = updated || one.resolved_spec.revision_policy != RevisionPolicy::Latest;
        one.needs() > 0 && !over && takes && can_ever_serve(&view.pool.spec, one)
    };
    let mut waiting = view.claims.iter().filter(would_do);
    let passed = waiting.find(|one| place(one.resolved_spec.priority, &one.claim) < own);
    match passed {
        Some(older) => breach(
            "I7",
            format!(
                "{given} is served before {}, which waits for longer",
                older.claim.key.name
            ),
        ),
        None => Ok(()),
    }
}

fn ready_since(pod: &Object) -> Option<Timestamp> {
    moment(&pod.value["status"]["conditions"][0]["lastTransitionTime"])
}

/// Where a claim stands in the order of service, as the operator knows it.
fn place(priority: i32, claim: &Claim) -> (i64, Timestamp, u64) {
    (-i64::from(priority), claim.created, claim.sequence)
}
