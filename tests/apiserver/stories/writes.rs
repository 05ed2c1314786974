//! Counts the operator's writes for each claim.

use super::held::let_go;
use super::{bound, says};
use crate::cluster::Recorded;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{pool, sim};
use crate::scene::Scene;
use crate::wait;
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

const CLAIMS: usize = 12;
/// Requests that may meet an object that has gone, while claims are deleted: a watch may show a pod that is being deleted before
/// it shows that its claim is gone.
const LATE: usize = 2;

/// The operator's writes since `from` that the API server carried out, counted by verb and resource; those of the pool's status
/// apart. At most `may_be_late` others met an object that had gone or changed on their way.
fn writes_since(
    scene: &Scene,
    from: Timestamp,
    may_be_late: usize,
) -> Result<(BTreeMap<String, usize>, usize), String> {
    let all = scene.writes(|write| write.at > from)?;
    let (done, late): (Vec<_>, Vec<_>) = all.iter().partition(|write| (200..300).contains(&write.code));
    let are_late = late.iter().all(|write| [404, 409, 422].contains(&write.code));
    wait::ensure(late.len() <= may_be_late && are_late, || {
        format!("the API server did not carry out {late:?}")
    })?;
    let (of_pool, others): (Vec<&Recorded>, Vec<_>) = done
        .into_iter()
        .partition(|write| write.resource == "pools/status");
    let mut counts = BTreeMap::new();
    for write in others {
        *counts
            .entry(format!("{} {}", write.verb, write.resource))
            .or_default() += 1;
    }
    Ok((counts, of_pool.len()))
}

/// Waits until everything is at rest and the operator has written nothing for two seconds: an event follows the status that it
/// tells of.
fn quiet(scene: &Scene) -> Result<Timestamp, String> {
    wait_until_at_rest(scene, 60)?;
    wait::until("the operator wrote nothing for two seconds", 30, || {
        let from = Timestamp::now();
        sleep(Duration::from_secs(2));
        let writes = scene.writes(|write| write.at > from)?;
        wait::ensure(writes.is_empty(), || format!("{writes:?}"))
    })?;
    Ok(Timestamp::now())
}

/// Since `from` there were exactly these writes, and the pool's status was written once a second at most.
fn has_written(
    scene: &Scene,
    from: Timestamp,
    expected: &[(&str, usize)],
    may_be_late: usize,
) -> Result<(), String> {
    quiet(scene)?;
    let (counts, statuses) = writes_since(scene, from, may_be_late)?;
    let expected: BTreeMap<String, usize> = expected
        .iter()
        .map(|(write, n)| ((*write).to_string(), *n))
        .collect();
    wait::ensure(counts == expected, || {
        format!("{expected:?} are the writes for {CLAIMS} claims, and the operator sent {counts:?}")
    })?;
    let seconds = Timestamp::now().duration_since(from).as_secs();
    let most = usize::try_from(seconds).unwrap_or(0) + 1;
    wait::ensure(statuses <= most, || {
        format!("the pool's status was written {statuses} times in {seconds} s")
    })
}

pub fn a_claim_on_a_warm_pool_costs_three_writes(scene: &Scene) -> Result<(), String> {
    // A sandbox for each claim: none waits, however late those that were taken are replaced.
    let replicas = i64::try_from(CLAIMS).map_err(|e| e.to_string())?;
    scene.create_pool(&pool("python", replicas, &json!({})))?;
    let from = quiet(scene)?;
    for n in 0..CLAIMS {
        let name = format!("run-{n}");
        scene.create_claim(&name, "python", &json!({}))?;
        bound(scene, &name)?;
    }
    let each = [
        ("create pods", CLAIMS),
        ("patch pods", CLAIMS),
        ("update sandboxclaims/status", CLAIMS),
    ];
    has_written(scene, from, &each, 0)?;
    // The garbage collector deletes their sandboxes.
    let from = quiet(scene)?;
    for n in 0..CLAIMS {
        scene.delete_claim(&format!("run-{n}"))?;
    }
    has_written(scene, from, &[], LATE)
}

pub fn a_claim_that_waits_costs_four_writes_and_two_events(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 0, &sim(&[("hold", "true")])))?;
    // The sandboxes become available together, so their bindings are sent side by side, and a younger one may arrive first.
    scene.declare(|rules| rules.late = CLAIMS / 2);
    let from = quiet(scene)?;
    let claims = super::burst(scene, "run", CLAIMS, "python", &json!({}))?;
    claims
        .iter()
        .try_for_each(|claim| says(scene, claim, "Bound", "NoneAvailable").map(drop))?;
    wait::until("each claim had a sandbox on its way", 30, || {
        let pods = scene.pods()?.len();
        wait::ensure(pods == CLAIMS, || format!("there are {pods}"))
    })?;
    let_go(scene)?;
    super::all_bound(scene, &claims)?;
    let each = [
        ("create pods", CLAIMS),
        ("patch pods", CLAIMS),
        ("update sandboxclaims/status", 2 * CLAIMS),
        // That it waits, and that it is bound.
        ("create events", 2 * CLAIMS),
    ];
    has_written(scene, from, &each, 0)
}
