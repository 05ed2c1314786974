//! Checks leader election: a leader is killed, terminated or suspended.

use super::{all_bound, bound, burst, in_phase};
use crate::api::LEASES;
use crate::check::BINDINGS;
use crate::check::event::text;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::pool;
use crate::operator::Operator;
use crate::scene::Scene;
use crate::wait;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::fmt;

/// Namespace of the operator and of its lease.
const HOME: &str = "warmpool-system";
const LEASE: &str = "warmpool";
const LEASE_TIME: SignedDuration = SignedDuration::from_secs(15);
const RENEW_DEADLINE: SignedDuration = SignedDuration::from_secs(10);
/// The least time after which a lease that nobody released is taken over: its leader renewed it less than a renew deadline ago.
const LEAST_WAIT: SignedDuration = LEASE_TIME.saturating_sub(RENEW_DEADLINE);

fn lease(scene: &Scene) -> Result<Value, String> {
    let lease = scene.lab.api.get(LEASES, HOME, LEASE)?;
    lease.ok_or_else(|| "there is no lease".into())
}

/// A leader with a full pool of 20, and another operator that stands by. Once it leads, it opens its connections.
fn leader_and_standby(scene: &Scene) -> Result<(Operator, Operator), String> {
    scene.declare(|rules| rules.late = rules.late.saturating_add(BINDINGS));
    // Leases of earlier stories may not have run out.
    if scene.lab.api.get(LEASES, HOME, LEASE)?.is_some() {
        scene.lab.api.delete(LEASES, HOME, LEASE)?;
    }
    let leader = scene.lab.start_operator_with(&[])?;
    leader.says("leading", 30)?;
    let standby = scene.lab.start_operator_with(&[])?;
    standby.says("standing by", 30)?;
    scene.create_pool(&pool("python", 20, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    wait::ensure(!standby.text()?.contains("created"), || {
        format!("it stands by and works:\n{}", standby.tail())
    })?;
    Ok((leader, standby))
}

/// Claims may wait until the lease of a leader that went without a word has run out.
fn expect_a_takeover(scene: &Scene) {
    scene.declare(|rules| {
        rules.idle = rules.idle.map(|idle| idle + LEASE_TIME);
    });
}

/// How long something took.
#[derive(Clone, Copy)]
struct Took {
    in_all: SignedDuration,
    /// Without waits for a processor.
    undisturbed: SignedDuration,
}

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [in_all, undisturbed] = [self.in_all, self.undisturbed].map(|time| time.as_secs_f64());
        write!(
            f,
            "{in_all:.1} s, {undisturbed:.1} s without waits for a processor"
        )
    }
}

/// How long after `since` a new claim was bound.
fn first_binding(scene: &Scene, claim: &str, since: Timestamp) -> Result<Took, String> {
    scene.create_claim(claim, "python", &json!({}))?;
    bound(scene, claim)?;
    let now = Timestamp::now();
    Ok(Took {
        in_all: now.duration_since(since),
        undisturbed: scene.elapsed(since, now),
    })
}

fn took_at_most(action: &str, took: Took, limit: SignedDuration) -> Result<(), String> {
    wait::ensure(took.undisturbed <= limit, || {
        format!("{action} took {took}, more than {limit:?}")
    })
}

pub fn after_a_kill_the_standby_binds_within_the_lease_time_and_a_second(
    scene: &Scene,
) -> Result<(), String> {
    expect_a_takeover(scene);
    let (leader, standby) = leader_and_standby(scene)?;
    let before = lease(scene)?;
    let killed = Timestamp::now();
    leader.kill()?;
    let took = first_binding(scene, "run", killed)?;
    scene
        .lab
        .print_at_end(format!("first binding after a kill of the leader: {took}"));
    took_at_most(
        "the first binding",
        took,
        LEASE_TIME + SignedDuration::from_secs(1),
    )?;
    wait::ensure(took.in_all >= LEAST_WAIT, || {
        format!("the lease was taken over after only {took}")
    })?;
    let after = lease(scene)?;
    let transitions = |lease: &Value| lease["spec"]["leaseTransitions"].as_i64();
    wait::ensure(transitions(&after) == transitions(&before).map(|n| n + 1), || {
        format!("{before} became {after}")
    })?;
    wait_until_at_rest(scene, 60)?;
    standby.stop()?;
    let released = lease(scene)?;
    wait::ensure(
        text(&released, "/spec/holderIdentity").is_empty() && released["spec"]["leaseDurationSeconds"] == 1,
        || format!("the last one has left, and the lease is {released}"),
    )
}

