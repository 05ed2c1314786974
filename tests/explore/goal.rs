//! What holds in a world at rest (I7, I8 and I9).

use crate::api_server::{ApiServer, Kind};
use crate::bounds::Bounds;
use crate::claims;
use crate::laws::{Breach, available, breach, claimed, held, pods_of};
use crate::object::Object;
use crate::operator::Due;
use crate::state::State;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use warmpool::cache::index::Index;
use warmpool::model::Key;
use warmpool::planner::pool_snapshot;

pub fn reached(state: &State) -> Result<(), Breach> {
    nothing_is_planned(state)?;
    state
        .operators
        .iter()
        .try_for_each(|operator| knows_what_is(state, &operator.index))?;
    state
        .api_server
        .list(Kind::Claims)
        .try_for_each(|claim| claim_is_served(state, claim))?;
    for pool in state.api_server.list(Kind::Pools) {
        pool_is_full(state, pool)?;
        status_is_true(state, pool)?;
    }
    Ok(())
}

fn nothing_is_planned(state: &State) -> Result<(), Breach> {
    for operator in &state.operators {
        if !operator.index.expectations.is_empty() {
            return breach(
                "I8",
                format!(
                    "at rest it waits for {:?}",
                    operator.index.expectations.describe()
                ),
            );
        }
        let all = operator.index.all().into_iter().map(Due::from);
        for due in all.chain([Due::FailedWrites]) {
            if let Due::Claim(name) = &due {
                let known = state.api_server.get(Kind::Claims, name).is_some();
                if !known {
                    return breach("I8", format!("at rest the operator still knows claim {name}"));
                }
            }
            let sent = operator.clone().reconcile(&due, state.moment());
            if let Some(request) = sent.first() {
                return breach(
                    "I9",
                    format!("at rest there is still something to do: {request:?}"),
                );
            }
        }
    }
    Ok(())
}

/// What an operator knows of pods and revisions is what there is.
fn knows_what_is(state: &State, index: &Index) -> Result<(), Breach> {
    let api_server = &state.api_server;
    let is = |kind, key: &Key, uid: &str| api_server.get(kind, &key.name).is_some_and(|o| o.uid() == uid);
    let pods: Vec<_> = index.pod_keys().iter().filter_map(|key| index.pod(key)).collect();
    if let Some(pod) = pods.iter().find(|pod| !is(Kind::Pods, &pod.key, &pod.uid)) {
        return breach("I8", format!("at rest the operator still knows pod {}", pod.key));
    }
    let missing = api_server.list(Kind::Pods).count() - pods.len();
    if missing > 0 {
        return breach("I8", format!("at rest the operator does not know {missing} pods"));
    }
    for pool in api_server.list(Kind::Pools) {
        let key = Key::new("default", pool.name());
        let view = pool_snapshot(index, &key, state.now(), 0);
        let mut revisions = view.into_iter().flat_map(|view| view.revisions);
        if let Some(gone) = revisions.find(|r| !is(Kind::Revisions, &r.key, &r.uid)) {
            return breach(
                "I8",
                format!("at rest the operator still knows revision {}", gone.key),
            );
        }
    }
    Ok(())
}

fn claim_is_served(state: &State, claim: &Object) -> Result<(), Breach> {
    let (name, listed) = (claim.name(), claim.listed());
    let held: Vec<_> = held(&state.api_server, claim.uid()).collect();
    // A claim for several that an operator has left half served keeps its place, and what it holds.
    let half_served = claim.waits() && held.len() < claim.wanted();
    if !half_served && held.iter().any(|pod| !listed.contains(&pod.uid())) {
        return breach(
            "I8",
            format!("at rest claim {name} holds a pod that its status does not list"),
        );
    }
    claims::rests(claim)?;
    match claim.phase() {
        "Bound" if held.len() != claim.wanted() => breach(
            "I8",
            format!("at rest claim {name} is Bound and holds {} pods", held.len()),
        ),
        "Expired" if claim.at("/spec/releasePolicy") == "Delete" && !held.is_empty() => breach(
            "I8",
            format!("at rest claim {name} has Expired and holds {} pods", held.len()),
        ),
        "Bound" | "Expired" | "Failed" => Ok(()),
        _ if may_be_served(state, claim) => breach(
            "I7",
            format!("at rest claim {name} waits, and a sandbox is available"),
        ),
        // Nothing is made for it, and the pool may keep nothing.
        _ if state.scene.breaks() || claim.at("/spec/onEmpty") == "Wait" => Ok(()),
        _ if !pools_for(state, claim).any(|pool| may_make_one(state, pool, claim)) => Ok(()),
        _ => breach("I8", format!("at rest claim {name} waits")),
    }
}

