//! Checks that many claims at once are served once, in order.
//!
//! `make storm` runs these stories with larger numbers.

use super::burst;
use super::crashes::{expect_two_operators, replaced};
use super::storm::Dice;
use crate::api::CLAIMS;
use crate::check::BINDINGS;
use crate::check::event::{Event, Kind, items, text};
use crate::check::warm_reports;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{claim, pool, sim, with};
use crate::operator::Operator;
use crate::scene::Scene;
use crate::wait;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Seconds that a whole burst may take.
const PATIENCE: u64 = 300;

/// How many sandboxes are kept warm, and how many claims come.
#[derive(Clone, Copy)]
struct Size {
    warm: i64,
    claims: usize,
}

const fn size(warm: i64, claims: usize) -> Size {
    Size { warm, claims }
}

/// A pool for a burst of claims. Up to 32 bindings are sent at once, so those of a few more claims may be late.
fn warm_pool(scene: &Scene, Size { warm, claims }: Size, more: &Value) -> Result<(), String> {
    scene.declare(|rules| rules.late = rules.late.max(claims / 4));
    let spec = with(sim(&[("ready-after", "500ms")]), more);
    scene.create_pool(&pool("python", warm, &spec))?;
    wait_until_at_rest(scene, PATIENCE)
}

fn bound_so_far(scene: &Scene) -> usize {
    scene.count(Kind::Claim, |claim| text(claim, "/status/phase") == "Bound")
}

fn all_are_bound(scene: &Scene, count: usize) -> Result<(), String> {
    wait::until(&format!("{count} claims were bound"), PATIENCE, || {
        let bound = bound_so_far(scene);
        wait::ensure(bound == count, || format!("{bound} are"))
    })
}

/// At rest there are as many sandboxes as are kept warm and as are claimed, and none besides.
fn nothing_is_left_over(scene: &Scene, Size { warm, claims }: Size) -> Result<(), String> {
    wait_until_at_rest(scene, PATIENCE)?;
    let state = ClusterState::read(scene)?;
    let found = (
        state.unclaimed("python").len(),
        state.claimed("python").len(),
        state.pods.len(),
    );
    let warm = usize::try_from(warm).unwrap_or(0);
    wait::ensure(found == (warm, claims, warm + claims), || {
        format!("{claims} claimed and {warm} warm should be all, and there are {found:?}")
    })
}

/// The pod that each claim named in its status, by UID, read off the events as they are. None names two, and no two
/// name the same.
fn each_served_once(events: &[Event]) -> Result<BTreeMap<String, String>, String> {
    let (mut pods, mut claims) = (BTreeMap::new(), BTreeMap::new());
    for event in events.iter().filter(|e| e.kind == Kind::Claim) {
        for sandbox in items(&event.object, "/status/sandboxes") {
            let (claim, pod) = (event.uid(), text(sandbox, "/uid"));
            let holder: &mut String = pods.entry(pod.to_string()).or_insert(claim.into());
            let held: &mut String = claims.entry(claim.to_string()).or_insert(pod.into());
            wait::ensure(holder == claim && held == pod, || {
                format!("{event}: {holder} named the pod before, or the claim named {held}")
            })?;
        }
    }
    Ok(claims)
}

pub fn a_burst_is_served_in_order_and_each_claim_once(scene: &Scene) -> Result<(), String> {
    let size = scene.sized(size(40, 120), size(300, 1000));
    let operator = scene.lab.start_operator()?;
    // Few of the new sandboxes become available in the second in which their claims come, and no warm one does.
    warm_pool(scene, size, &sim(&[("ready-after", "1s")]))?;
    sleep(Duration::from_secs(1));
    burst(scene, "run", size.claims, "python", &json!({}))?;
    end(scene, size, [operator])?;
    let events = scene.history();
    let pod_of_claim = each_served_once(&events)?;
    warm_reports::judge(&events, &pod_of_claim, size.warm)
}

pub fn a_burst_is_served_while_the_operator_is_killed_again_and_again(scene: &Scene) -> Result<(), String> {
    let size = scene.sized(size(20, 60), size(100, 300));
    // So few warm up at a time that the burst outlasts the killing.
    let (kills, ceiling) = scene.sized((3, 5), (6, 10));
    let mut operator = scene.lab.start_operator()?;
    warm_pool(
        scene,
        size,
        &json!({"scaleStrategy": {"maxUnavailable": ceiling}}),
    )?;
    // Each kill comes at a moment of its own part of the burst, however fast the operator is; the last part is left.
    let part = size.claims / (kills + 1);
    let mut dice = Dice(0x5eed_f00d);
    // Until the first kill the nodes are suspended, so however long it takes, claims are left.
    operator = scene.while_nodes_are_suspended(|| {
        burst(scene, "run", size.claims, "python", &json!({}))?;
        let bound = some_are_bound(scene, dice.below(part))?;
        wait::ensure(bound < size.claims, || {
            "the burst was over before the first kill".into()
        })?;
        Ok(replaced(scene, operator, || Ok(()))?.0)
    })?;
    let mut struck = 1;
    for kill in 1..kills {
        // A test that stands still for seconds finds the burst over.
        if some_are_bound(scene, kill * part + dice.below(part))? == size.claims {
            break;
        }
        operator = replaced(scene, operator, || Ok(()))?.0;
        struck += 1;
    }
    scene
        .lab
        .print_at_end(format!("operators killed within a burst: {struck} of {kills}"));
    end(scene, size, [operator])
}