pub fn after_a_kill_the_standby_keeps_the_size_that_claims_called_for(scene: &Scene) -> Result<(), String> {
    /// Sandboxes that are claimed at once.
    const CALLED_FOR: i64 = 12;
    const FLOOR: i64 = 2;
    let size = || {
        let size = scene.pool("sized")?["status"]["desiredReplicas"].as_i64();
        size.ok_or_else(|| "the status has no desiredReplicas".to_string())
    };
    expect_a_takeover(scene);
    let (leader, standby) = leader_and_standby(scene)?;
    let autoscaling = json!({"autoscaling": {"maxReplicas": 40, "stabilizationWindowSeconds": 45}});
    scene.create_pool(&pool("sized", FLOOR, &autoscaling))?;
    wait_until_at_rest(scene, 60)?;
    let claims = burst(
        scene,
        "run",
        usize::try_from(CALLED_FOR).unwrap_or_default(),
        "sized",
        &json!({}),
    )?;
    all_bound(scene, &claims)?;
    wait_until_at_rest(scene, 60)?;
    let called_for = size()?;
    wait::ensure(called_for >= CALLED_FOR, || format!("the size is {called_for}"))?;
    leader.kill()?;
    standby.says("leading", 30)?;
    // The window begins anew for the standby, which knows the size and not the claims. It ends so much later than this because the
    // test may see the takeover late.
    wait::throughout("the size is kept", 25, || {
        let now = size()?;
        wait::ensure(now == called_for, || format!("{called_for} became {now}"))
    })?;
    wait::until("the pool was at its floor again", 120, || {
        let now = size()?;
        wait::ensure(now == FLOOR, || format!("it keeps {now}"))
    })?;
    wait_until_at_rest(scene, 60)?;
    standby.stop()
}

pub fn after_sigterm_in_a_burst_the_standby_binds_without_waiting_for_the_lease(
    scene: &Scene,
) -> Result<(), String> {
    let (leader, standby) = leader_and_standby(scene)?;
    let claims = burst(scene, "run", 15, "python", &json!({}))?;
    let signaled = Timestamp::now();
    leader.signal("TERM")?;
    // The claims of the burst are served by either; this one comes when the first has stopped planning.
    leader.says("stopping", 30)?;
    let took = first_binding(scene, "late", signaled)?;
    scene
        .lab
        .print_at_end(format!("first binding after SIGTERM to the leader: {took}"));
    took_at_most("the first binding", took, LEAST_WAIT)?;
    leader.has_stopped()?;
    all_bound(scene, &claims)?;
    wait_until_at_rest(scene, 60)?;
    standby.stop()
}

pub fn a_leader_that_stood_still_past_its_deadline_ends_and_harms_nothing(
    scene: &Scene,
) -> Result<(), String> {
    expect_a_takeover(scene);
    let (mut leader, standby) = leader_and_standby(scene)?;
    // It stands still in the middle of its work.
    let mut claims = burst(scene, "before", 10, "python", &json!({}))?;
    let meanwhile = scene.while_operator_is_down(|| {
        leader.signal("STOP")?;
        let claims = burst(scene, "meanwhile", 15, "python", &json!({}))?;
        standby.says("leading", 30)?;
        Ok(claims)
    })?;
    claims.extend(meanwhile);
    // And wakes up in the middle of the other's.
    claims.extend(burst(scene, "after", 30, "python", &json!({}))?);
    leader.signal("CONT")?;
    let status = leader.ended(30)?;
    wait::ensure(status.code() == Some(1), || {
        format!("it ended with {status}\n{}", leader.tail())
    })?;
    leader.says("leadership is lost", 1)?;
    claims
        .iter()
        .try_for_each(|claim| in_phase(scene, claim, "Bound", 60).map(drop))?;
    wait_until_at_rest(scene, 60)?;
    standby.stop()
}