/// The pools that will do for a claim: one that holds some sandboxes already gets the others from the same pool.
fn pools_for<'a>(state: &'a State, claim: &'a Object) -> impl Iterator<Item = &'a Arc<Object>> {
    let holds_of = held(&state.api_server, claim.uid()).map(|pod| pod.pool()).next();
    let pools = state.api_server.list(Kind::Pools);
    pools.filter(move |pool| accepts(claim, pool) && holds_of.is_none_or(|name| name == pool.name()))
}

/// The claim asks for the pool by its name or by a label that it has.
pub fn accepts(claim: &Object, pool: &Object) -> bool {
    match claim.at("/spec/poolRef/name") {
        "" => claim.at("/spec/poolSelector/matchLabels/lang") == pool.at("/metadata/labels/lang"),
        name => name == pool.name(),
    }
}

/// Nothing forbids `pool` to make what `claim` needs.
fn may_make_one(state: &State, pool: &Object, claim: &Object) -> bool {
    let waits_for_rollout = claim.at("/spec/revisionPolicy") == "Latest" && is_paused(pool);
    if update_image(&state.api_server, pool).is_none() {
        return false;
    }
    let has_room = max_total(pool).is_none_or(|most| claim.wanted() <= most && !is_at(state, pool, most));
    has_room && !waits_for_rollout
}

/// The pool has all the pods that it may have.
fn is_at(state: &State, pool: &Object, most: usize) -> bool {
    pods_of(&state.api_server, pool).count() >= most
}

fn max_total(pool: &Object) -> Option<usize> {
    Bounds::of(pool).total
}

fn is_paused(pool: &Object) -> bool {
    pool.value["spec"]["updateStrategy"]["paused"] == true
}

/// The claims that wait, and that `pool` would do for.
fn waiting_for<'a>(state: &'a State, pool: &'a Object) -> impl Iterator<Item = &'a Arc<Object>> {
    let claims = state.api_server.list(Kind::Claims);
    claims.filter(|claim| claim.waits() && accepts(claim, pool))
}

/// As many sandboxes as it misses are available, and no claim for several that comes before it may be waiting for them.
fn may_be_served(state: &State, claim: &Object) -> bool {
    pools_for(state, claim).any(|pool| {
        let reserves = |other: &&Arc<Object>| {
            other.wanted() > 1
                && match place(other).cmp(&place(claim)) {
                    Ordering::Less => true,
                    Ordering::Equal => !has_enough(state, pool, other),
                    Ordering::Greater => false,
                }
        };
        has_enough(state, pool, claim) && !waiting_for(state, pool).any(|other| reserves(&other))
    })
}

/// As many sandboxes of `pool` are available as `claim` misses.
fn has_enough(state: &State, pool: &Object, claim: &Object) -> bool {
    let latest = claim.at("/spec/revisionPolicy") == "Latest";
    let update = update_image(&state.api_server, pool);
    let suits = |pod: &&Arc<Object>| {
        available(pod)
            && !pod.is_to_be_evicted()
            && (!latest || update.as_ref() == Some(&image(pod, "/spec")))
    };
    let missing = claim.wanted() - held(&state.api_server, claim.uid()).count().min(claim.wanted());
    pods_of(&state.api_server, pool).filter(suits).count() >= missing
}

/// Where a claim stands in the order of service. Claims of one second stand as an operator came to know of them, and one
/// that is started anew may come to know of them in another order.
fn place(claim: &Object) -> (Reverse<usize>, &str) {
    let priority = claim.number("/spec/priority");
    let created = claim.at("/metadata/creationTimestamp");
    (Reverse(priority), created)
}

pub fn image(object: &Object, path: &str) -> String {
    object.at(&format!("{path}/containers/0/image")).to_string()
}

/// The image of a pool's template; `None` while the PodTemplate that it names is missing.
fn update_image(api_server: &ApiServer, pool: &Object) -> Option<String> {
    match pool.at("/spec/templateRef/name") {
        "" => Some(image(pool, "/spec/template/spec")),
        name => api_server
            .get(Kind::Templates, name)
            .map(|template| image(template, "/template/spec")),
    }
}

/// A pool without its PodTemplate stays as it is, and says why.
fn says_template_not_found(pool: &Object) -> Result<(), Breach> {
    let conditions = pool.value["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    if conditions.any(|condition| condition["reason"] == "TemplateNotFound") {
        return Ok(());
    }
    breach(
        "I10",
        format!(
            "at rest pool {} does not say that its template is missing",
            pool.name()
        ),
    )
}

