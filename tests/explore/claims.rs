//! What an operator may write about a claim: which sandboxes it lists, and how it ends.

use crate::api_server::Kind;
use crate::laws::{Breach, Ghost, breach};
use crate::object::Object;
use crate::state::State;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// `waitTimeoutSeconds` where neither a claim nor a pool gives any.
const PATIENCE: usize = 300;

/// Judges what a write has made of a claim.
pub fn written(state: &mut State, before: &Object, claim: &Object) -> Result<(), Breach> {
    ends_rightly(state, before, claim)?;
    keeps_what_was_said(before, claim)?;
    note_binding(&mut state.ghost, claim);
    lists(state, before, claim)
}

/// When a claim was bound first, as its status has said then.
fn note_binding(ghost: &mut Ghost, claim: &Object) {
    let listed = claim.value["status"]["sandboxes"].as_array();
    let times = listed.into_iter().flatten().map(|s| moment(&s["boundTime"]));
    let first = times.flatten().min();
    if let Some(at) = first.filter(|_| claim.phase() == "Bound") {
        ghost.bound.entry(claim.uid().to_string()).or_insert(at);
    }
}

/// What its status says of its first binding, and of what its pool said then, stays.
fn keeps_what_was_said(before: &Object, claim: &Object) -> Result<(), Breach> {
    let (before, after) = (&before.value["status"], &claim.value["status"]);
    let fields = ["boundTime", "waitSeconds", "defaults"];
    let changed = |field: &&str| !before[*field].is_null() && before[*field] != after[*field];
    match fields.into_iter().find(changed) {
        Some(field) => breach("I8", format!("the {field} of claim {} changes", claim.name())),
        None => Ok(()),
    }
}

/// A time as it is written down.
pub fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// Whether `seconds` are over for certain since what is stored as `start`. The API stores whole seconds, so it may have happened
/// up to a second later.
fn over(state: &State, start: Option<Timestamp>, seconds: usize) -> bool {
    let seconds = SignedDuration::from_secs(i64::try_from(seconds + 1).unwrap());
    start.is_some_and(|start| state.now().duration_since(start) >= seconds)
}

fn ends_rightly(state: &State, before: &Object, claim: &Object) -> Result<(), Breach> {
    let name = claim.name();
    let why = match (before.phase(), claim.phase()) {
        (was, is) if was == is => "",
        ("Failed" | "Expired", _) => "although it had ended",
        ("Bound", "Failed") if !has_lost(state, before) => "and has all its sandboxes",
        ("" | "Pending", "Failed") if !has_waited(state, before) => "and might have waited for longer",
        (_, "Expired") if !has_expired(state, before) => "and its time is not over",
        _ => "",
    };
    if why.is_empty() {
        Ok(())
    } else {
        let phase = claim.phase();
        breach("I8", format!("claim {name} becomes {phase} {why}"))
    }
}

/// A sandbox that it lists is gone, has ended or is being deleted.
fn has_lost(state: &State, claim: &Object) -> bool {
    let pod = |uid| state.api_server.uid(Kind::Pods, uid);
    let is_lost = |uid| pod(uid).is_none_or(|pod| pod.ended() || pod.terminating());
    claim.listed().into_iter().any(is_lost)
}

/// It does not wait at all, or its time to wait is over. One whose pool is gone has no default from it.
fn has_waited(state: &State, claim: &Object) -> bool {
    let given = claim.number("/spec/waitTimeoutSeconds");
    let patience = if given > 0 { given } else { PATIENCE };
    let limited = given > 0 || state.scene.deletes_pools();
    let created = moment(&claim.value["metadata"]["creationTimestamp"]);
    claim.at("/spec/onEmpty") == "Fail" || limited && over(state, created, patience)
}

/// Its lifetime is over, or its user wanted it to end.
fn has_expired(state: &State, claim: &Object) -> bool {
    let lifetime = claim.number("/spec/lifetimeSeconds");
    let bound = state.ghost.bound.get(claim.uid()).copied();
    let lived = lifetime > 0 && over(state, bound, lifetime);
    lived || moment(&claim.value["spec"]["shutdownTime"]).is_some_and(|end| end <= state.now())
}

/// At rest the status of a claim says what the claim waits for, and nothing ends the claim with time.
pub fn rests(claim: &Object) -> Result<(), Breach> {
    let name = claim.name();
    let conditions = claim.value["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let has_reason =
        conditions.any(|c| c["type"] == "Bound" && c["reason"].as_str().is_some_and(|r| !r.is_empty()));
    if !has_reason || claim.phase().is_empty() {
        return breach(
            "I8",
            format!("at rest claim {name} has no status that says how it stands"),
        );
    }
    let live = matches!(claim.phase(), "Bound" | "Pending");
    let limited = |field: &str| claim.number(&format!("/spec/{field}")) > 0;
    let limit = match claim.phase() {
        _ if live && !claim.at("/spec/shutdownTime").is_empty() => "shutdownTime",
        "Bound" if limited("lifetimeSeconds") => "lifetimeSeconds",
        "Pending" if limited("waitTimeoutSeconds") => "waitTimeoutSeconds",
        "Failed" | "Expired" if limited("ttlSecondsAfterFinished") => "ttlSecondsAfterFinished",
        _ => return Ok(()),
    };
    let phase = claim.phase();
    breach(
        "I8",
        format!("at rest claim {name} is {phase} in spite of its {limit}"),
    )
}

fn lists(state: &mut State, before: &Object, claim: &Object) -> Result<(), Breach> {
    let (name, listed) = (claim.name(), claim.listed());
    if listed.len() > claim.wanted() {
        return breach("I1", format!("claim {name} lists {} sandboxes", listed.len()));
    }
    if claim.phase() == "Bound" && listed.len() != claim.wanted() {
        return breach(
            "I1",
            format!("claim {name} is Bound to {} sandboxes", listed.len()),
        );
    }
    if before.phase() == "Bound" && before.listed() != listed {
        let replaces = claim.at("/spec/onSandboxLost") == "Replace";
        let pod = |uid: &str| state.api_server.uid(Kind::Pods, uid);
        let lost = |uid: &&str| pod(uid).is_none_or(|pod| pod.ended() || pod.terminating());
        let mut dropped = before.listed().into_iter().filter(|uid| !listed.contains(uid));
        if !replaces || !dropped.all(|uid| lost(&uid)) {
            return breach("I1", format!("claim {name} is Bound and its sandboxes change"));
        }
    }
    for uid in listed {
        let known = state.ghost.published.get(uid);
        if known.is_some_and(|claims| claims != claim.uid()) {
            return breach(
                "I1",
                format!("claim {name} lists a pod that another claim has listed"),
            );
        }
        if known.is_none() {
            let pod = state.api_server.uid(Kind::Pods, uid);
            if pod.is_some_and(|pod| pod.owner() != ("SandboxClaim", claim.uid())) {
                return breach("I1", format!("claim {name} lists a pod that it does not hold"));
            }
            let entry = (uid.to_string(), claim.uid().to_string());
            state.ghost.published.extend([entry]);
        }
    }
    Ok(())
}
