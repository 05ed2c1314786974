//! Checks that failing requests leave no trace after the failures end.
//!
//! Requests fail in one namespace while claims come to a pool there, its template changes and it is scaled.

use super::rollouts::everything_unclaimed_runs;
use super::{bound, burst, in_phase, names, pool_says};
use crate::check::event::{Kind, condition, text};
use crate::claimants::Claimants;
use crate::cluster_state::{label, wait_until_at_rest};
use crate::faults::{Fault, Faults, Rule, WRITES, WRITES_THAT_MATTER};
use crate::objects::{NEW_IMAGE, pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use jiff::SignedDuration;
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Of the requests that a fault is about, so many meet it, and the first of each kind in any case.
const OFTEN: f64 = 0.3;
/// A request that hangs takes its whole deadline.
const SELDOM: f64 = 0.08;

/// A request that hangs is given up after 15 s, and one that failed is sent again after 5 s at the latest.
pub const FAILS_FOR: SignedDuration = SignedDuration::from_secs(30);

/// A binding that failed is sent again after this long at the latest.
const RETRIED_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// Under faults, claims may be served late, and out of order as far as bindings fail. Every other rule still holds.
pub fn expect_faults(scene: &Scene) {
    scene.declare(|rules| {
        rules.idle = Some(FAILS_FOR);
        rules.retried_after = RETRIED_AFTER;
        rules.late = usize::MAX;
    });
}

/// A full pool of 10.
pub fn a_full_pool(scene: &Scene) -> Result<(), String> {
    let spec = with(
        sim(&[("ready-after", "200ms")]),
        &json!({"updateStrategy": {"maxUnavailable": "25%"}}),
    );
    scene.create_pool(&pool("python", 10, &spec))?;
    wait_until_at_rest(scene, 60)
}

/// Claims come while the pool rolls, grows and shrinks; `meanwhile` is called in the middle of it.
pub fn under_load(scene: &Scene, meanwhile: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let claimants = Claimants::start(scene, "python");
    scene.roll_to("python", NEW_IMAGE)?;
    sleep(Duration::from_secs(2));
    scene.patch_pool("python", &json!({"spec": {"replicas": 14}}))?;
    sleep(Duration::from_secs(2));
    scene.patch_pool("python", &json!({"spec": {"replicas": 8}}))?;
    sleep(Duration::from_secs(2));
    let done = meanwhile();
    claimants.stop()?;
    done
}

fn nothing_is_broken_by(scene: &Scene, faults: &[Fault], chance: f64) -> Result<(), String> {
    expect_faults(scene);
    let proxy = scene.lab.proxy()?;
    a_full_pool(scene)?;
    let here = |fault: &Fault| {
        let rule = Rule::of(*fault, chance, WRITES).within(&scene.namespace);
        rule.and_first(WRITES_THAT_MATTER)
    };
    proxy.faults.add(faults.iter().map(here));
    let have_struck = |calls: &[&str]| {
        let struck = |fault: &Fault| proxy.faults.has_struck_each(&scene.namespace, *fault, calls);
        faults.iter().try_for_each(struck)
    };
    // Once claims wait, they take what would be deleted.
    scene.patch_pool("python", &json!({"spec": {"replicas": 4}}))?;
    let deleted = wait::until("each fault had struck a deletion", 60, || {
        have_struck(&["delete pods"])
    });
    scene.patch_pool("python", &json!({"spec": {"replicas": 10}}))?;
    sleep(Duration::from_secs(2));
    let loaded = deleted.and_then(|()| {
        under_load(scene, || {
            let struck = wait::until("each fault had struck each kind of write", 60, || {
                have_struck(WRITES_THAT_MATTER)
            });
            proxy.faults.stop(Some(&scene.namespace));
            struck
        })
    });
    proxy.faults.stop(Some(&scene.namespace));
    loaded?;
    wait_until_at_rest(scene, 60)?;
    everything_unclaimed_runs(scene, "python", NEW_IMAGE)?;
    let struck = proxy.faults.struck(&scene.namespace);
    scene
        .lab
        .print_at_end(format!("faults in {}: {struck:?}", scene.namespace));
    Ok(())
}

pub fn a_fault_that_strikes_nothing_any_more_is_told(scene: &Scene) -> Result<(), String> {
    expect_faults(scene);
    let faults = &scene.lab.proxy()?.faults;
    let fault = Fault::Late(Duration::from_millis(1));
    let creations = |chance| [Rule::of(fault, chance, &["create"]).within(&scene.namespace)];
    let struck = || faults.has_struck_each(&scene.namespace, fault, &["create pods"]);
    faults.add(creations(1.0));
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    struck()?;
    faults.replace(Some(&scene.namespace), creations(0.0));
    scene.patch_pool("python", &json!({"spec": {"replicas": 4}}))?;
    wait_until_at_rest(scene, 60)?;
    let told = struck().err().unwrap_or_default();
    let sentence = format!("{fault} has not struck Some(\"create pods\")");
    wait::ensure(told.contains(&sentence), || format!("told: {told:?}"))?;
    faults.stop(Some(&scene.namespace));
    Ok(())
}

pub fn refusals_and_errors_leave_no_trace(scene: &Scene) -> Result<(), String> {
    let faults = [409, 422, 500, 503].map(Fault::Refused);
    nothing_is_broken_by(scene, &faults, OFTEN / 4.0)
}

pub fn writes_whose_outcome_is_unknown_are_not_made_twice(scene: &Scene) -> Result<(), String> {
    let faults = [Fault::AnsweredWith(504), Fault::ReplyLost, Fault::Dropped];
    nothing_is_broken_by(scene, &faults, OFTEN / 3.0)
}

pub fn requests_that_hang_or_are_late_are_given_up_or_waited_for(scene: &Scene) -> Result<(), String> {
    let late = Fault::Late(Duration::from_secs(2));
    nothing_is_broken_by(scene, &[Fault::Hangs, Fault::ReplyHangs, late], SELDOM / 2.0)
}

pub fn conflicts_leave_no_trace(scene: &Scene) -> Result<(), String> {
    nothing_is_broken_by(scene, &[Fault::Refused(409)], OFTEN)
}

pub fn failed_conditions_leave_no_trace(scene: &Scene) -> Result<(), String> {
    nothing_is_broken_by(scene, &[Fault::Refused(422)], OFTEN)
}

pub fn a_server_that_asks_to_wait_is_waited_for(scene: &Scene) -> Result<(), String> {
    nothing_is_broken_by(scene, &[Fault::Refused(429)], OFTEN)
}

pub fn errors_of_the_server_leave_no_trace(scene: &Scene) -> Result<(), String> {
    nothing_is_broken_by(scene, &[Fault::Refused(500), Fault::Refused(503)], OFTEN / 2.0)
}

pub fn a_write_said_to_have_timed_out_is_not_made_twice(scene: &Scene) -> Result<(), String> {
    nothing_is_broken_by(scene, &[Fault::AnsweredWith(504)], OFTEN)
}

pub fn a_write_whose_reply_is_lost_is_not_made_twice(scene: &Scene) -> Result<(), String> {
    nothing_is_broken_by(scene, &[Fault::ReplyLost, Fault::Dropped], OFTEN / 2.0)
}

pub fn a_request_that_hangs_is_given_up_and_repeated(scene: &Scene) -> Result<(), String> {
    nothing_is_broken_by(scene, &[Fault::Hangs], SELDOM)
}

pub fn a_write_that_hangs_after_it_was_made_is_not_made_twice(scene: &Scene) -> Result<(), String> {
    nothing_is_broken_by(scene, &[Fault::ReplyHangs], SELDOM)
}

pub fn a_server_slow_by_seconds_delays_and_no_more(scene: &Scene) -> Result<(), String> {
    nothing_is_broken_by(scene, &[Fault::Late(Duration::from_secs(2))], OFTEN)
}

/// A pool of 6 at rest, and what strikes the requests about it.
fn a_pool_of_six(scene: &Scene) -> Result<&Faults, String> {
    expect_faults(scene);
    scene.create_pool(&pool("python", 6, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    Ok(&scene.lab.proxy()?.faults)
}

/// The first call of each of these kinds from here on is carried out so much later.
fn first_calls_are_late(scene: &Scene, by: Duration, calls: &'static [&'static str]) -> [Rule; 1] {
    let late = Rule::of(Fault::Late(by), 0.0, WRITES).and_first(calls);
    [late.within(&scene.namespace)]
}

/// A claim is planned again with each claim that comes to its pool, while its own binding is still on its way.
pub fn a_claim_whose_binding_is_late_is_given_no_second_sandbox(scene: &Scene) -> Result<(), String> {
    /// Less than the 15 s that the operator waits for an answer.
    const LATE: Duration = Duration::from_secs(12);
    let faults = a_pool_of_six(scene)?;
    let mut was_late = false;
    // On a machine that stands still for seconds the late binding may arrive before the others.
    for round in ["a", "b", "c"] {
        faults.replace(
            Some(&scene.namespace),
            first_calls_are_late(scene, LATE, &["patch pods"]),
        );
        let late = format!("late-{round}");
        scene.create_claim(&late, "python", &json!({}))?;
        wait::until("its binding was on its way", 30, || {
            faults.has_struck(&scene.namespace, Fault::Late(LATE))
        })?;
        let sent = Instant::now();
        for name in names(&format!("next-{round}"), 3) {
            sleep(Duration::from_secs(1));
            scene.create_claim(&name, "python", &json!({}))?;
            bound(scene, &name)?;
        }
        was_late = text(&scene.claim(&late)?, "/status/phase") != "Bound";
        sleep((LATE + Duration::from_secs(1)).saturating_sub(sent.elapsed()));
        bound(scene, &late)?;
        wait_until_at_rest(scene, 60)?;
        if was_late {
            break;
        }
    }
    faults.stop(Some(&scene.namespace));
    wait::ensure(was_late, || {
        "each late binding arrived before the others".to_string()
    })
}

/// The first binding and the first publication are carried out after the operator has given them up and sent them again.
pub fn a_request_carried_out_after_it_was_given_up_gives_no_claim_a_second_sandbox(
    scene: &Scene,
) -> Result<(), String> {
    /// More than the 15 s that the operator waits for an answer.
    const LATE: Duration = Duration::from_secs(17);
    const GIVEN_UP: &[&str] = &["patch pods", "update sandboxclaims/status"];
    let faults = a_pool_of_six(scene)?;
    faults.add(first_calls_are_late(scene, LATE, GIVEN_UP));
    let claims = burst(scene, "run", 3, "python", &json!({}))?;
    let bound = wait::until("each was late", 30, || {
        faults.has_struck_each(&scene.namespace, Fault::Late(LATE), GIVEN_UP)
    })
    .and_then(|()| {
        let all_are_late = Instant::now();
        let mut claims = claims.iter();
        claims.try_for_each(|claim| in_phase(scene, claim, "Bound", 60).map(drop))?;
        sleep((LATE + Duration::from_secs(1)).saturating_sub(all_are_late.elapsed()));
        Ok(())
    });
    faults.stop(Some(&scene.namespace));
    bound?;
    for name in &claims {
        let held = scene.count(Kind::Pod, |pod| label(pod, "claim") == *name);
        wait::ensure(held == 1, || format!("claim {name} holds {held} sandboxes"))?;
    }
    wait_until_at_rest(scene, 60)
}

fn creations_meet(fault: Fault, scene: &Scene) -> [Rule; 1] {
    [Rule::of(fault, 1.0, &["create"])
        .on("pods")
        .within(&scene.namespace)]
}

/// A quota that others change at the same moment answers so.
pub fn a_creation_that_conflicts_is_told_of_in_the_api_servers_words(scene: &Scene) -> Result<(), String> {
    expect_faults(scene);
    let faults = &scene.lab.proxy()?.faults;
    faults.add(creations_meet(Fault::Refused(409), scene));
    scene.create_pool(&pool("python", 2, &json!({})))?;
    let message = pool_says(scene, "python", "ReplicaFailure", "FailedCreate");
    faults.stop(Some(&scene.namespace));
    let message = message?;
    wait::ensure(message.contains("the object has been modified"), || {
        format!("the server's own words, not: {message}")
    })?;
    wait_until_at_rest(scene, 60)
}

/// The API server checks the quota before the name: a try whose answer was lost took the last pod of the quota, so
/// the next try is rejected. The next try needs a late watch, because the operator does not create a pod again that
/// the watch has shown.
pub fn a_creation_is_made_although_a_later_try_is_refused(scene: &Scene) -> Result<(), String> {
    expect_faults(scene);
    let operator = scene.lab.start_operator_behind_faults(&[])?;
    let faults = &scene.lab.proxy()?.faults;
    let struck = |fault: Fault| faults.has_struck(&scene.namespace, fault);
    let late = Fault::EventLate(Duration::from_secs(2));
    faults.add([Rule::of(late, 1.0, &["watch"]).on("pods")]);
    let lost = Rule::of(Fault::ReplyLost, 0.0, &["create"]).and_first(&["create pods"]);
    let [refused] = creations_meet(Fault::Refused(403), scene);
    faults.add([lost.within(&scene.namespace), refused]);
    scene.create_pool(&pool("python", 1, &json!({})))?;
    wait::until("a reply was lost", 30, || struck(Fault::ReplyLost))?;
    wait::until("a try was refused", 30, || struck(Fault::Refused(403)))?;
    wait::throughout("no creation was said to have failed", 3, || {
        let pool = scene.pool("python")?;
        condition(&pool, "ReplicaFailure").map_or(Ok(()), |c| Err(c.to_string()))
    })?;
    faults.stop(None);
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}