fn pool_is_full(state: &State, pool: &Object) -> Result<(), Breach> {
    let Some(update) = update_image(&state.api_server, pool) else {
        return says_template_not_found(pool);
    };
    let (with_claims, idle): (Vec<_>, Vec<_>) =
        pods_of(&state.api_server, pool).partition(|pod| claimed(pod));
    let for_total = pool
        .number("/spec/capacity/minTotal")
        .saturating_sub(with_claims.len());
    let chosen = pool.number("/status/desiredReplicas");
    let wanted = pool.number("/spec/replicas").max(chosen).max(for_total);
    let most = wanted.max(pool.number("/spec/capacity/maxWarm"));
    let bounds = Bounds::of(pool);
    let unavailable = bounds.unavailable;
    let full = idle.iter().filter(|pod| available(pod)).count();
    if state.scene.breaks() {
        let least = wanted.saturating_sub(unavailable);
        if full < least && state.scene.left.claims.is_empty() {
            return breach("I4", format!("at rest {full} are available, fewer than {least}"));
        }
        return Ok(());
    }
    // What may only be replaced beforehand stays where there is no place for that.
    let waiting: usize = waiting_for(state, pool).map(|claim| claim.wanted()).sum();
    let beside = bounds.replicas.max(chosen) + waiting + 1 + with_claims.len();
    let surges = unavailable == 0 && !bounds.both_zero && bounds.total.is_some_and(|most| beside > most);
    if !surges {
        nothing_is_left_over(pool, &update, &idle)?;
    }
    let is_full = bounds.total.is_some_and(|most| beside > most);
    let on_cordoned = |pod: &&&Arc<Object>| state.api_server.is_on_cordoned(pod);
    if let Some(pod) = idle.iter().find(on_cordoned).filter(|_| !is_full) {
        return breach(
            "I6",
            format!("at rest pod {} is still on a cordoned node", pod.name()),
        );
    }
    if waiting > 0 && bounds.total.is_some_and(|most| is_at(state, pool, most)) {
        return Ok(());
    }
    let room = bounds
        .total
        .map_or(usize::MAX, |most| most.saturating_sub(with_claims.len()));
    let due = wanted.min(room);
    if full < due || idle.len() > (most + waiting).min(room).max(due) {
        let all = idle.len();
        return breach(
            "I8",
            format!("at rest {full} of {all} unclaimed sandboxes are available, {due} are wanted"),
        );
    }
    Ok(())
}

/// No unclaimed sandbox is there that was to be replaced.
fn nothing_is_left_over(pool: &Object, update: &str, idle: &[&Arc<Object>]) -> Result<(), Breach> {
    let rolls = pool.at("/spec/updateStrategy/type") != "OnReplenish" && !is_paused(pool);
    let old = idle.iter().filter(|pod| image(pod, "/spec") != update).count();
    if rolls && old > pool.number("/spec/updateStrategy/partition") {
        return breach("I5", format!("at rest {old} sandboxes are of an old revision"));
    }
    for pod in idle {
        if pod.is_to_be_evicted() {
            return breach("I5", format!("at rest pod {} is still to be evicted", pod.name()));
        }
    }
    Ok(())
}

/// The counts of the pool's status, counted again.
fn status_is_true(state: &State, pool: &Object) -> Result<(), Breach> {
    let pods = || pods_of(&state.api_server, pool).filter(|pod| !pod.terminating());
    let counts = [
        ("available", pods().filter(|pod| available(pod)).count()),
        ("claimed", pods().filter(|pod| claimed(pod)).count()),
        ("pendingClaims", waiting_for(state, pool).count()),
    ];
    let mut conditions = pool.value["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    if conditions.any(|condition| condition["type"] == "ReplicaFailure") {
        return breach(
            "I9",
            format!("at rest pool {} says that pods are refused", pool.name()),
        );
    }
    // Of several pools one is to serve a claim that any will do for.
    let shared = |claim: &Arc<Object>| claim.at("/spec/poolRef/name").is_empty();
    let chooses = waiting_for(state, pool).any(shared);
    for (field, count) in counts {
        if chooses && field == "pendingClaims" {
            continue;
        }
        let said = pool.number(&format!("/status/{field}"));
        if said != count {
            return breach(
                "I9",
                format!(
                    "at rest the status of pool {} says {field} {said}, and it is {count}",
                    pool.name()
                ),
            );
        }
    }
    Ok(())
}