/// Waits until at least `some` claims are bound, and returns how many are.
fn some_are_bound(scene: &Scene, some: usize) -> Result<usize, String> {
    wait::until(&format!("{some} claims were bound"), PATIENCE, || {
        let bound = bound_so_far(scene);
        wait::ensure(bound >= some, || format!("{bound} are"))?;
        Ok(bound)
    })
}

pub fn an_urgent_claim_passes_those_of_a_burst_that_are_not_bound_yet(scene: &Scene) -> Result<(), String> {
    const WARM: i64 = 150;
    let mut operator = scene.lab.start_operator()?;
    let slow = sim(&[("ready-after", "4s")]);
    scene.create_pool(&pool("python", WARM, &slow))?;
    wait_until_at_rest(scene, PATIENCE)?;
    for round in 1..=3 {
        let before = bound_so_far(scene);
        // The operator finds the whole burst waiting, and has just begun with it when the urgent claim comes.
        operator = scene.while_operator_is_down(|| {
            operator.stop()?;
            burst(scene, &format!("run-{round}"), 150, "python", &json!({}))?;
            scene.lab.start_operator()
        })?;
        some_are_bound(scene, before + 1)?;
        let urgent = format!("urgent-{round}");
        scene.create_claim(&urgent, "python", &json!({"priority": 9}))?;
        let came = Timestamp::now();
        let size = size(WARM, round * 151);
        all_are_bound(scene, size.claims)?;
        nothing_is_left_over(scene, size)?;
        // There is one claim more than sandboxes, and the urgent claim must not be the last to be served.
        let urgent = scene.claim(&urgent)?;
        if urgent["status"]["sandboxes"][0]["warm"] == true {
            return end(scene, size, [operator]);
        }
        // A test that stands still for seconds sends it when there is none to pass.
        let later =
            scene.writes(|write| write.verb == "patch" && write.resource == "pods" && write.at > came)?;
        wait::ensure(later.len() <= BINDINGS, || {
            format!(
                "{} bindings came after the urgent claim, which says {}",
                later.len(),
                urgent["status"]
            )
        })?;
    }
    Err("each burst was over before its urgent claim came".into())
}

pub fn two_operators_share_a_burst(scene: &Scene) -> Result<(), String> {
    let size = scene.sized(size(20, 60), size(100, 300));
    expect_two_operators(scene);
    let operators = [scene.lab.start_operator()?, scene.lab.start_operator()?];
    warm_pool(scene, size, &json!({}))?;
    burst(scene, "run", size.claims, "python", &json!({}))?;
    end(scene, size, operators)
}

pub fn claims_given_up_at_once_leave_nothing(scene: &Scene) -> Result<(), String> {
    let (clients, each) = scene.sized((8, 25), (16, 125));
    let operator = scene.lab.start_operator()?;
    let size = size(20, clients * (each / 10));
    warm_pool(scene, size, &json!({}))?;
    let (api, namespace) = (&scene.lab.api, scene.namespace.as_str());
    side_by_side(clients, |client| {
        let mut dice = Dice(0x5eed_0001 + client as u64);
        for n in 0..each {
            let is_kept = n % 10 == 9;
            // A name that comes back is another claim.
            let name = if is_kept {
                format!("kept-{client}-{n}")
            } else {
                format!("run-{client}-{}", n % 3)
            };
            api.create(CLAIMS, namespace, &claim(&name, "python", &json!({})))?;
            sleep(Duration::from_millis(dice.below(51) as u64));
            if !is_kept {
                api.delete(CLAIMS, namespace, &name)?;
            }
        }
        Ok(())
    })?;
    end(scene, size, [operator])
}

pub fn a_steady_stream_is_served_as_it_comes(scene: &Scene) -> Result<(), String> {
    let size = scene.sized(size(30, 100), size(30, 400));
    let operator = scene.lab.start_operator()?;
    warm_pool(scene, size, &json!({}))?;
    let (api, namespace) = (&scene.lab.api, scene.namespace.as_str());
    let (start, between) = (Instant::now(), Duration::from_millis(50));
    // Several clients send the claims, so that one slow answer does not delay the rest.
    side_by_side(8, |client| {
        for n in (client..size.claims).step_by(8) {
            let due = start + between * n as u32;
            sleep(due.saturating_duration_since(Instant::now()));
            let name = format!("run-{n}");
            api.create(CLAIMS, namespace, &claim(&name, "python", &json!({})))?;
        }
        Ok(())
    })?;
    end(scene, size, [operator])
}

/// Does the same in several threads, each with its number.
fn side_by_side(threads: usize, work: impl Fn(usize) -> Result<(), String> + Sync) -> Result<(), String> {
    let work = &work;
    scope(|all| {
        let started: Vec<_> = (0..threads).map(|n| all.spawn(move || work(n))).collect();
        let mut ended = started.into_iter().map(|thread| thread.join());
        ended.try_for_each(|outcome| outcome.unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

/// Sees every claim bound and nothing left over, and stops the operators.
fn end(scene: &Scene, size: Size, operators: impl IntoIterator<Item = Operator>) -> Result<(), String> {
    all_are_bound(scene, size.claims)?;
    nothing_is_left_over(scene, size)?;
    // Claims that gave up may have been served as well.
    let pod_of_claim = each_served_once(&scene.history())?;
    wait::ensure(pod_of_claim.len() >= size.claims, || {
        format!("only {} were served", pod_of_claim.len())
    })?;
    operators.into_iter().try_for_each(Operator::stop)
}
