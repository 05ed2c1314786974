//! What a world at rest has to look like (I7, I8 and I9).

use crate::laws::{Breach, available, breach, claimed, held};
use crate::operator::Due;
use crate::server::{Kind, Object};
use crate::state::State;
use std::sync::Arc;

pub fn reached(state: &State) -> Result<(), Breach> {
    nothing_is_planned(state)?;
    state
        .server
        .list(Kind::Claims)
        .try_for_each(|claim| claim_is_told(state, claim))?;
    pool_is_full(state)?;
    status_is_true(state)
}

fn nothing_is_planned(state: &State) -> Result<(), Breach> {
    for operator in &state.operators {
        if !operator.index.pending.is_empty() {
            return breach(
                "I8",
                format!("at rest it waits for {:?}", operator.index.pending.told()),
            );
        }
        let keys = operator.index.all().into_iter().map(Due::from);
        for due in keys {
            if let Due::Claim(name) = &due {
                let known = state.server.get(Kind::Claims, name).is_some();
                if !known {
                    return breach("I8", format!("at rest the operator still knows claim {name}"));
                }
            }
            let started = operator.clone().reconcile(&due, state.moment());
            if let Some(task) = started.first() {
                return breach("I9", format!("at rest there is still something to do: {task:?}"));
            }
        }
    }
    Ok(())
}

fn claim_is_told(state: &State, claim: &Object) -> Result<(), Breach> {
    let (name, listed) = (claim.name(), claim.listed());
    let held: Vec<_> = held(&state.server, claim.uid()).collect();
    // A claim for several that an operator has left half served keeps its place, and what it holds.
    let half_served = claim.waits() && held.len() < claim.wanted();
    if !half_served && held.iter().any(|pod| !listed.contains(&pod.uid())) {
        return breach(
            "I8",
            format!("at rest claim {name} holds a pod that its status does not list"),
        );
    }
    match claim.at("/status/phase") {
        "Bound" if held.len() != claim.wanted() => breach(
            "I8",
            format!("at rest claim {name} is Bound and holds {} pods", held.len()),
        ),
        "Expired" if claim.at("/spec/releasePolicy") == "Delete" && !held.is_empty() => breach(
            "I8",
            format!("at rest claim {name} has Expired and holds {} pods", held.len()),
        ),
        "Bound" | "Expired" => Ok(()),
        "Failed" if state.scene.loses_pods() || fails(claim) => Ok(()),
        "Failed" => breach("I8", format!("claim {name} has Failed, and no pod was lost")),
        _ if may_be_served(state, claim) => breach(
            "I7",
            format!("at rest claim {name} waits, and a sandbox is available"),
        ),
        _ if state.scene.max_total().is_some() || state.scene.breaks() => Ok(()),
        // Nothing is made for it, and the pool may keep nothing.
        _ if claim.at("/spec/onEmpty") == "Wait" => Ok(()),
        _ if claim.at("/spec/revisionPolicy") == "Latest" && is_paused(pool(state)) => Ok(()),
        _ => breach("I8", format!("at rest claim {name} waits")),
    }
}

fn pool(state: &State) -> &Object {
    state.server.get(Kind::Pools, "pl").expect("nobody deletes it")
}

fn is_paused(pool: &Object) -> bool {
    pool.value["spec"]["updateStrategy"]["paused"] == true
}

/// It rather fails than waits.
fn fails(claim: &Object) -> bool {
    claim.at("/spec/onEmpty") == "Fail"
}

/// A sandbox is available that no older claim for several may be waiting for.
fn may_be_served(state: &State, claim: &Object) -> bool {
    let server = &state.server;
    let waiting = server.list(Kind::Claims).filter(|claim| claim.waits());
    let reserved = state.scene.max_total().is_some() && waiting.into_iter().any(|c| c.wanted() > 1);
    let update = image(pool(state), "/spec/template/spec");
    let latest = claim.at("/spec/revisionPolicy") == "Latest";
    let suits = |pod: &&Arc<Object>| {
        available(pod) && pod.label("evict").is_empty() && (!latest || image(pod, "/spec") == update)
    };
    !reserved && server.list(Kind::Pods).any(|pod| suits(&pod))
}

fn image(object: &Object, path: &str) -> String {
    object.at(&format!("{path}/containers/0/image")).to_string()
}

fn pool_is_full(state: &State) -> Result<(), Breach> {
    let (server, scene, pool) = (&state.server, state.scene, pool(state));
    let wanted = pool.number("/spec/replicas");
    let pods = server.list(Kind::Pods);
    let (with_claims, idle): (Vec<_>, Vec<_>) = pods.partition(|pod| claimed(pod));
    let full = idle.iter().filter(|pod| available(pod)).count();
    if scene.breaks() {
        let least = wanted.saturating_sub(scene.unavailable());
        if full < least {
            return breach("I4", format!("at rest {full} are available, fewer than {least}"));
        }
        return Ok(());
    }
    // What may only be replaced beforehand stays where there is no room for that.
    let surges = scene.max_total().is_some() && scene.unavailable() == 0;
    if !surges {
        nothing_is_left_over(pool, &idle)?;
    }
    let waiting: usize = server
        .list(Kind::Claims)
        .filter(|c| c.waits())
        .map(|c| c.wanted())
        .sum();
    if scene.max_total().is_some() && waiting > 0 {
        return Ok(());
    }
    let room = scene
        .max_total()
        .map_or(usize::MAX, |most| most.saturating_sub(with_claims.len()));
    let due = wanted.min(room);
    if full < due || idle.len() > (wanted + waiting).min(room).max(due) {
        let all = idle.len();
        return breach(
            "I8",
            format!("at rest {full} of {all} unclaimed sandboxes are available, {due} are wanted"),
        );
    }
    Ok(())
}

/// No unclaimed sandbox is there that was to be replaced.
fn nothing_is_left_over(pool: &Object, idle: &[&Arc<Object>]) -> Result<(), Breach> {
    let update = image(pool, "/spec/template/spec");
    let rolls = pool.at("/spec/updateStrategy/type") != "OnReplenish" && !is_paused(pool);
    for pod in idle {
        if rolls && image(pod, "/spec") != update {
            return breach("I5", format!("at rest pod {} is of an old revision", pod.name()));
        }
        if !pod.label("evict").is_empty() {
            return breach("I5", format!("at rest pod {} is still to be evicted", pod.name()));
        }
    }
    Ok(())
}

/// The counts of the pool's status, counted again.
fn status_is_true(state: &State) -> Result<(), Breach> {
    let (server, pool) = (&state.server, pool(state));
    let pods = || server.list(Kind::Pods).filter(|pod| !pod.terminating());
    let counts = [
        ("available", pods().filter(|pod| available(pod)).count()),
        ("claimed", pods().filter(|pod| claimed(pod)).count()),
        (
            "pendingClaims",
            server.list(Kind::Claims).filter(|claim| claim.waits()).count(),
        ),
    ];
    for (field, count) in counts {
        let said = pool.number(&format!("/status/{field}"));
        if said != count {
            return breach(
                "I9",
                format!("at rest the status says {field} {said}, and it is {count}"),
            );
        }
    }
    Ok(())
}
